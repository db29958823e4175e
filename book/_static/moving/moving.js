// Gives the figures that move their handles, each before it comes into view. A figure names its module, which
// stands beside this file; until that has drawn, and on paper, the figure shows its static drawing.

const near = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    near.unobserve(target);
    begin(target);
  }
}, { rootMargin: "600px" });

async function begin(figure) {
  const [{ toolsFor }, { default: move }] =
    await Promise.all([import("./tools.js"), import(`./${figure.dataset.moves}.js`)]);
  figure.data = JSON.parse(figure.querySelector(".tt-moving__data")?.textContent ?? "null");
  try {
    figure.moving = move(figure, toolsFor(figure));
  } catch (error) {
    figure.querySelector(".tt-moving")?.remove(); // what is drawn by halves is worse than what stands still
    throw error;
  }
}

document.querySelectorAll("figure[data-moves]").forEach((figure) => near.observe(figure));
