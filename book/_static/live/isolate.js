// Stop interrupts Python through shared memory, which browsers give only to pages with two
// headers. A static host does not send them; a service worker can add them to the site's own
// pages. It takes effect at the next page load, and is asked for only by who runs cells.

export function isolate(root) {
  if (globalThis.crossOriginIsolated || !globalThis.isSecureContext) return;
  navigator.serviceWorker?.register(new URL("live-headers.js", root)).catch(() => {});
}
