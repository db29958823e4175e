// A conversation with the model, in the page's Python, and a look at every token of its answers.

import { make } from "../live/elements.js";

const FOLDER = "/published"; // where Python finds the file
const PYTHON = `import json
from tinytorch_book.experiments.published_model import load_published_model
from tinytorch_book.experiments.talking import Talk

model, tokenizer = load_published_model()
talk = Talk(model, tokenizer)
`;
const FIRST = ["What is the capital of France?", "Write two sentences about a dog who lost a drum.", "What is 17 plus 28?"];
const SECOND = 1000, ALOUD = 3; // how many other tokens are read out
const WRONG = "Three questions to begin with. One of the answers is wrong.";

export class Conversation {
  // model: a Published, whose file is here; ongone: called where it is not any more
  constructor({ kernel, button, announce, model, ongone }) {
    Object.assign(this, { kernel, announce, model, ongone });
    this.messages = [];
    this.element = make("div", "tt-talk__talk");
    this.log = make("div", "tt-talk__log");
    this.first = make("div", "tt-talk__first", "", { role: "group", "aria-labelledby": "tt-talk-first" });
    const buttons = make("div", "tt-talk__buttons");
    buttons.append(...FIRST.map((question) => button(question, "", () => this.#ask(question))));
    this.first.append(make("p", "tt-talk__status", WRONG, { id: "tt-talk-first" }), buttons);
    this.status = make("p", "tt-talk__status");
    const code = make("details", "tt-talk__code");
    this.code = make("pre");
    code.append(make("summary", "", "The Python that answers"), this.code);
    this.element.append(this.log, this.first, this.#form(button), this.status, code);
    this.clear();
  }

  // What has the focus when the model has come.
  get start() {
    return this.first.hidden ? this.question : this.first.querySelector("button");
  }

  #form(button) {
    const form = make("form", "tt-talk__form", "", { novalidate: "" }), row = make("div", "tt-talk__buttons");
    this.question = make("textarea", "", "", { rows: 2 });
    this.temperature = make("input", "", "", { type: "number", min: 0, max: 5, step: "any", value: 0, required: "" });
    this.askButton = button("Ask", "", () => {});
    this.askButton.type = "submit";
    this.askButton.classList.add("tt-live__button--run");
    this.newButton = button("New conversation", "", () => {
      this.clear();
      this.question.focus();
      this.announce("A new conversation");
    });
    row.append(this.askButton, this.newButton, labelled("temperature (0 takes the likeliest token)", this.temperature));
    const keys = make("p", "tt-talk__status", "Enter asks; Shift+Enter starts a new line.", { id: "tt-talk-keys" });
    this.question.setAttribute("aria-describedby", keys.id);
    form.append(labelled("Your question", this.question), keys, row);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.answering) this.#stop();
      else if (this.question.value.trim()) this.#ask(this.question.value.trim());
      else {
        this.question.focus();
        this.announce("Write a question first.");
      }
    });
    // as in other chats; with Shift a new line
    this.question.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      if (!this.answering) form.requestSubmit();
      else this.announce("Still answering: the next button stops it.");
    });
    return form;
  }

  // Shows Python the file, so that the cells of the page can load it too.
  async mount() {
    if (this.file) return;
    const files = await this.model.files();
    this.file = files[0].name;
    this.kernel.mount(FOLDER, files);
  }

  clear() {
    if (this.answering) this.#stop();
    this.messages = [];
    this.log.replaceChildren();
    this.status.textContent = "";
    this.#offer();
  }

  #offer() {
    this.first.hidden = this.messages.length > 0;
    this.newButton.hidden = !this.messages.length;
    this.askButton.textContent = this.answering ? "Stop" : "Ask";
    this.askButton.setAttribute("aria-label", this.answering ? "Stop the answer" : "Ask");
  }

  #stop() {
    this.stopped = true;
    this.kernel.stop();
  }

  #say(text) {
    this.status.textContent = text;
    this.announce(text);
  }

  async #ask(question) {
    if (this.answering || !this.temperature.reportValidity()) return;
    if (!(await this.model.look())?.isWhole) { // forgotten in another tab
      this.file = null;
      this.ongone();
      return;
    }
    await this.mount();
    const messages = this.messages = [...this.messages, { role: "user", content: question.toWellFormed() }];
    const nth = this.log.querySelectorAll(".tt-talk__question").length + 1;
    const answer = new Answer(messages, nth, (of, said) => this.#firstChoice(of, said), this.announce);
    const asked = make("p", "tt-talk__question", question);
    asked.prepend(make("span", "visually-hidden", "You asked: "));
    this.log.append(asked, answer.element);
    this.answering = true;
    this.stopped = false;
    this.question.value = "";
    this.#offer();
    this.askButton.focus();
    const say = (text) => { if (messages === this.messages) this.#say(text); };
    const code = `for token in talk.answer(${JSON.stringify(messages)}, temperature=${Number(this.temperature.value)}):
    print(json.dumps(token), flush=True)
`;
    this.code.textContent = `${PYTHON}\n${code}`;
    const result = await this.#inPython(code, (line) => {
      if (!answer.tokens.length) say("Answering …");
      answer.add(JSON.parse(line));
    }, say);
    this.answering = false;
    if (messages === this.messages) {
      this.#end(answer, result);
      if (!answer.text) this.#giveBack(asked, question);
    }
    else this.#offer(); // another conversation has begun
  }

  #end(answer, result) {
    const { text, tokens } = answer;
    if (text) this.messages = [...this.messages, { role: "assistant", content: text }];
    else this.messages = this.messages.slice(0, -1); // a question without an answer is not part of it
    answer.end();
    const speed = answer.speed ? `${tokens.length} tokens, ${answer.speed.toFixed(answer.speed < 10 ? 1 : 0)} a second. ` : "";
    this.status.textContent = result.ok ? `${speed}This page's cells can use it too, as model and tokenizer.` : result.why;
    this.#offer();
    if (document.activeElement === this.askButton) this.question.focus(); // before the words: a change of focus ends them
    this.announce(text ? `${text} ${result.ok ? "" : result.why}` : result.why, result.isError);
  }

  // A question without an answer is not lost: it is in its field again, where nothing has been written meanwhile.
  #giveBack(asked, question) {
    asked.remove();
    this.question.value ||= question;
  }

  // From which block on the last of these tokens was the first choice; null where it was not, undefined where Python cannot say.
  async #firstChoice(messages, ids) {
    let found;
    const code = `print(json.dumps(talk.first_choice(${JSON.stringify(messages)}, ${JSON.stringify(ids)})), flush=True)\n`;
    await this.#inPython(code, (line) => { found = JSON.parse(line); });
    return found;
  }

  // Runs a program, once Python has the model, and gives every line that it prints to `online`; `say` tells what it waits
  // for. Returns {ok, why, isError}.
  async #inPython(code, online, say = () => {}) {
    const { kernel } = this;
    if (!kernel.worker || this.loadedIn !== kernel.worker) {
      say("Loading the model …");
      const loaded = await this.#run(PYTHON, () => {});
      if (!loaded.ok) return loaded;
      this.loadedIn = kernel.worker;
    }
    say("Thinking …");
    return this.#run(code, online);
  }

  async #run(source, online) {
    let error = "", rest = "";
    const result = await this.kernel.run({ source, force: true, title: "Talk to it", alt: "", prefix: "tt-talk", asserts: true, onmessage: (message) => {
      if (message.kind === "error") error = plainly(message.text.split("\n").at(-1));
      if (message.kind !== "stream" || message.name !== "stdout") return;
      const lines = (rest + message.text).split("\n");
      rest = lines.pop();
      lines.forEach(online);
    } });
    const stopped = result.type === "stopped" || this.stopped;
    const ended = result.lost ? "Stopped. Python had to stop too: run the cells above again." : "Stopped.";
    const why = stopped ? ended : result.type === "done" ? error : `Python could not run here: ${result.text}.`;
    if (!result.ok && !stopped) this.loadedIn = null; // a cell may have taken a name
    return { ok: Boolean(result.ok), why, isError: !result.ok && !stopped };
  }
}

// The tokens of an answer. Under them, on a press, what else could have stood there.
class Answer {
  // messages: those before it; firstChoice: (messages, ids) -> the block
  constructor(messages, nth, firstChoice, announce) {
    Object.assign(this, { messages, firstChoice, announce, tokens: [], blocks: [] });
    this.element = make("div", "tt-talk__answer", "", { role: "group", "aria-label": `Answer ${nth}` });
    this.said = make("p", "tt-talk__text", "", { "aria-hidden": "true" }); // it is in pieces
    this.heard = make("p", "visually-hidden");
    const keys = make("p", "tt-talk__status", "Press a token, or choose it with the arrow keys; Enter reads out what is below.", { id: `tt-talk-choice-${nth}` });
    this.choice = make("input", "", "", { type: "range", min: 0, step: 1, value: 0, "aria-describedby": keys.id });
    this.chooser = make("div", "tt-talk__chooser");
    this.chooser.append(labelled("What else could it have said?", this.choice), keys);
    this.about = make("div", "tt-talk__about");
    this.chooser.hidden = this.about.hidden = true;
    this.element.append(make("span", "visually-hidden", "It answered: "), this.said, this.heard, this.chooser, this.about);
    this.said.addEventListener("click", ({ target }) => {
      const at = [...this.said.children].indexOf(target.closest("span"));
      if (at >= 0 && !this.chooser.hidden) this.#look(at, true);
    });
    this.choice.addEventListener("input", () => this.#look(Number(this.choice.value)));
    // aloud only when asked to
    this.choice.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      this.#look(Number(this.choice.value), true);
    });
  }

  get text() {
    return this.tokens.map(({ text }) => text).join("").trim();
  }

  // Tokens a second after the first, before which the question is read.
  get speed() {
    return (this.tokens.length - 1) / (this.last - this.began) * SECOND || 0;
  }

  add(token) {
    this.last = performance.now();
    this.began ??= this.last;
    this.tokens.push(token);
    this.said.append(make("span", "", token.text));
  }

  end() {
    if (!this.tokens.length) this.element.remove();
    this.heard.textContent = this.text;
    this.choice.max = this.tokens.length - 1;
    this.chooser.hidden = !this.tokens.length;
    this.element.classList.add("tt-talk__answer--whole");
    this.#name(0);
  }

  #name(at) {
    this.choice.value = at;
    this.choice.setAttribute("aria-valuetext", `${spoken(this.tokens[at]?.name ?? "")}, ${at + 1} of ${this.tokens.length}`);
  }

  // Shows what else a token could have been; aloud: says it too, with the three likeliest others.
  async #look(at, aloud = false) {
    this.at = at;
    this.#name(at);
    for (const [i, span] of [...this.said.children].entries()) span.classList.toggle("tt-talk__chosen", i === at);
    const { name, share, others } = this.tokens[at];
    const block = make("p", "", this.blocks[at] ?? "Reading it again …");
    const list = make("ul", "tt-talk__others", "", { role: "list" });
    list.append(...others.map(([other, chance]) => make("li", "", `${shown(other)} ${percent(chance)}`)));
    this.about.replaceChildren(make("p", "", `${shown(name)} had ${percent(share)}. It could also have been:`), list, block);
    this.about.hidden = false;
    const chances = others.slice(0, ALOUD).map(([other, chance]) => `${spoken(other)} ${percent(chance)}`).join(", ");
    if (aloud) this.announce(`${spoken(name)} ${percent(share)}. Otherwise ${chances}.`);
    await this.#ask(at);
    if (this.at !== at || !this.blocks[at]) return;
    block.textContent = this.blocks[at];
    if (aloud) this.announce(block.textContent);
  }

  // One question at a time: of those that came meanwhile the last counts.
  async #ask(at) {
    const before = this.asking;
    const mine = this.asking = (async () => {
      await before;
      if (this.at !== at || this.blocks[at]) return;
      const ids = this.tokens.slice(0, at + 1).map(({ id }) => id);
      const found = await this.firstChoice(this.messages, ids);
      this.blocks[at] = found === undefined ? "Python could not tell from which block on it is the first choice." : inWords(found);
    })();
    await mine;
  }
}

function inWords(block) {
  if (block === null) return "Another token was likeliest at the end; this one was drawn.";
  return block === 0 ? "It was the first choice before the first block." : `It is the first choice from block ${block} on.`;
}

const shown = (name) => `“${name.replaceAll("\n", "⏎")}”`;

// As it is heard: signs that a reader skips have names.
const SIGNS = { ".": "full stop", ",": "comma", "\n": "line break", " ": "space" };
const spoken = (name) => SIGNS[name] ?? shown(name);

// What the conversation itself refuses is a sentence; of other errors the kind matters.
const plainly = (error) => error.replace(/^ValueError: Talk: (.)(.*)$/, (_, first, rest) => `${first.toUpperCase()}${rest}.`);

const percent = (chance) => chance < 0.001 ? "less than 0.1 %" : `${(100 * chance).toFixed(chance < 0.995 ? 1 : 2)} %`;

const labelled = (text, field) => {
  const label = make("label", "", text);
  label.append(field);
  return label;
};
