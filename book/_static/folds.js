// What is folded opens for a link that leads into it, for the words of a search that stand nowhere
// else, and for print.
function openFolds(element) {
  const heading = element.matches("section, section > span:empty") ? element.closest("section") : null;
  let fold = heading?.querySelector(":scope > .tt-deeper") ?? element.closest(".tt-fold");
  const closed = fold && !fold.open;
  for (; fold; fold = fold.parentElement.closest(".tt-fold")) fold.open = true;
  if (closed) element.scrollIntoView();
}

{
  const lead = () => {
    let target = null;
    try {
      target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    } catch {
      // a link that was cut off in the middle of a letter leads nowhere
    }
    if (target) openFolds(target);
  };
  lead();
  addEventListener("hashchange", lead);

  const found = [...document.querySelectorAll("article span.highlighted")];
  if (found.length && found.every((word) => word.closest(".tt-fold:not([open])"))) openFolds(found[0]);

  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll(".tt-fold:not([open])")];
    for (const fold of closed) fold.open = true;
  });
  addEventListener("afterprint", () => {
    for (const fold of closed) fold.open = false;
  });
}
