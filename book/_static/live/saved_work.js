// A reader's account of the work, and the file that carries it to another browser.

import { docOf, make } from "./elements.js";
import { memory, names, remembers } from "./remembered_progress.js";

const BOOK = "tinytorch";
const VERSION = 1; // of the file
const isText = (value) => typeof value === "string";
const isObject = (value) => Boolean(value) && typeof value === "object" && !Array.isArray(value);
// What may be kept under a name, and what becomes of an entry that is here and in a file.
const KINDS = [
  { name: /^(solved|answers|hints)$/, fits: (value) => value === true },
  { name: /^predictions$/, fits: isObject },
  { name: /^parts$/, fits: isText },
  { name: /^sources$/, fits: (value) => Array.isArray(value) && value.every(isText) },
  { name: /^edits:book\/[\w/-]+$/, fits: (value) => isText(value?.of) && isText(value?.text), both },
];
const kindOf = (name) => KINDS.find((kind) => kind.name.test(name));

// All that is kept, as the text of a file; release: that of the package.
export function saved(release) {
  const kept = Object.fromEntries(names().filter(kindOf).map((name) => [name, memory(name).all]));
  return JSON.stringify({ book: BOOK, version: VERSION, release, kept }, null, 1) + "\n";
}

// Adds what a file holds to what is here; nothing is taken away. Says how many entries came, and
// how many the browser had no room for. Throws a sentence, and has changed nothing, if the file is no such file.
export function readBack(text) {
  const entries = entriesOf(text);
  let came = 0, lost = 0;
  for (const { name, field, value } of entries) {
    const here = memory(name);
    const mine = here.get(field);
    const merged = mine === undefined ? value : kindOf(name).both?.(mine, value) ?? mine;
    if (JSON.stringify(merged) === JSON.stringify(mine)) continue;
    came += 1;
    if (!here.set(field, merged)) lost += 1;
  }
  return { came, lost };
}

function entriesOf(text) {
  let file;
  try {
    file = JSON.parse(text);
  } catch {
    throw new Error("This file is damaged, or was not saved by this book: it is not JSON.");
  }
  if (file?.book !== BOOK) throw new Error("This file was not saved by this book.");
  if (file.version > VERSION) {
    throw new Error("This file was saved by a later edition of the book; this page cannot read it. Reload the page.");
  }
  const entries = isObject(file.kept) && Object.values(file.kept).every(isObject)
    ? Object.entries(file.kept).flatMap(([name, all]) =>
      Object.entries(all).map(([field, value]) => ({ name, field, value })))
    : [{}];
  const wrong = entries.find(({ name, value }) => !name || !kindOf(name)?.fits(value));
  if (wrong || file.version !== VERSION) {
    const where = wrong?.name ? ` What it has under “${wrong.name}” cannot be read.` : "";
    throw new Error(`This file is damaged; nothing was imported.${where}`);
  }
  return entries;
}

// Of two edits of one cell the one here stays, and the other stands below it as a comment.
function both(mine, other) {
  if (mine.text === other.text) return mine;
  const comment = ["# From the file that was read back:", ...other.text.split("\n").map((line) => `# ${line}`.trimEnd())];
  const added = comment.join("\n");
  return mine.text.includes(added) ? mine : { ...mine, text: `${mine.text}\n\n${added}` };
}

// Of the chapters in the contents, in their order: their exercises, and a function that says which
// of them comes next, the first open one from the last solved one on.
function onward({ exercises }, solved) {
  const path = [...document.querySelectorAll(".bd-sidebar-primary .bd-links a.reference")].flatMap((link) => {
    const { href } = link, chapter = link.firstChild.textContent.trim();
    return Object.keys(exercises[docOf(link)] ?? {}).map((id, i) => ({ id, href: `${href}#${id}`, name: `Exercise ${i + 1} of ${chapter}` }));
  });
  return () => {
    const last = path.findLastIndex(({ id }) => solved.get(id));
    return [...path.slice(last + 1), ...path].find(({ id }) => !solved.get(id));
  };
}

// On the first screen: the way on, in the room that the page has kept for it if there is something to go on with.
function goOn(place, open, made, total) {
  const points = `${made} of ${total} points`;
  place.hidden = !made;
  place.replaceChildren(...(!made ? [] : open
    ? [make("a", "", `Continue: ${open.name}`, { href: open.href }), make("span", "", `, ${points}`)]
    : [make("span", "", `All exercises on the path are solved: ${points}`)]));
}

// The landing page's account of it all, with the buttons that save it, read it back and forget it.
export function panel(data, solved, { button, announce }) {
  const place = document.querySelector(".tt-progress");
  if (!place) return () => {};
  const points = Object.values(data.exercises).reduce((all, exercises) => ({ ...all, ...exercises }), {});
  const total = Object.values(points).reduce((sum, n) => sum + n, 0);
  const release = /-(\d[\d.]*)-/.exec(data.wheel)?.[1];
  const text = make("p", "tt-progress__text");
  const bar = make("progress", "tt-progress__bar", "", { max: total, "aria-label": "Points" });
  const told = make("p", "tt-progress__told");
  const next = make("p", "tt-progress__next"), following = onward(data, solved);
  const above = document.querySelector(".tt-continue");
  const where = remembers() ? "is remembered in this browser only"
    : "is forgotten when you leave the page, for this browser keeps nothing for the book";
  const say = (sentence) => { told.textContent = sentence; announce(sentence); };
  const save = button("Save my work to a file", "", () => {
    const address = URL.createObjectURL(new Blob([saved(release)], { type: "application/json" }));
    const name = `tinytorch-book-${new Date().toISOString().slice(0, 10)}.json`;
    make("a", "", "", { href: address, download: name }).click();
    URL.revokeObjectURL(address);
    say(`Saved as ${name}.`);
  });
  const file = make("input", "", "", { type: "file", accept: ".json,application/json", hidden: "" });
  const read = button("Read it back", "", () => file.click());
  file.addEventListener("change", async () => {
    if (!file.files.length) return;
    try {
      const { came, lost } = readBack(await file.files[0].text());
      const room = lost ? ` The browser has no room for ${lost} of them: they last until this page is closed.` : "";
      say(came ? `Read back: ${came} ${came === 1 ? "entry was" : "entries were"} new here.${room}`
        : "Read back: everything in the file was here already.");
    } catch (error) {
      say(error.message);
    }
    file.value = ""; // so that the same file can be chosen again
    dispatchEvent(new Event("tt-progress"));
  });
  const clear = button("Forget my progress", "", () => {
    if (clear.dataset.sure) {
      for (const name of names()) if (!name.startsWith("edits:")) memory(name).clear();
      delete clear.dataset.sure;
      clear.textContent = "Forget my progress";
      say("Forgotten. What you have written in the cells is still there.");
      dispatchEvent(new Event("tt-progress"));
    } else {
      clear.dataset.sure = "asked";
      clear.textContent = "Really forget it? Press again";
    }
  });
  const buttons = make("div", "tt-progress__buttons");
  buttons.append(save, read, clear, file);
  place.append(text, bar, next, buttons, told);
  place.hidden = false;
  return () => {
    const ids = Object.keys(points), done = ids.filter((id) => solved.get(id));
    const made = done.reduce((sum, id) => sum + points[id], 0);
    // before there is a point there is no account, only the way to read back those of another browser
    place.classList.toggle("tt-progress--none", !made);
    text.textContent = made
      ? `${made} of ${total} points: ${done.length} of ${ids.length} exercises solved. `
        + `This ${where}; a file carries it to another one.`
      : `What you do here ${where}. A file carries it to another.`;
    const open = made && following();
    next.replaceChildren(...(open ? [make("a", "", `Next: ${open.name}`, { href: open.href })] : []));
    if (above) goOn(above, open, made, total);
    bar.hidden = !made;
    bar.value = made;
    save.hidden = names().length === 0;
    clear.hidden = names().every((name) => name.startsWith("edits:"));
  };
}
