// GPT-2 in the page: its published weights come when the reader asks for them, stay, and write in the page's Python.

import { make } from "../live/elements.js";
import { duration } from "../live/rows.js";
import { megabytes, Published } from "./fetching.js";

const COMPARING = "Compare with the known texts";
const FOLDER = "/published/gpt2"; // where Python finds the files
const LOAD = `from tinytorch.models.gpt2 import load_gpt2, stream_text

gpt2, gpt2_tokenizer = load_gpt2("${FOLDER}", dtype="int8")
`;
const COMPARE = `from tinytorch.models.gpt2 import compare

for found in compare(gpt2, gpt2_tokenizer):
    print(found, flush=True)
`;
const COMPARED = /(\d+) of (\d+) tokens as expected/g;
const EXAMPLE = "Once upon a time";
const SECOND = 1000, QUARTERS = 4; // how often a listener hears how far it is

class Paused extends Error {}

// place: the element of the directive, which knows the address and what it costs. tools: {kernel, button, announce}
export async function panel(place, tools) {
  const made = new Panel(place, tools);
  await made.show();
  return made;
}

class Panel {
  constructor(place, { kernel, button, announce }) {
    Object.assign(this, { place, kernel, announce });
    const { patience, pause } = place.dataset;
    const settings = patience ? { patience: Number(patience), pause: Number(pause) } : {};
    this.weights = new Published(place.dataset.address, settings);
    this.told = make("p", "tt-published__told");
    this.bar = make("progress", "tt-progress__bar", "", { "aria-label": "Of GPT-2’s weights" });
    this.fetchButton = button("", "", () => this.fetch());
    this.fetchButton.classList.add("tt-live__button--run");
    this.pauseButton = button("Pause", "Pause fetching", () => this.abort.abort(new Paused()));
    this.compareButton = button(COMPARING, "", () => this.compare());
    this.forgetButton = button("Forget the model", "", () => this.forget());
    const buttons = make("div", "tt-published__buttons");
    buttons.append(this.fetchButton, this.pauseButton, this.compareButton, this.forgetButton);
    this.compared = make("div", "tt-published__compared");
    this.compared.hidden = true;
    this.#buildForm(button);
    place.replaceChildren(this.told, this.bar, buttons, this.compared, this.form, this.written);
  }

  #buildForm(button) {
    this.form = make("form", "tt-published__form");
    this.beginning = make("textarea", "", EXAMPLE, { rows: 2 });
    this.tokens = make("input", "", "", { type: "number", min: 1, max: 500, value: 40, required: "" });
    this.temperature = make("input", "", "", { type: "number", min: 0, max: 5, step: "any", value: 0.8, required: "" });
    this.seed = make("input", "", "", { type: "number", min: 0, step: 1, value: 0, required: "" });
    const numbers = make("div", "tt-published__numbers");
    this.writeButton = button("Write", "", () => {});
    this.writeButton.type = "submit";
    this.writeButton.classList.add("tt-live__button--run");
    numbers.append(labelled("tokens", this.tokens), labelled("temperature", this.temperature),
      labelled("seed", this.seed), this.writeButton);
    this.form.append(labelled("Beginning", this.beginning), numbers);
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.writing) this.kernel.stop();
      else this.write();
    });
    this.text = make("p", "tt-published__text");
    this.status = make("p", "tt-published__status");
    const code = make("details", "tt-published__code");
    this.code = make("pre");
    code.append(make("summary", "", "The Python that writes this"), this.code);
    this.written = make("div", "tt-published__written");
    this.written.append(this.text, this.status, code);
    this.written.hidden = true;
  }

  #say(text) {
    this.told.textContent = text;
  }

  #offer({ fetch = "", pause = false, forget = false, form = false, bar = false }) {
    const focused = this.place.contains(document.activeElement);
    this.fetchButton.textContent = fetch;
    this.fetchButton.hidden = !fetch;
    this.pauseButton.hidden = !pause;
    this.forgetButton.hidden = !forget;
    this.compareButton.hidden = !form;
    this.form.hidden = !form;
    this.bar.hidden = !bar;
    // the button that had the focus may be gone: the next one has it
    if (focused && !this.place.contains(document.activeElement) || document.activeElement?.hidden) {
      [this.fetchButton, this.pauseButton, this.beginning].find((one) => !one.closest("[hidden]"))?.focus();
    }
  }

  // What is here, and what can be done with it.
  async show() {
    const { fetched, file, made } = this.place.dataset, host = new URL(this.place.dataset.address).host;
    const here = await this.weights.look();
    this.place.dataset.state = !here ? "impossible" : here.isWhole ? "whole" : here.came ? "part" : "none";
    this.here = here;
    if (!here) {
      this.#say("This browser keeps nothing for this page, as in some private windows: in another one GPT-2 can be fetched here.");
      this.#offer({});
    } else if (here.isWhole) {
      this.#say(`GPT-2 is kept in this browser: ${megabytes(here.kept)}, in 8 bits.`);
      this.#offer({ form: true, forget: true });
    } else if (here.came) {
      this.#say(`${megabytes(here.came)} of ${megabytes(here.total)} have come.`);
      this.#draw(here);
      this.#offer({ fetch: "Go on", forget: true, bar: true });
    } else {
      this.#say(`The published file has ${megabytes(file)}. The page fetches ${megabytes(fetched)} of them from ${host}, once, `
        + `turns each row into 8 bits as it arrives and keeps ${megabytes(made)} in this browser for the next time. `
        + "What you write stays on this page.");
      this.#offer({ fetch: `Fetch GPT-2 (${megabytes(fetched)})`, forget: here.kept > 0 });
    }
  }

  #draw({ came, total }) {
    this.bar.max = total;
    this.bar.value = came;
  }

  async fetch() {
    this.abort = new AbortController();
    const since = { time: performance.now(), came: null, quarter: null };
    this.place.dataset.state = "fetching";
    this.#say("Asking for the file …");
    this.#offer({ pause: true, bar: true });
    this.bar.removeAttribute("value");
    this.announce("Fetching GPT-2");
    try {
      await this.weights.fetch({ signal: this.abort.signal, onprogress: (about) => this.#tell(about, since) });
      await this.show();
      this.announce(this.told.textContent);
      if (this.here?.isWhole) await this.compare();
    } catch (error) {
      await this.show();
      if (!(error instanceof Paused)) this.#say(`${error.message} ${this.here?.came ? this.told.textContent : ""}`);
      this.announce(this.told.textContent);
    }
  }

  #tell({ came, total, why }, since) {
    if (why) {
      this.#say(why);
      this.announce(why);
      return;
    }
    this.#draw({ came, total });
    since.came ??= came; // what was here before says nothing of the speed
    const speed = (came - since.came) / (performance.now() - since.time) * SECOND;
    const left = speed > 0 ? `, about ${duration((total - came) / speed)} left` : "";
    this.#say(`${megabytes(came)} of ${megabytes(total)}${left}`);
    const quarter = Math.floor(QUARTERS * came / total);
    if (since.quarter !== null && quarter > since.quarter) this.announce(`${megabytes(came)} of ${megabytes(total)}`);
    since.quarter = quarter;
  }

  async forget() {
    try {
      const freed = await this.weights.forget();
      await this.show();
      this.written.hidden = this.compared.hidden = true;
      this.#say(`Forgotten: ${megabytes(freed)} are free again. ${this.told.textContent}`);
    } catch (error) {
      this.#say(error.message);
    }
    this.announce(this.told.textContent);
  }

  // Lets the model continue the beginnings whose continuation is known, and says whether it did as expected.
  compare() {
    if (this.comparing) this.kernel.stop();
    this.compareButton.textContent = "Stop";
    this.comparing ??= this.#compare().finally(() => {
      this.comparing = null;
      this.compareButton.textContent = COMPARING;
    });
    return this.comparing;
  }

  async #compare() {
    if (!(await this.weights.look())?.isWhole) return this.show(); // forgotten in another tab
    const lines = make("pre", "tt-published__lines"), verdict = make("p", "tt-published__verdict");
    this.compared.replaceChildren(lines, verdict);
    this.compared.hidden = false;
    const say = (text) => {
      verdict.textContent = text;
      this.announce(text);
    };
    const result = await this.#load(say);
    const end = result.ok ? await this.#run(COMPARE, (text) => lines.append(text)) : result;
    const counts = [...lines.textContent.matchAll(COMPARED)].map(([, same, of]) => [Number(same), Number(of)]);
    const [same, of] = counts.reduce(([a, b], [c, d]) => [a + c, b + d], [0, 0]);
    if (!end.ok) say(end.why);
    else if (same === of) say(`As expected: all ${of} tokens are those that the tests of transformers state.`);
    else say(`${same} of ${of} tokens come as expected before the first that differs in its line. Some may differ in 8 bits, where two tokens were nearly equally likely; in float32 none should.`);
    return undefined;
  }

  // Python reads the weights, unless it has them. Returns {ok, why}, as does #run.
  async #load(say) {
    const { kernel } = this;
    if (kernel.worker && this.loadedIn === kernel.worker) return { ok: true };
    kernel.mount(FOLDER, await this.weights.files());
    say("Python reads the weights …");
    const result = await this.#run(LOAD, () => {});
    if (result.ok) this.loadedIn = kernel.worker;
    return result;
  }

  async #run(source, onpiece) {
    let error = "";
    const result = await this.kernel.run({ source, force: true, title: "GPT-2", alt: "", prefix: "tt-published", asserts: true, onmessage: (message) => {
      if (message.kind === "error") error = message.text.split("\n").at(-1);
      if (message.kind === "stream") onpiece(message.text);
    } });
    const why = result.type === "done" ? error : result.type === "stopped" ? "Stopped." : `Python could not run here: ${result.text}.`;
    return { ...result, why };
  }

  // Writes on from the beginning, in the page's Python, where its name is `gpt2` then.
  async write() {
    if (this.comparing) {
      this.written.hidden = false;
      this.status.textContent = "It writes when the comparison has ended.";
      await this.comparing;
    }
    if (!(await this.weights.look())?.isWhole) return this.show();
    const code = this.#program();
    const say = (text) => {
      this.status.textContent = text;
      this.announce(text);
    };
    this.writing = true;
    this.writeButton.textContent = "Stop";
    this.written.hidden = false;
    this.code.textContent = `${LOAD}\n${code}`;
    this.text.textContent = this.beginning.value;
    let result = await this.#load(say), count = 0;
    if (result.ok) {
      say("GPT-2 writes …");
      result = await this.#run(code, (text) => {
        count += 1;
        this.text.append(text);
      });
      const speed = result.seconds ? `, about ${(count / result.seconds).toFixed(1)} a second` : "";
      this.status.textContent = `${count} pieces of text${speed}. The cells of this page can use the model and its tokenizer too: gpt2 and gpt2_tokenizer.`;
      if (result.ok) this.announce(this.text.textContent);
    }
    if (!result.ok) say(result.why);
    this.writing = false;
    this.writeButton.textContent = "Write";
    return undefined;
  }

  #program() {
    const [tokens, temperature, seed] = [this.tokens, this.temperature, this.seed].map((field) => field.value);
    const options = `${tokens}, temperature=${temperature}, rng=${seed}`;
    return `for text in stream_text(gpt2, gpt2_tokenizer, ${JSON.stringify(this.beginning.value)}, ${options}):
    print(text, end="", flush=True)
`;
  }
}

const labelled = (text, field) => {
  const label = make("label", "", text);
  label.append(field);
  return label;
};
