// Python is started before the first press when one is likely: the pointer or the focus rests on a
// Run button, or the reader has scrolled past the first cell and rests there.

const LINGER = 150, REST = 1500; // ms on a button, and without scrolling

// bars: the cells' buttons, in the order of the page. Calls `start` once, or never.
export function startEarly(bars, start) {
  const listening = new AbortController();
  const waiting = {};
  const act = () => {
    if (document.visibilityState !== "visible" || isMetered()) return;
    listening.abort();
    for (const timer of Object.values(waiting)) clearTimeout(timer);
    start();
  };
  const stay = (where, ms) => {
    clearTimeout(waiting[where]);
    waiting[where] = setTimeout(act, ms);
  };
  const on = (target, event, then) => (
    target.addEventListener(event, then, { signal: listening.signal, passive: true })
  );
  for (const bar of bars) {
    for (const event of ["pointerover", "focusin"]) on(bar, event, () => stay("button", LINGER));
    for (const event of ["pointerout", "focusout"]) on(bar, event, () => clearTimeout(waiting.button));
  }
  on(globalThis, "scroll", () => {
    clearTimeout(waiting.page);
    if (bars.length && bars[0].getBoundingClientRect().bottom < innerHeight / 2) stay("page", REST);
  });
}

// Whether 36 MB may cost the reader money or patience. Where the browser does not tell, those
// who have a mouse are taken to be at a desk.
function isMetered() {
  const { connection } = navigator;
  if (matchMedia("(prefers-reduced-data: reduce)").matches) return true;
  if (!connection) return !matchMedia("(hover: hover)").matches;
  return connection.saveData || connection.type === "cellular" || connection.effectiveType !== "4g";
}
