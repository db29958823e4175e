// For readers without a mouse or without sight: copy buttons that say what they copy, and formulas
// that are a tab stop only while they have to be scrolled. For old links: the package once stood on
// one page, which now leads to where its names stand.
(() => {
  const cells = [...document.querySelectorAll("div.cell")].filter((cell) => cell.querySelector(".cell_input pre"));
  let listings = 0;
  for (const button of document.querySelectorAll("button.copybtn")) {
    const number = cells.indexOf(button.closest("div.cell")) + 1;
    listings += number ? 0 : 1;
    const what = button.closest(".cell_output") ? `output of cell ${number}` : `cell ${number}`;
    button.setAttribute("aria-label", number ? `Copy ${what}` : `Copy listing ${listings}`);
  }

  const widths = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    }
  });
  for (const formula of document.querySelectorAll(".tt-formula")) widths.observe(formula);

  let anchor = "";
  try {
    anchor = decodeURIComponent(location.hash.slice(1));
  } catch {
    // a link that was cut off in the middle of a letter leads nowhere
  }
  if (!anchor || document.getElementById(anchor)) return;
  const name = anchor.replace(/^module-/, "");
  const modules = [...document.querySelectorAll('article a[href*="#module-tinytorch"]')];
  const module = modules.find(({ hash }) => `${name}.`.startsWith(`${hash.replace("#module-", "")}.`));
  if (module) location.replace(`${module.pathname}#${anchor}`);
})();
