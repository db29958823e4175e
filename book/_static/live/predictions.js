// Predictions: the reader commits to a choice or a number, and only then sees what comes out.

import { memory } from "./remembered_progress.js";

export function predictions(page, tools) {
  const refresh = () => all.forEach((prediction) => prediction.show());
  const given = memory("predictions", refresh);
  const all = [...document.querySelectorAll(".tt-prediction")]
    .map((box) => new Prediction(box, given, `${page}#${box.id}`, tools));
  refresh();
}

// What is kept of one is {choice: its text}, {number} or {shown: true}, if the reader only asked.
class Prediction {
  constructor(box, given, key, { make, button, announce }) {
    Object.assign(this, { box, given, key, make, announce, wasGiven: false });
    this.answer = box.nextElementSibling; // the fold
    this.choices = [...box.querySelectorAll(".tt-prediction__choice")].map((item) => this.#choice(item));
    if (!this.choices.length) this.#askNumber(button);
    this.verdict = make("p", "tt-prediction__verdict");
    this.resetButton = button("Reset", "Reset your prediction", () => this.reset());
    this.end = make("div", "tt-prediction__end");
    this.end.append(this.verdict, this.resetButton);
    box.append(this.end);
    this.answer.querySelector("summary").addEventListener("click", (event) => {
      if (this.answer.open || this.now) return;
      event.preventDefault(); // what is kept opens it
      given.set(key, { shown: true });
      this.show();
    });
  }

  get now() {
    return this.given.get(this.key);
  }

  #choice(item) {
    const text = item.querySelector(".tt-prediction__text");
    const press = this.make("button", "tt-prediction__press", "", { type: "button" });
    text.replaceWith(press);
    press.append(text, this.make("span", "tt-prediction__mine", "Your prediction"));
    const words = text.textContent.trim().replace(/[.]$/, "");
    press.addEventListener("click", () => this.commit({ choice: words }));
    return { item, press, text: words, right: item.matches(".tt-prediction__choice--right") };
  }

  #askNumber(button) {
    const { unit } = this.box.dataset;
    const form = this.make("form", "tt-prediction__number");
    this.field = this.make("input", "", "", { type: "number", step: "any", required: "" });
    const label = this.make("label", "", "Your number: ");
    label.append(this.field);
    this.press = button("That is my prediction", "", () => {});
    this.press.type = "submit";
    label.append(unit ? ` ${unit}` : "");
    form.append(label, this.press);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.commit({ number: this.field.valueAsNumber });
    });
    this.box.querySelector(".tt-prediction__came").before(form);
  }

  commit(prediction) {
    if (this.now) return;
    this.given.set(this.key, prediction);
    this.show();
    this.announce(`${this.verdict.textContent} ${this.#came}`);
  }

  // What came out, for those who do not see it marked.
  get #came() {
    const right = this.choices.filter((one) => one.right).map((one) => one.text);
    return right.length ? `Right: ${right.join(", or ")}.`
      : this.box.querySelector(".tt-prediction__came").textContent;
  }

  // Shows what is kept: nothing yet, what the reader predicted, or only that the answer was asked for.
  show() {
    const { now } = this;
    for (const { item, press, text } of this.choices) {
      const mine = now?.choice === text;
      press.setAttribute("aria-pressed", mine);
      press.setAttribute("aria-disabled", Boolean(now)); // not disabled: the focus stays
      item.classList.toggle("tt-prediction__choice--mine", mine);
    }
    if (this.field) {
      this.field.readOnly = Boolean(now);
      this.field.value = now?.number ?? (now ? "" : this.field.value);
      this.press.hidden = Boolean(now);
    }
    const [right, text] = now ? this.#judge(now) : [false, ""];
    this.verdict.textContent = text;
    this.verdict.dataset.right = right;
    this.end.hidden = !now;
    if (Boolean(now) !== this.wasGiven) this.answer.open = Boolean(now);
    this.wasGiven = Boolean(now);
  }

  // Whether the prediction holds, and that in words.
  #judge({ choice, number }) {
    if (choice !== undefined) {
      return this.choices.some((one) => one.right && one.text === choice)
        ? [true, "Right, as you predicted."] : [false, "Not this time: see which one is right."];
    }
    if (number === undefined) return [false, "You asked to see the answer."];
    const off = number - Number(this.box.dataset.number);
    const right = Math.abs(off) <= Number(this.box.dataset.spread) * (1 + 1e-9);
    if (right) return [true, `You predicted ${number}. That is ${off ? "close enough" : "exactly right"}.`];
    return [false, `You predicted ${number}. That is too ${off < 0 ? "small" : "large"}.`];
  }

  reset() {
    this.given.remove(this.key);
    if (this.field) this.field.value = "";
    this.show();
    this.answer.open = false;
    (this.field ?? this.choices[0].press).focus();
    this.announce("Your prediction is taken back, and the answer folded again");
  }
}
