// Adds to this site's own pages the two headers without which a browser shares no memory between
// a page and its Python (see isolate.js). Everything the book needs is of its own origin, so
// nothing is shut out; what is not a page of the book or a worker passes untouched.

const scope = new URL("./", location.href);
const ours = (url) => url.startsWith(scope.href + "book/") || url.startsWith(scope.href + "_static/live/");

addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("fetch", (event) => {
  const { request } = event;
  const wanted = request.mode === "navigate" || request.destination === "worker";
  if (!wanted || !ours(request.url)) return;
  event.respondWith(fetch(request).then((answer) => {
    if (answer.status === 0 || answer.type === "opaqueredirect") return answer;
    const headers = new Headers(answer.headers);
    headers.set("Cross-Origin-Opener-Policy", "same-origin");
    headers.set("Cross-Origin-Embedder-Policy", "require-corp");
    const { status, statusText } = answer;
    return new Response(answer.body, { status, statusText, headers });
  }));
});
