// Registers the site's service worker (service-worker.js), asked for only by who runs cells. It adds
// the two headers without which a browser shares no memory between a page and its Python, from the
// next page load on; until then it hands on a Stop; and it keeps what Python starts from.

const PATIENCE = 1000; // ms that it may take to be there before the first download

export async function registerServiceWorker(root) {
  const workers = navigator.serviceWorker;
  const address = new URL("service-worker.js", root).href;
  if (!globalThis.isSecureContext || !workers || workers.controller?.scriptURL === address) return;
  const there = new Promise((resolve) => {
    workers.addEventListener("controllerchange", resolve, { once: true });
    setTimeout(resolve, PATIENCE);
  });
  try {
    await workers.register(address);
    await there;
  } catch {
    // refused: then all comes from the network, and Stop starts Python again
  }
}
