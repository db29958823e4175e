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

// What a reader has written into a cell, in every tab that has it open: each shows its own text and
// keeps the other's beside it, until the reader has chosen. Kept is {of, text, other}, where `of` is what
// the book has and `other` another tab's text, if it has one. Whoever writes keeps what is there; so no
// text is lost with its tab.
export class Edit {
  // kept: a `memory`; field: the cell's number there
  constructor(kept, field, of) {
    Object.assign(this, { kept, field, of });
    const { text, other } = this.#there;
    this.text = text; // undefined: as the book has it
    this.theirs = other;
  }

  get #there() {
    const there = this.kept.get(this.field);
    return there?.of === this.of ? there : {};
  }

  #keep() {
    const { of, text = this.theirs, theirs: other } = this;
    if (text === undefined) this.kept.remove(this.field);
    else this.kept.set(this.field, other === undefined || other === text ? { of, text } : { of, text, other });
  }

  // The reader has written this here.
  write(text) {
    const there = this.#there;
    if (there.text !== undefined) this.theirs = there.text === this.text ? there.other : there.text;
    this.text = text;
    this.#keep();
  }

  // The other text shall stand here, and this one be the other.
  swap() {
    [this.text, this.theirs] = [this.theirs, this.text];
    this.#keep();
    return this.text;
  }

  forgetTheirs() {
    this.theirs = undefined;
    this.#keep();
  }

  // Another tab has changed what is kept: what stands here is put beside that, unless a third one's is.
  hear() {
    const { text, other } = this.#there;
    this.theirs = text === this.text ? other : text;
    if (this.text === undefined || text === this.text || other !== undefined) return;
    if (text === undefined) this.#keep();
    else this.kept.set(this.field, { of: this.of, text, other: this.text });
  }
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
