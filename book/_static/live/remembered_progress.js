// What a reader's browser keeps, and nothing else does: answers, edits, what is solved.

const PREFIX = "tinytorch-book:";

// A dictionary under one name, shared by the tabs of a browser: each change is made to what is kept
// by then, and `onchange` is called when another tab has made one. Where storage is refused or full
// it lasts as long as the page.
export function memory(name, onchange = () => {}) {
  const key = PREFIX + name;
  let values = {};
  let refused = false;
  const read = () => {
    if (refused) return values;
    try {
      values = JSON.parse(localStorage.getItem(key)) ?? {};
    } catch {
      // no storage, or not ours: what there is
    }
    return values;
  };
  const write = (changed) => {
    values = changed;
    try {
      if (Object.keys(values).length) localStorage.setItem(key, JSON.stringify(values));
      else localStorage.removeItem(key);
    } catch {
      refused = true;
    }
  };
  addEventListener("storage", (event) => {
    if (event.key === key || event.key === null) onchange(); // null: all was cleared
  });
  return {
    get: (field) => read()[field],
    set: (field, value) => write({ ...read(), [field]: value }),
    remove: (field) => {
      const { [field]: gone, ...others } = read();
      if (gone !== undefined) write(others);
    },
    get all() { return read(); },
    clear: () => write({}),
  };
}
