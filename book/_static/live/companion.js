// The site's service worker, asked for only by who runs cells (live-headers.js is its script). It
// adds the two headers without which a browser shares no memory between a page and its Python, and
// so no Stop that interrupts it, from the next page load on; and it keeps what Python starts from.

const PATIENCE = 1000; // ms that it may take to be there before the first download

export async function accompany(root) {
  const workers = navigator.serviceWorker;
  if (!globalThis.isSecureContext || !workers || workers.controller) return;
  const there = new Promise((resolve) => {
    workers.addEventListener("controllerchange", resolve, { once: true });
    setTimeout(resolve, PATIENCE);
  });
  try {
    await workers.register(new URL("live-headers.js", root));
    await there;
  } catch {
    // refused: then all comes from the network, and Stop starts Python again
  }
}
