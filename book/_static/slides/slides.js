/* Makes a deck of the slides of a page (book/_ext/teaching/slides.py), each fitted to 1280 by 720 pixels.
 *
 * The keys are those of reveal.js, which says them at "?"; D changes between light and dark. On a phone held upright
 * a slide would be as small as a stamp: there all of them stand below each other, and a press shows an answer.
 */

const SMALLEST = 0.3, STEPS = 8;
const LARGEST = { title: 1, drawing: 2, formula: 1.2, code: 1.3, question: 1.2, list: 1.2 };

/** Says whether all that a slide holds is seen. */
function holds(slide) {
  const body = slide.querySelector(".tt-slide__body"), inner = body.firstElementChild;
  const wide = [inner, ...inner.querySelectorAll("pre, .tt-formula")];
  return inner.offsetHeight <= body.clientHeight && wide.every((e) => e.scrollWidth <= e.clientWidth + 1);
}

/** Makes a slide's content as large as there is room, up to what its kind likes. */
function fit(slide) {
  const kind = slide.className.match(/tt-slide--(\w+)/)[1];
  const set = (size) => slide.style.setProperty("--fit", size.toFixed(3));
  let low = SMALLEST, high = LARGEST[kind];
  set(high);
  if (holds(slide)) return;
  for (let step = 0; step < STEPS; step++) {
    const middle = (low + high) / 2;
    set(middle);
    if (holds(slide)) low = middle;
    else high = middle;
  }
  set(low);
}

function changeScheme() {
  const root = document.documentElement;
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
}

/** Leads to the slide that the address names, as reveal.js writes it: `#/name` or `#/number`. */
function lead() {
  const name = location.hash.replace(/^#\/?/, "");
  const slide = document.getElementById(name) ?? document.querySelectorAll(".tt-slide")[Number(name || NaN)];
  slide?.scrollIntoView();
}

/** Lets the slides stand below each other, at a size that can be read. */
function flow() {
  document.documentElement.classList.add("tt-flow");
  for (const slide of document.querySelectorAll(".tt-slide:has(.fragment)")) {
    const show = document.createElement("button");
    show.type = "button";
    show.textContent = "Show the answer";
    show.addEventListener("click", () => {
      for (const answer of slide.querySelectorAll(".fragment")) answer.classList.add("visible");
      show.remove();
    });
    slide.querySelector(".tt-slide__fit").append(show);
  }
  // what scrolls can be scrolled by key
  const widths = new ResizeObserver((entries) => {
    for (const { target } of entries) target.tabIndex = target.scrollWidth > target.clientWidth ? 0 : -1;
  });
  for (const wide of document.querySelectorAll(".tt-slide :is(pre, .tt-formula, .tt-drawing__panels)")) widths.observe(wide);
  addEventListener("hashchange", lead);
  lead();
}

async function begin() {
  const root = document.documentElement, { Reveal, RevealNotes } = window;
  const onPaper = /view=print|print-pdf/.test(location.search), narrow = matchMedia("(max-width: 600px)");
  if (onPaper) root.dataset.theme = "light";
  narrow.addEventListener("change", () => location.reload());
  if (narrow.matches && !onPaper) {
    flow();
    root.dataset.slides = "ready";
    return;
  }
  root.classList.add("tt-measuring");
  await Promise.allSettled([...document.fonts].map((font) => font.load()));
  document.querySelectorAll(".tt-slide").forEach(fit);
  root.classList.remove("tt-measuring");
  await Reveal.initialize({
    width: 1280,
    height: 720,
    margin: 0,
    center: false,
    display: "flex",
    hash: true,
    transition: "none",
    slideNumber: "c/t",
    pdfSeparateFragments: false,
    plugins: [RevealNotes],
  });
  Reveal.addKeyBinding({ keyCode: 68, key: "D", description: "Light or dark" }, changeScheme);
  root.dataset.slides = "ready";
}

begin();
