// For readers without a mouse or without sight: copy buttons that say what they copy, formulas that are a tab
// stop only while they have to be scrolled, and references that only a pointer shows in the middle of a sentence.
(() => {
  const cells = [...document.querySelectorAll("div.cell")].filter((cell) => cell.querySelector(".cell_input pre"));
  let listings = 0;
  for (const button of document.querySelectorAll("button.copybtn")) {
    const number = cells.indexOf(button.closest("div.cell")) + 1;
    listings += number ? 0 : 1;
    const what = button.closest(".cell_output") ? `output of cell ${number}` : `cell ${number}`;
    button.setAttribute("aria-label", number ? `Copy ${what}` : `Copy listing ${listings}`);
  }

  for (const link of document.querySelectorAll("a[data-reference]")) {
    link.addEventListener("pointerenter", () => { link.title = link.dataset.reference; });
    link.addEventListener("pointerleave", () => link.removeAttribute("title"));
  }
  const widths = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    }
  });
  for (const formula of document.querySelectorAll(".tt-formula")) widths.observe(formula);
})();
