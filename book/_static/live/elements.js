// How the page's own elements are made.

export const make = (tag, classes, text = "", attributes = {}) => {
  const element = document.createElement(tag);
  if (classes) element.className = classes;
  element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
};

// The page of this book to which a link leads.
export const docOf = (link) => /book\/[^#]*(?=\.html)/.exec(link.href)?.[0];
