// The door to the playground: its scripts and files come when it is near the screen. A page opened as a
// file, which cannot load modules, keeps the picture.
(() => {
  const here = document.currentScript.src;
  const place = document.querySelector(".tt-play");
  if (!place || location.protocol === "file:") return;
  const open = async () => {
    try {
      const { playground } = await import(new URL("playground.js", here));
      await playground(place);
    } catch (error) {
      place.dataset.play = "failed"; // the picture and its sentence stay
      throw error;
    }
  };
  const near = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    near.disconnect();
    open();
  }, { rootMargin: "300px" });
  near.observe(place);
})();
