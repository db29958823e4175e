// What a reader's browser keeps, and nothing else does: answers, edits, what is solved.
//
// Every entry has a key of its own in the browser's storage. So no tab ever writes what another one
// has written meanwhile, and no lock is needed: there is nothing to read before a write.

const PREFIX = "tinytorch-book:";
const passing = new Map(); // what a refused or full storage does not take lasts as long as the page

// A dictionary under one name, shared by the tabs of a browser; `onchange` is told the field that another
// tab has changed, or null. A name has no space: that is where the field begins.
export function memory(name, onchange) {
  const prefix = `${PREFIX}${name} `;
  split(name);
  if (onchange) addEventListener("storage", ({ key }) => {
    if (key === null || key.startsWith(prefix)) onchange(key?.slice(prefix.length) ?? null); // null: all was cleared
  });
  return {
    get: (field) => read(prefix + field),
    // whether it will be there at the next visit
    set: (field, value) => write(prefix + field, JSON.stringify(value)),
    remove: (field) => erase(prefix + field),
    get all() {
      return Object.fromEntries(keys(prefix).map((key) => [key.slice(prefix.length), read(key)]));
    },
    clear: () => keys(prefix).forEach(erase),
  };
}

// Whether anything is there at the next visit.
export function remembers() {
  const probe = `${PREFIX}probe`;
  return Boolean(stored((storage) => (storage.setItem(probe, ""), storage.removeItem(probe), true)));
}

// The names under which something is kept.
export function names() {
  const found = keys(PREFIX).filter((key) => key.includes(" "));
  return [...new Set(found.map((key) => key.slice(PREFIX.length).split(" ")[0]))].toSorted();
}

// Until the second edition a name had one key, with all its fields.
function split(name) {
  const all = read(PREFIX + name);
  if (!all || typeof all !== "object") return;
  for (const [field, value] of Object.entries(all)) {
    const key = `${PREFIX}${name} ${field}`;
    if (read(key) === undefined) write(key, JSON.stringify(value));
  }
  erase(PREFIX + name);
}

function keys(prefix) {
  const kept = stored((storage) => Object.keys(storage)) ?? [];
  return [...new Set([...kept, ...passing.keys()])].filter((key) => key.startsWith(prefix));
}

function read(key) {
  try {
    return JSON.parse(passing.get(key) ?? stored((storage) => storage.getItem(key)) ?? undefined);
  } catch {
    return undefined; // nothing, or not ours
  }
}

function write(key, text) {
  passing.set(key, text);
  const kept = stored((storage) => (storage.setItem(key, text), true)) ?? false;
  if (kept) passing.delete(key);
  return kept;
}

function erase(key) {
  passing.delete(key);
  stored((storage) => storage.removeItem(key));
}

function stored(act) {
  try {
    return localStorage instanceof Storage ? act(localStorage) : undefined; // not a stand-in for it
  } catch {
    return undefined; // refused, or full
  }
}
