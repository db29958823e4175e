// How the page's own elements are made.

export const make = (tag, classes, text = "", attributes = {}) => {
  const element = document.createElement(tag);
  if (classes) element.className = classes;
  element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
};

export const button = (text, label, act) => {
  const made = make("button", "tt-live__button", text, { type: "button" });
  if (label) made.setAttribute("aria-label", label);
  // of a double click, and of a key that is held, only the first counts
  made.addEventListener("click", (event) => { if (event.detail < 2) act(); });
  made.addEventListener("keydown", (event) => { if (event.repeat) event.preventDefault(); });
  return made;
};

// The page of this book to which a link leads.
export const docOf = (link) => /book\/[^#]*(?=\.html)/.exec(link.href)?.[0];
