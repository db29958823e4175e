// A file of the reader's for the cells of a page: dropped or chosen, looked at by the page's own
// Python, and kept in its folder under one name. Nothing of it leaves the browser.

import { make } from "./elements.js";

const MOST = 100e6; // bytes, as many as load_text reads
const size = (bytes) => {
  if (bytes < 1e3) return bytes === 1 ? "1 byte" : `${bytes} bytes`;
  return bytes < 1e6 ? `${Math.round(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
};
const HERE = "It is read by the Python in this page and sent nowhere. "
  + "Closing or reloading the page forgets it.";

export function yourFiles(kernel, tools) {
  for (const place of document.querySelectorAll(".tt-file")) new Place(place, kernel, tools);
  // a file that misses its place would be opened instead of the page
  for (const name of ["dragover", "drop"]) {
    addEventListener(name, (event) => {
      if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
    });
  }
}

class Place {
  constructor(place, kernel, { button, announce }) {
    Object.assign(this, { place, kernel, button, announce }, place.dataset);
    this.#build();
    for (const name of ["dragenter", "dragover"]) {
      place.addEventListener(name, (event) => {
        event.preventDefault();
        place.classList.add("tt-file--over");
      });
    }
    place.addEventListener("dragleave", (event) => {
      if (!place.contains(event.relatedTarget)) place.classList.remove("tt-file--over");
    });
    place.addEventListener("drop", (event) => {
      event.preventDefault();
      place.classList.remove("tt-file--over");
      this.take(event.dataTransfer.files);
    });
  }

  #build() {
    this.input = make("input", "", "", { type: "file", hidden: "", "aria-label": this.title });
    this.input.addEventListener("change", () => {
      this.take(this.input.files);
      this.input.value = ""; // so that the same file can be chosen again
    });
    this.choose = this.button("Choose a file", `Choose a file: ${this.title}`, () => this.input.click());
    this.choose.classList.add("tt-live__button--run");
    this.forget = this.button("Forget it", `Forget it: ${this.title.toLowerCase()}`, () => this.#forget());
    this.save = this.button("Save it", `Save it: ${this.name}`, () => this.#save());
    this.forget.hidden = true;
    this.save.hidden = this.download === undefined;
    this.bar = make("div", "tt-file__bar", "", { role: "group", "aria-label": this.title });
    this.bar.append(this.choose, this.input, this.save, this.forget);
    this.status = make("p", "tt-file__status");
    const title = make("p", "tt-file__title", this.title);
    const takes = make("p", "", `Drop a file here or choose one. ${this.takes} ${HERE}`);
    this.place.replaceChildren(title, takes, this.bar, this.status);
    this.place.classList.add("tt-file--ready");
  }

  #say(said, state = "") {
    const before = state === "error" && !this.forget.hidden ? " The file before it is still in place." : "";
    const text = said + before;
    this.status.textContent = text;
    this.status.dataset.state = state;
    this.announce(text, state === "error");
  }

  async take(files) {
    this.offer?.remove();
    if (this.waits) return this.#say("One file is being read; wait for it to end.", "error");
    if (!files.length) return this.#say("That was no file.", "error");
    const [file] = files;
    if (files.length > 1) return this.#say(`These are ${files.length} files: put them into one.`, "error");
    if (!file.size) return this.#say(`${file.name} is empty, or a folder.`, "error");
    if (file.size > MOST) {
      const limit = `a page takes ${size(MOST)} at most. Cut off a piece of it.`;
      return this.#say(`${file.name} has ${size(file.size)}; ${limit}`, "error");
    }
    try { // a copy: the file may be changed or gone when Python is started again
      return await this.#give({ blob: new Blob([await file.arrayBuffer()]), given: file.name });
    } catch {
      return this.#say(`${file.name} cannot be read. Is it a folder?`, "error");
    }
  }

  async #give({ blob, given, encoding = "" }) {
    const wait = this.kernel.state === "ready" ? "" : ", as soon as Python is there";
    this.#say(`Looking at ${given} (${size(blob.size)})${wait} …`);
    this.waits = true;
    const job = { type: "takeFile", name: this.name, given, encoding, least: Number(this.least ?? 0), blob };
    const result = await this.kernel.run(job);
    this.waits = false;
    if (result.type === "stopped") return this.#say(`${given} was not read: Python was stopped.`, "error");
    if (result.type === "broken") return this.#say(`Python cannot be started: ${result.text}.`, "error");
    if (result.ok) {
      this.kernel.keep(job);
      this.forget.hidden = false;
      const next = this.download !== undefined ? "Run the cell of imports, then the one below" : "Run the cells from the first on";
      return this.#say(`${result.text} The cells now find it as ${this.name}. ${next}.`, "done");
    }
    if (result.encoding) {
      const called = result.encoding.replace("cp", "Windows-");
      this.offer = this.button(`Read it as ${called}`, "", () => {
        this.choose.focus();
        this.offer.remove();
        this.#give({ blob, given, encoding: result.encoding });
      });
      this.choose.after(this.offer);
    }
    return this.#say(result.text, "error");
  }

  async #forget() {
    this.choose.focus();
    this.kernel.drop(this.name);
    if (this.kernel.state !== "off") await this.kernel.run({ type: "removeFile", name: this.name });
    this.forget.hidden = true;
    this.#say("It is forgotten. Run the cells again, from the first on.");
  }

  // Hands out what a cell has written.
  async #save() {
    const there = this.kernel.state !== "off" && await this.kernel.run({ type: "readFile", name: this.name });
    if (!there?.ok) return this.#say(`There is no ${this.name} yet: run the cell that saves it.`, "error");
    const link = make("a", "", "", { download: this.name });
    link.href = URL.createObjectURL(new Blob([there.bytes]));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    return this.#say(`${this.name}, ${size(there.bytes.length)}, is among your downloads.`, "done");
  }
}
