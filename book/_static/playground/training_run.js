// A model that the page's Python trains, a few steps at a time. Between two pieces other cells get their turn, and
// nothing but the wish for the next piece keeps it going: a pause needs no interrupt and loses nothing. The whole run is
// fetched from Python now and then; should that end, another one goes on from there, to the same numbers.

export const FILE = "yours.safetensors"; // the weights, among Python's files
const WHOLE = "training-here.safetensors"; // the run, with all that it depends on
const PIECE = 10; // steps
const SAFE = 50; // steps after which the run is fetched,
const KEPT = 200; // and after which the browser keeps it

const NO_MEMORY = /memory|allocation failed|unable to allocate/i;

// What runs in Python: these lines once, and for every piece those below.
export const begin = (size, seed) => `import json

from tinytorch_book.experiments.live_training import live_trainer, save_trained

training_here = live_trainer("${size}", seed=${seed})
`;
const resume = `training_here.load("${WHOLE}")
`;
const tell = (known) => `save_trained("${FILE}", training_here)
print(json.dumps([training_here.floor, training_here.history[${known}:]]))
`;
export const piece = (known) => `training_here.run(${PIECE})
${tell(known)}`;

export class TrainingRun {
  #turn = Promise.resolve(); // the loop that is on

  // kept: a KeptTraining; changed: called when something new is to be shown
  constructor(kernel, kept, changed) {
    Object.assign(this, { kernel, kept, changed, phase: "none", why: "", unkept: "", wanted: false, unreached: false });
    this.#forget();
  }

  #forget() {
    Object.assign(this, { losses: [], heldOut: [], floor: null, weights: null, whole: null, safe: 0, stored: 0, python: null });
  }

  get step() {
    return this.losses.length;
  }

  // From random numbers.
  async start({ size, seed }) {
    if (this.restarting) return undefined;
    this.restarting = true;
    await this.pause();
    this.restarting = false;
    this.#forget();
    Object.assign(this, { size, seed });
    return this.goOn();
  }

  // What was kept at another visit, where it was left; nothing of Python is needed before it goes on.
  take({ size, seed, floor, losses, heldOut, run, weights }) {
    Object.assign(this, { size, seed, floor, losses, heldOut, weights, whole: run, safe: losses.length, phase: "paused" });
  }

  // Trains on; resolves when it has paused.
  goOn() {
    if (this.wanted) return this.#turn;
    this.wanted = true;
    if (this.phase === "pausing") this.#set("training"); // the loop is still on
    else this.#turn = this.#train();
    return this.#turn;
  }

  // Ends with the piece that is on.
  pause() {
    this.wanted = false;
    if (["starting", "training"].includes(this.phase)) this.#set("pausing");
    return this.#turn;
  }

  #set(phase, why = "") {
    Object.assign(this, { phase, why });
    this.changed();
  }

  async #train() {
    this.unreached = false;
    this.#set("starting");
    let why = await this.#begin();
    do {
      while (!why && this.wanted) {
        if (this.phase === "starting") this.#set("training");
        why = await this.#advance();
      }
      why ||= await this.#fetchWhole();
      await this.keep();
    } while (!why && this.wanted); // meanwhile it may go on
    this.wanted = false;
    this.#set("paused", why && `${why} ${this.#rest()}`);
  }

  // What is left after something went wrong.
  #rest() {
    if (this.python && this.python === this.kernel.worker) return "Nothing is lost: go on when you like.";
    if (this.safe) return `The first ${this.safe} steps are safe: going on begins there and comes to the same numbers.`;
    return this.step ? "Going on begins with the same random numbers, and takes the same steps again." : "No step had been taken, so nothing is lost.";
  }

  // Gives Python the run, unless it has it. Returns "" or why it could not, as do all that follow.
  async #begin() {
    if (this.python && this.python === this.kernel.worker) return "";
    if (this.whole) {
      const blob = new Blob([this.whole]);
      const put = await this.kernel.run({ type: "takeFile", name: WHOLE, given: "the run", encoding: "", least: 0, blob });
      if (!put.ok) return this.#reason(put, put.text);
    }
    const why = await this.#run(begin(this.size, this.seed) + (this.whole ? resume : "") + tell(0), true);
    if (!why) this.python = this.kernel.worker;
    return why || this.#fetchWeights();
  }

  async #advance() {
    const why = await this.#run(piece(this.step)) || await this.#fetchWeights();
    if (why || this.step - this.safe < SAFE) return why;
    const failed = await this.#fetchWhole();
    if (!failed && this.step - this.stored >= KEPT) await this.keep();
    return failed;
  }

  // Runs a piece and takes over what it prints: the floor, and a record for each step that is not known yet.
  async #run(source, whole = false) {
    let error = null, said = "";
    const result = await this.kernel.run({
      source, force: true, asserts: true, title: "The training", alt: "", prefix: "tt-train",
      onmessage: (message) => {
        if (message.kind === "error") error = message;
        if (message.kind === "stream" && message.name === "stdout") said += message.text;
      },
    });
    if (result.type !== "done" || !result.ok) return this.#reason(result, error?.text, error?.name);
    const [floor, records] = JSON.parse(said);
    if (whole) [this.losses, this.heldOut] = [[], []];
    this.floor = floor;
    for (const { loss, validation } of records) {
      this.losses.push(loss);
      if (validation !== null) this.heldOut.push([this.step, validation]);
    }
    return "";
  }

  async #fetchWeights() {
    const { bytes, why } = await this.#get(FILE);
    if (why) return why;
    this.weights = bytes;
    this.changed();
    return "";
  }

  async #fetchWhole() {
    const why = await this.#run(`training_here.save("${WHOLE}")\n${tell(this.step)}`);
    if (why) return why;
    const { bytes, why: failed } = await this.#get(WHOLE);
    if (!failed) Object.assign(this, { whole: bytes, safe: this.step });
    return failed;
  }

  async #get(name) {
    const result = await this.kernel.run({ type: "readFile", name });
    if (!result.ok) return { why: this.#reason(result, `${name} is not there`) };
    return { bytes: result.bytes.slice().buffer, why: "" };
  }

  // Keeps what is safe for the next visit.
  async keep() {
    if (!this.whole || this.stored === this.safe && !this.unkept) return;
    const { size, seed, floor, safe, whole, weights } = this;
    const about = { size, seed, floor, losses: this.losses.slice(0, safe), heldOut: this.heldOut.filter(([step]) => step <= safe) };
    this.stored = safe;
    this.unkept = await this.kept.write({ about, run: whole, weights });
  }

  #reason({ type, loading, lost, load, text: ended = "" }, text = "", name = "") {
    if (type === "broken" && load) {
      this.unreached = true;
      return navigator.onLine === false ? "There is no connection, so Python could not be loaded; it goes on when there is one."
        : `Python could not be loaded: ${ended}.`;
    }
    if (type === "stopped" && loading) return "It was stopped before Python was there.";
    if (type === "stopped") return lost ? "Python was stopped, and the training with it." : "It was stopped together with a cell.";
    const said = type === "broken" ? ended : text.trim().split("\n").at(-1);
    if (NO_MEMORY.test(`${name} ${said}`)) return "There is no memory left for this: close other tabs, or choose a smaller model.";
    if (name === "KeyboardInterrupt") return "It was stopped together with a cell.";
    return type === "broken" ? `Python has ended: ${ended}.` : `It cannot go on: ${said}.`;
  }
}
