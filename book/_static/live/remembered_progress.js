// What a reader's browser keeps, and nothing else does: answers, edits, what is solved.

const PREFIX = "tinytorch-book:";

// A dictionary under one name; where storage is refused it lasts as long as the page.
export function memory(name) {
  const key = PREFIX + name;
  let values = {};
  try {
    values = JSON.parse(localStorage.getItem(key)) ?? {};
  } catch {
    // no storage, or not ours: begin with nothing
  }
  const write = () => {
    try {
      if (Object.keys(values).length) localStorage.setItem(key, JSON.stringify(values));
      else localStorage.removeItem(key);
    } catch {
      // full or refused: this visit remembers, the next does not
    }
  };
  return {
    get: (field) => values[field],
    set: (field, value) => { values[field] = value; write(); },
    remove: (field) => { if (field in values) { delete values[field]; write(); } },
    get all() { return values; },
    clear: () => { values = {}; write(); },
  };
}

// Forgets what was solved and answered; edits of code stay until their cell is reset.
export function forget() {
  try {
    for (const name of ["solved", "answers"]) localStorage.removeItem(PREFIX + name);
  } catch {
    // nothing was kept
  }
}
