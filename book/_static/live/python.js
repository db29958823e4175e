// One Python for one page: started once, before the first cell;
// it runs one cell at a time and can be stopped.

const ISOLATED = () => globalThis.crossOriginIsolated === true && "SharedArrayBuffer" in globalThis;
const PREPARING = 2000; // ms at most
const INTERRUPT = 2; // SIGINT, as Pyodide's interrupt buffer wants it

export class Kernel {
  // settings: {runtime, files, wheel, snapshot, bytes, patience, parts}: four absolute addresses, what they
  // bring together, how many seconds may pass without any of it, and what stands in my_parts.py. onstate: (state, {text, bytes,
  // total}). prepare: what comes before the first byte
  constructor(settings, onstate = () => {}, prepare = async () => {}) {
    this.settings = settings;
    this.onstate = onstate;
    this.prepare = prepare;
    this.state = "off"; // off, starting, ready, busy
    this.worker = null;
    this.waiting = [];
    this.current = null;
    this.kept = new Map(); // the reader's files, by the name that cells read: a new Python gets them again
    this.seconds = 0; // what the start took
    this.mounted = new Map(); // files by folder
  }

  get canInterrupt() {
    return Boolean(this.interrupt || this.word);
  }

  // seconds since it was started
  get elapsed() {
    return (performance.now() - this.began) / 1000;
  }

  #set(state, about = {}) {
    this.state = state;
    this.onstate(state, about);
  }

  // Starts Python if it has not been started; a failure is nobody's who has not run a cell.
  load() {
    if (this.state === "off") this.#start();
  }

  async #start() {
    const began = this.began = performance.now();
    this.times = {}; // seconds at the end of each step of the start
    this.#set("starting", { text: "Loading Python" });
    // Python can do without
    await Promise.race([this.prepare().catch(() => {}), new Promise((done) => { setTimeout(done, PREPARING); })]);
    if (this.state !== "starting" || this.began !== began) return; // ended meanwhile
    this.interrupt = ISOLATED() ? new Uint8Array(new SharedArrayBuffer(1)) : null;
    // else Python asks the service worker whether this word has come; the start says whether it can
    const word = !this.interrupt && navigator.serviceWorker?.controller ? crypto.randomUUID() : null;
    this.worker = new Worker(new URL("python_worker.js", import.meta.url), { type: "module" });
    this.worker.addEventListener("message", ({ data }) => this.#hear(data));
    this.worker.addEventListener("error", (event) => {
      event.preventDefault();
      const load = this.state === "starting";
      const text = load ? "python_worker.js cannot be reached" : "it ended unexpectedly";
      this.#broken({ text: event.message || text, load });
    });
    this.worker.postMessage({ type: "start", ...this.settings, interrupt: this.interrupt, word });
    for (const [folder, files] of this.mounted) this.worker.postMessage({ type: "mount", folder, files });
    // once it runs, the worker watches over what it loads
    const { patience } = this.settings;
    const silent = () => this.#broken({ text: `nothing has come for ${patience} s`, load: true });
    this.silence = setTimeout(silent, 1000 * patience);
  }

  #hear(message) {
    const job = this.current;
    clearTimeout(this.silence);
    if (message.type === "progress") {
      this.onstate(this.state, message);
    } else if (message.type === "ready") {
      this.times = message.times;
      this.word = message.word ?? null;
      this.seconds = this.elapsed;
      this.#set("ready");
      const again = [...this.kept.values()].map((each) => ({ ...each, id: this.#number(), resolve: () => {} }));
      this.waiting.unshift(...again);
      this.#next();
    } else if (message.type === "broken") {
      this.#broken(message);
    } else if (!job || message.id !== job.id) {
      // of a cell that was given up
    } else if (message.type === "running") {
      job.started = performance.now();
      job.onrunning?.(message);
    } else if (message.type === "message") {
      job.onmessage(message);
    } else {
      const seconds = (performance.now() - (job.started ?? performance.now())) / 1000;
      this.current = null;
      this.#set("ready");
      job.resolve({ ...message, seconds });
      this.#next();
    }
  }

  #next() {
    if (this.current || !this.waiting.length || this.state !== "ready") return;
    this.current = this.waiting.shift();
    if (this.interrupt) this.interrupt[0] = 0;
    this.#set("busy");
    const told = Object.entries({ type: "run", above: [], ...this.current });
    // what the page does with the answers stays here
    this.worker.postMessage(Object.fromEntries(told.filter(([, value]) => typeof value !== "function")));
  }

  #number() {
    this.count = (this.count ?? 0) + 1;
    return this.count;
  }

  // A file that was put among Python's own, which the next Python gets too; and one no longer wanted.
  keep(job) {
    this.kept.set(job.name, job);
  }

  drop(name) {
    this.kept.delete(name);
  }

  // Runs a cell after those before it, or does what `type` says: {type: "takeFile", name, given, encoding,
  // least, blob} gives Python a file, "removeFile" takes it away, "readFile" asks for one that a cell has
  // written. Resolves to {type: "done", ok, seconds}, {type: "missing", names, needed}, {type: "stopped",
  // lost, loading} or {type: "broken", text, load}; lost: the names are gone; loading: there were none yet;
  // load: Python could not be loaded, which may be tried again.
  run(job) {
    return new Promise((resolve) => {
      this.waiting.push({ ...job, id: this.#number(), resolve });
      this.load();
      this.#next();
    });
  }

  // Shows Python files of the page, [{name, data: Blob}], in a folder: they are read where they are.
  mount(folder, files) {
    this.mounted.set(folder, files);
    this.worker?.postMessage({ type: "mount", folder, files });
  }

  // Interrupts the running cell and forgets those that wait. Without shared memory and a service worker Python
  // cannot hear anything while it runs: then it is ended, and what the cells had defined with it.
  stop() {
    const loading = this.state === "starting";
    for (const job of this.waiting.splice(0)) job.resolve({ type: "stopped", lost: false, loading });
    if (!this.current) {
      if (loading) this.#end({ type: "stopped", lost: true });
    } else if (this.canInterrupt && !this.asked) {
      const job = this.current;
      if (this.interrupt) this.interrupt[0] = INTERRUPT;
      else navigator.serviceWorker.controller?.postMessage({ stop: `${this.word}-${job.id}` });
      this.asked = setTimeout(() => (this.asked = null), 5000);
      job.resolve = ((resolve) => (result) => {
        clearTimeout(this.asked);
        this.asked = null;
        resolve(result);
      })(job.resolve);
    } else {
      this.#end({ type: "stopped", lost: true });
    }
  }

  restart() {
    if (this.state !== "off") this.#end({ type: "stopped", lost: true });
  }

  #broken({ text, load = false }) {
    this.#end({ type: "broken", text, load, lost: true });
  }

  #end(result) {
    clearTimeout(this.silence);
    this.worker?.terminate();
    this.worker = null;
    clearTimeout(this.asked);
    this.asked = null;
    const jobs = [this.current, ...this.waiting.splice(0)].filter(Boolean);
    this.current = null;
    this.#set("off");
    for (const job of jobs) job.resolve(result);
  }
}
