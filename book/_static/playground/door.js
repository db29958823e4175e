// The door to the playground: its scripts and files come when it is near the screen, all of them at once. What fails
// is said where the playground would be. This script waits for no other, and may be here before the place is. The map
// of the model at work comes later still: when it is near itself, and the playground is there.
(() => {
  const here = document.currentScript.src;
  let place;

  const MODULES = ["playground", "bars", "layout", "model", "oracle", "safetensors", "sampling", "state", "thinking", "tokenizer",
    "tokens", "writing", "learning", "../live/elements"];
  const MAP = ["map", "map_columns", "map_layout", "map_numbers", "map_panels", "map_parts", "map_picture", "map_tiles", "map_watch",
    "map_words"];
  const FOLDED = ["folds", "attention", "beliefs", "late", "missing"];
  const NEAR = { rootMargin: "300px" };
  const LAST = 4000; // of the steps whose weights there are
  const LATE = 8000; // ms after which it is said that something is still to come

  const told = document.createElement("div");
  told.className = "tt-play__told";
  told.setAttribute("role", "status");
  const tell = (text) => {
    place.append(told);
    told.textContent = text;
  };

  const load = (name) => import(new URL(`${name}.js`, here));
  // A style, without which nothing is shown.
  const styled = (name) => new Promise((done, refuse) => {
    const link = document.createElement("link");
    const missed = () => refuse(new Error(`${name}.css did not come`));
    Object.assign(link, { rel: "stylesheet", href: new URL(`${name}.css`, here), onload: done, onerror: missed });
    document.head.append(link);
  });
  const step = () => /^#play&(?:.*&)?step=(0|100|500|2000)(?:&|$)/.exec(location.hash)?.[1] ?? LAST;

  let opened; // the playground, once it has been asked for
  const open = () => { opened ??= openNow(); return opened; };

  const openNow = async () => {
    const whole = place.dataset.size !== "compact";
    const files = ["tokenizer.json", "grammar.json", `weights/step-${step()}.safetensors`, ...whole ? ["probes.safetensors"] : []];
    const started = new Map(files.map((name) => [name, fetch(new URL(name, here))]));
    for (const one of started.values()) one.catch(() => {}); // said by who asks for it
    if (whole) for (const name of FOLDED) load(name).catch(() => {});
    const late = setTimeout(() => tell("The playground is still loading."), LATE);
    try {
      const [{ playground }] = await Promise.all([...MODULES.map(load), styled("playground")]);
      return await playground(place, started);
    } catch (error) {
      const ofScript = error instanceof TypeError || error instanceof SyntaxError;
      fail(ofScript ? "one of its scripts did not come, or is damaged" : error.message);
      throw error;
    } finally {
      clearTimeout(late);
    }
  };

  function fail(why) {
    place.dataset.play = "failed"; // the picture stays
    tell(`The playground could not be loaded: ${why}. `);
    const again = document.createElement("button");
    again.type = "button";
    again.textContent = "Try again";
    again.addEventListener("click", () => location.reload());
    told.append(again);
  }

  const openMap = async (map) => {
    const play = await open().catch(() => null);
    if (!play) return; // which is said above
    try {
      const [made] = await Promise.all([Promise.all(MAP.map(load)), styled("map")]);
      await made[0].map(play, map); // until then, and if it fails, the drawing stays
    } catch (error) {
      console.error(error);
      const said = document.createElement("p");
      said.setAttribute("role", "status");
      map.append(said);
      said.textContent = "This drawing stands still: what would show the model at work in it could not be loaded. Load the page again.";
    }
  };

  const whenNear = (element, then) => {
    const near = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      near.disconnect();
      then(element);
    }, NEAR);
    near.observe(element);
  };

  const begin = () => {
    place = document.querySelector(".tt-play");
    if (!place) requestAnimationFrame(begin);
    else if (location.protocol === "file:") fail("a page opened as a file cannot load scripts");
    else {
      whenNear(place, open);
      beginMap();
    }
  };

  // The page may be read only in part by now, the place and not yet the map.
  const beginMap = () => {
    const map = document.querySelector(".tt-map");
    if (map && /^#play&(?:.*&)?map=/.test(location.hash)) openMap(map);
    else if (map) whenNear(map, openMap);
    else if (document.readyState === "loading") requestAnimationFrame(beginMap);
  };
  begin();
})();
