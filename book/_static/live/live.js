// The door to the live cells: a page opened as a file, or in a browser without what they need,
// stays the plain book. Modules cannot be loaded from files, so this script is not one.
(() => {
  const here = document.currentScript.src;
  const plain = document.querySelector(".tt-live-plain");
  if (location.protocol === "file:" || typeof WebAssembly !== "object") {
    if (plain) plain.hidden = false;
    for (const offer of document.querySelectorAll(".bd-header-article .tt-live__all, .tt-open a[href='#run-here']")) offer.remove();
    return;
  }
  import(new URL("cells.js", here)).catch((error) => {
    if (plain) plain.hidden = false;
    throw error;
  });
})();
