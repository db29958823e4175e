// What a cell shows, in the markup of the stored outputs, so that both look alike.

import { make } from "./elements.js";
import { report } from "./reports.js";

const LIMIT = 200_000; // characters of a cell's text: a page that holds more becomes slow

export class Output {
  // cell: its element; places: the addresses of what can run more than this page, by name
  constructor(cell, places = {}) {
    this.cell = cell;
    this.places = places;
    this.box = cell.querySelector(".cell_output"); // where what comes is shown
    this.stored = this.box;
    this.original = this.stored && [...this.stored.childNodes];
  }

  // Whether a run of the reader's stands here.
  get own() {
    return Boolean(this.box?.matches(".tt-live__own"));
  }

  // The text that was printed when the book was built, or by the last run.
  get text() {
    this.flush();
    return this.box ? textOf(this.box) : "";
  }

  // Makes room: in the place of the stored output, or beside it for a smaller run.
  clear(beside = false) {
    if (beside || !this.stored) {
      this.restore();
      this.box = document.createElement("div");
      this.box.className = "cell_output docutils container tt-live__own";
      const fold = this.cell.matches(".tag_hide-cell") && this.cell.querySelector("details.hide");
      if (this.stored) this.stored.after(this.box);
      else (fold || this.cell).append(this.box);
    } else {
      if (this.box !== this.stored) this.restore();
      this.box.classList.add("tt-live__own");
      this.box.replaceChildren();
    }
    if (beside) this.note("Your smaller run");
    this.last = this.shownLine = null;
    this.bySlot = new Map();
    this.count = 0;
  }

  add(message) {
    if (message.kind === "stream") this.#stream(message);
    else if (message.kind === "display") this.#display(message);
    else if (message.kind === "report") this.#report(message);
    else if (message.kind === "figure") this.#figure(message.svg);
    else if (message.kind === "file") this.#file(message);
    else if (message.kind === "error") this.#error(message);
    else if (message.kind === "limit") this.#limit(message);
  }

  #block(classes, name) {
    this.flush();
    const outer = document.createElement("div");
    outer.className = `output ${classes} notranslate`;
    outer.innerHTML = '<div class="highlight"><pre></pre></div>';
    this.box.append(outer);
    this.last = name;
    return outer.querySelector("pre");
  }

  #stream({ name, text }) {
    if (this.count > LIMIT) return;
    if (this.last !== name) {
      this.flush();
      const pre = this.#block(name === "stderr" ? "stderr" : "stream highlight-myst-ansi", name);
      this.line = ""; // the unfinished one, which may still be overwritten
      this.finished = ""; // lines that wait to be shown
      this.shownLine = new Text("");
      pre.append(this.shownLine);
    }
    this.count += text.length;
    const all = this.line + text;
    const end = all.lastIndexOf("\n") + 1;
    this.finished += overwritten(all.slice(0, end));
    this.line = overwritten(all.slice(end));
    if (this.count > LIMIT) this.line += "\n(the rest of what this cell prints is left out)\n";
    // a loop may print faster than a page can be drawn
    this.timer ??= setTimeout(() => this.flush(), 30);
  }

  // Shows what has been printed since the last time.
  flush() {
    clearTimeout(this.timer);
    this.timer = null;
    if (!this.shownLine) return;
    const pre = this.shownLine.parentNode;
    const follows = pre.scrollHeight - pre.scrollTop - pre.clientHeight < 2;
    if (this.finished) this.shownLine.before(shown(this.finished));
    this.finished = "";
    this.shownLine.data = shown(this.line);
    if (follows) pre.scrollTop = pre.scrollHeight; // as a terminal does
  }

  // A file that the reader may take along.
  #file({ name, text }) {
    this.flush();
    const type = name.endsWith(".html") ? "text/html" : "text/x-python";
    const link = document.createElement("a");
    link.className = "tt-live__button tt-live__file";
    link.textContent = `Download ${name}`;
    link.href = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
    link.download = name;
    this.box.append(link);
    this.last = "file";
  }

  #display({ slot, text }) {
    const pre = this.bySlot.get(slot) ?? this.#block("text_plain highlight-myst-ansi", "display");
    this.bySlot.set(slot, pre);
    pre.textContent = shown(text) + "\n";
  }

  // A check may say more later: then the later report takes the place of the first.
  #report(message) {
    this.flush();
    const made = report(message);
    const before = this.bySlot.get(message.slot);
    this.bySlot.set(message.slot, made);
    if (before) before.replaceWith(made);
    else this.box.append(made);
    this.last = "report";
  }

  #figure(svg) {
    // the caption of the stored figure stays: it belongs to the cell, not to this drawing
    const stored = this.original?.find((node) => node.nodeName === "FIGURE");
    const first = this.box === this.stored && !this.box.querySelector("figure");
    const figure = stored && first
      ? stored.cloneNode(true) : document.createElement("figure");
    const drawing = figure.querySelector("svg, img");
    const made = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
    if (drawing) drawing.replaceWith(made);
    else figure.prepend(made);
    this.box.append(figure);
    this.last = "figure";
  }

  // The reader's own line is marked; what the frames of packages add is folded.
  #error({ text, plain, marked = "", whole }) {
    this.flush();
    if (plain) this.note(plain).classList.add("tt-live__plain");
    const pre = this.#block("traceback", "error");
    const at = text.lastIndexOf(marked);
    pre.textContent = shown(text.slice(0, at));
    if (marked) pre.append(make("strong", "tt-live__line", shown(marked)));
    pre.append(shown(text.slice(at + marked.length)) + "\n");
    if (!whole) return;
    const fold = make("details", "output traceback notranslate");
    fold.innerHTML = '<summary class="tt-live__note">All frames</summary><div class="highlight"><pre></pre></div>';
    fold.querySelector("pre").textContent = shown(whole) + "\n";
    this.box.append(fold);
  }

  // What this page cannot do, and where it can be done.
  #limit({ text, where }) {
    this.flush();
    const known = where.filter((name) => this.places[name]);
    const note = this.note(`${text} Run this in `);
    for (const [i, name] of (known.length ? known : where).entries()) {
      const place = document.createElement(this.places[name] ? "a" : "span");
      if (this.places[name]) place.href = this.places[name];
      place.textContent = name;
      note.append(i === 0 ? "" : " or ", place);
    }
    note.append(".");
    this.last = "limit";
  }

  note(text) {
    const p = document.createElement("p");
    p.className = "tt-live__note";
    p.textContent = text;
    this.box.append(p);
    return p;
  }

  // What scrolls must scroll by keyboard too.
  reachable() {
    this.flush();
    for (const element of this.box ? [this.box, ...this.box.querySelectorAll("pre")] : []) {
      const scrolls = element.scrollWidth > element.clientWidth || element.scrollHeight > element.clientHeight;
      if (scrolls && getComputedStyle(element).overflowY !== "visible") element.tabIndex = 0;
    }
  }

  restore() {
    if (this.box !== this.stored) this.box.remove();
    this.box = this.stored;
    this.stored?.classList.remove("tt-live__own");
    this.stored?.removeAttribute("tabindex");
    this.stored?.replaceChildren(...this.original);
  }
}

export function textOf(box) {
  return [...box.querySelectorAll(".output:not(details) pre")].map((pre) => pre.textContent).join("");
}

// A carriage return sends the writer back to the start of its line, as a terminal does.
export function overwritten(text) {
  return text.split("\n").map((line) => {
    const parts = line.split("\r");
    let last = parts.pop(); // empty after a final \r: the line stands until something comes
    if (last === "" && parts.length) return parts.at(-1) + "\r";
    while (parts.length) {
      const under = parts.pop();
      if (under.length > last.length) last += under.slice(last.length);
    }
    return last;
  }).join("\n");
}

// A character that has no sign is shown as Python writes it, as in the stored outputs (theme.py).
const UNSEEN = /[^\t\n\x20-\x7e\xa0-\ufffd]/g;
const written = (unseen) => {
  const code = unseen.charCodeAt(0).toString(16);
  return code.length < 3 ? `\\x${code.padStart(2, "0")}` : `\\u${code}`;
};
const shown = (text) => text.replaceAll("\r", "").replace(UNSEEN, written);
