// The site's service worker, for who runs cells (register_service_worker.js registers it). It does
// three things; what is none of them passes untouched.
//
// To the book's pages and its worker it adds the two headers without which a browser shares no memory
// between a page and its Python. Everything the book needs is of its own origin, so nothing is shut out.
//
// A page that was opened before it had these headers cannot interrupt its Python through shared memory.
// It sends a word here, and the Python, which asks a few times a second, is told it once.
//
// Files whose address holds a version (?v=..., name-1.2.3.whl) are kept: such an address never means
// another content. Pages never are. A new version takes the old one's place, and at most MOST files
// stay. Whatever goes wrong with keeping, the network is still there. Who reloads a page has its
// small files fetched anew; python_worker.js gives back a snapshot that does not serve.

const KEPT = "tinytorch-book", MOST = 60;
const scope = new URL("./", location.href);
const STATIC = `${scope.href}_static/`, LIVE = `${STATIC}live/`;
const ours = (url) => url.startsWith(`${scope.href}book/`) || url.startsWith(LIVE);

const words = new Set();
addEventListener("message", ({ data }) => data.stop && words.add(data.stop));

addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("fetch", (event) => {
  const { request } = event;
  const opens = request.mode === "navigate";
  if (request.url.startsWith(`${LIVE}stop?`)) {
    event.respondWith(new Response(words.delete(new URL(request.url).search.slice(1)) ? "stop" : "go"));
    return;
  }
  if (opens && request.isReloadNavigation) event.waitUntil(forgetSmall());
  if ((opens || request.destination === "worker") && ours(request.url)) {
    event.respondWith(withHeaders(request));
  } else if (!opens && request.method === "GET" && hasVersion(request.url)) {
    event.respondWith(keptOrFetched(event));
  }
});

async function withHeaders(request) {
  const answer = await fetch(request);
  if (answer.status === 0 || answer.type === "opaqueredirect") return answer;
  const headers = new Headers(answer.headers);
  headers.set("Cross-Origin-Opener-Policy", "same-origin");
  headers.set("Cross-Origin-Embedder-Policy", "require-corp");
  const { status, statusText } = answer;
  return new Response(answer.body, { status, statusText, headers });
}

function hasVersion(address) {
  const { href, pathname, searchParams } = new URL(address);
  return href.startsWith(STATIC) && (searchParams.has("v") || /-\d+\.\d+[^/]*$/.test(pathname));
}

// An address without its version: what a new one replaces.
const nameOf = (address) => new URL(address).pathname.replace(/\d+(\.\d+)+/g, "");

// Where files are kept; null where the browser refuses.
async function store() {
  try {
    return await caches.open(KEPT);
  } catch {
    return null;
  }
}

async function keptOrFetched(event) {
  const { request } = event;
  const kept = await store();
  const found = await kept?.match(request.url).catch(() => null);
  if (found) return found;
  const answer = await fetch(request);
  const isPage = answer.headers.get("Content-Type")?.startsWith("text/html");
  if (kept && answer.status === 200 && !isPage) {
    event.waitUntil(keep(kept, request.url, answer.clone()).catch(() => {}));
  }
  return answer;
}

async function keep(kept, address, answer) {
  await kept.put(address, answer); // nothing of an answer that breaks off
  const others = (await kept.keys()).filter(({ url }) => url !== address);
  const replaced = others.filter(({ url }) => nameOf(url) === nameOf(address));
  const tooMany = others.slice(0, Math.max(0, others.length + 1 - MOST));
  await Promise.all([...replaced, ...tooMany].map((request) => kept.delete(request)));
}

async function forgetSmall() {
  const kept = await store();
  const small = (await kept?.keys() ?? []).filter(({ url }) => !url.startsWith(LIVE));
  await Promise.all(small.map((request) => kept.delete(request)));
}
