// The door to the live cells: a page opened as a file, or in a browser without what they need,
// stays the plain book. Modules cannot be loaded from files, so this script is not one.
(() => {
  const here = document.currentScript.src;
  const plain = document.querySelector(".tt-live-plain");
  if (location.protocol === "file:" || typeof WebAssembly !== "object") {
    if (plain) plain.hidden = false;
    return;
  }
  import(new URL("cells.js", here)).catch((error) => {
    if (plain) plain.hidden = false;
    throw error;
  });
})();
