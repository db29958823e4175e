// A page with live cells, and a Python for it that knows a few words, one a line:
//
//     x = 1        defines x                    uses x      needs it
//     say text     prints                       fail why    ends with an error
//     forever      runs until it is stopped     tell JSON   sends a message as live_runner.py does

import { registerHooks } from "node:module";
import { setTimeout as pause } from "node:timers/promises";
import { openPage } from "./dom.mjs";

const LIVE = new URL("../../book/_static/live/", import.meta.url);

// Stands in the place of a Worker. `Python.begins` says how it starts; `Python.all` are those that were started.
export class Python {
  static all = [];
  static told = new Set(); // what the service worker has heard
  static begins = (python) => python.say({ type: "ready", times: {} });

  constructor() {
    Object.assign(this, { names: new Set(), heard: [], listeners: { message: [], error: [] }, ended: false });
    Python.all.push(this);
  }

  addEventListener(type, listener) {
    this.listeners[type].push(listener);
  }

  say(data) {
    if (!this.ended) for (const listener of this.listeners.message) listener({ data });
  }

  crash(message = "") {
    for (const listener of this.listeners.error) listener({ message, preventDefault() {} });
  }

  terminate() {
    this.ended = true;
  }

  postMessage(message) {
    this.heard.push(message);
    if (message.type === "start") Object.assign(this, { interrupt: message.interrupt, word: message.word });
    if (message.type === "start") queueMicrotask(() => Python.begins(this));
    else if (message.type === "run") queueMicrotask(() => this.#run(message));
    else if (message.type !== "mount") queueMicrotask(() => this.say({ type: "done", id: message.id, ...Python.files(message) }));
  }

  static files = () => ({ ok: true, text: "a.txt: 3 characters." });

  async #run({ id, source, force, above, asserts }) {
    const lines = source.split("\n").map((line) => line.trim());
    const defined = lines.map((line) => /^(\w+) = /.exec(line)?.[1]).filter(Boolean);
    const names = lines.map((line) => /^uses (\w+)/.exec(line)?.[1]).filter((name) => name && !this.names.has(name) && !defined.includes(name));
    if (names.length && !force) {
      const needed = [...above.keys()].filter((i) => names.some((name) => new RegExp(`^${name} = `, "m").test(above[i])));
      this.say({ type: "missing", id, names, needed });
      return;
    }
    this.say({ type: "running", id, small: asserts === false });
    const tell = (message) => this.say({ type: "message", id, ...message });
    let ok = names.length === 0;
    for (const line of lines) {
      const [word, ...rest] = line.split(" "), text = rest.join(" ");
      if (word === "say") tell({ kind: "stream", name: "stdout", text: `${text.replaceAll("\\r", "\r")}\n` });
      if (word === "tell") tell(JSON.parse(text));
      if (word === "fail") {
        tell({ kind: "error", name: text, text: `Traceback\n${text}: it failed`, plain: `It is ${text}.` });
        ok = false;
      }
      if (word === "forever") {
        while (!this.ended && !this.interrupt?.[0] && !Python.told.has(`${this.word}-${id}`)) await pause(1);
        tell({ kind: "error", name: "KeyboardInterrupt", text: "Stopped." });
        ok = false;
      }
    }
    for (const name of defined) this.names.add(name);
    this.say({ type: "done", id, ok });
  }
}

const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

// A cell as Sphinx writes it; `output` is what the book has printed.
export const cell = (code, { tags = [], output = "" } = {}) => {
  const stored = output && `<div class="cell_output container"><div class="output stream"><div class="highlight"><pre>${output}</pre></div></div></div>`;
  const input = `<div class="cell_input"><div class="highlight-ipython3"><pre>${escaped(code)}\n</pre></div></div>`;
  const fold = tags.includes("hide-cell")
    ? `<details class="hide"><summary>Show</summary>${input}${stored}</details>` : input + stored;
  return `<div class="cell ${tags.map((tag) => `tag_${tag}`).join(" ")}">${fold}</div>`;
};

let pages = 0;

// Each page has modules of its own, as after a reload.
registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context), [page] = /\?page=\d+$/.exec(context.parentURL ?? "") ?? [];
    return page && specifier.startsWith(".") && !found.url.includes("?") ? { ...found, url: found.url + page } : found;
  },
});

// Opens a page whose body is this markup. `infos`: of its cells; kept: the storage of the visit before.
export async function openLive(markup, infos, { data = {}, kept = {}, asked = [], body = "", storage } = {}) {
  const about = {
    page: "book/a", cells: infos.map((info) => ({ tags: [], ...info })), runtime: "pyodide/", wheel: "tinytorch_book-1.0-py3.whl",
    snapshot: "python.bin", bytes: 9e6, places: { Colab: "https://colab.test/" }, exercises: {}, ...data,
  };
  openPage(`${body}<article>${markup}</article><script id="tt-live"></script>`, { asked });
  Object.assign(localStorage, kept);
  if (storage === "refused") localStorage.setItem = () => { throw new Error("full"); };
  document.getElementById("tt-live").textContent = JSON.stringify(about);
  document.documentElement.dataset.content_root = "https://book.test/";
  Object.assign(globalThis, { Worker: Python, crossOriginIsolated: false });
  Object.assign(Python, { all: [], begins: (python) => python.say({ type: "ready", times: {} }) });
  await import(new URL(`cells.js?page=${pages += 1}`, LIVE));
  return new Live();
}

export class Live {
  cells = globalThis.tinytorchLive.cells;
  kernel = globalThis.tinytorchLive.kernel;
  said = document.body.querySelector("div[role=log]");
  errors = document.body.querySelector("div[aria-live=assertive]");

  // What a screen reader was told, and the last of it.
  get heard() {
    return [...this.said.children, ...this.errors.children].toSorted((a, b) => a.dataset.at - b.dataset.at).map((each) => each.textContent);
  }

  get voice() {
    return { textContent: this.heard.at(-1) };
  }

  cell(number) {
    return this.cells[number - 1];
  }

  button(name, place = document.body) {
    const named = (each) => (each.getAttribute("aria-label") ?? each.textContent).startsWith(name) || each.textContent.startsWith(name);
    return place.querySelectorAll("button").find((each) => named(each) && !each.closest("[hidden]"));
  }

  press(number, name) {
    this.button(name, this.cell(number).element).click();
  }

  status(number) {
    return this.cell(number).status.textContent;
  }

  async until(condition) {
    for (let i = 0; !condition(); i += 1) {
      if (i > 2000) throw new Error(`it never came that ${condition}`);
      await pause(1);
    }
  }

  // Waits until a cell has come to this end; what it shows.
  async ended(number, state = "done") {
    const { element, output } = this.cell(number);
    await this.until(() => ["done", "error", "stopped", "missing"].includes(element.dataset.live) && element.dataset.live === state);
    await pause(0);
    return output.text;
  }

  get ran() {
    return this.cells.filter(({ ran }) => ran !== null).map(({ number }) => number);
  }
}
