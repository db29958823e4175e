// Exercises and questions: what follows a check, what is remembered, and the progress it makes.

import { memory } from "./remembered_progress.js";

const changed = () => dispatchEvent(new Event("tt-progress"));
const solved = memory("solved", changed);
const answers = memory("answers", changed);
const predictions = memory("predictions", changed);

export function exercises(data, cells, { make, button, announce }) {
  for (const box of document.querySelectorAll(".exercise.admonition[id]")) {
    const parts = following(box, cells);
    if (parts.stub) new Exercise(box, parts, { make, button, announce });
  }
  remember();
  const views = [sidebar(data, make), landing(data, { make, button, announce })];
  const refresh = () => views.forEach((view) => view());
  refresh();
  addEventListener("tt-progress", refresh);
}

// What belongs to an exercise: its stub, its hints and its solution, up to the next exercise.
function following(box, cells) {
  const parts = { hints: [] };
  for (let next = box.nextElementSibling; next; next = next.nextElementSibling) {
    if (next.matches(".exercise.admonition")) break;
    if (next.matches(".tag_exercise-stub")) parts.stub = cells.find((c) => c.element === next);
    else if (next.matches(".dropdown.admonition")) parts.hints.push(next);
    else if (next.matches(".tag_exercise-solution")) { parts.solution = next; break; }
  }
  return parts;
}

class Exercise {
  constructor(box, parts, tools) {
    Object.assign(this, { box, ...parts, ...tools });
    this.next = this.make("div", "tt-live__next");
    this.stub.element.append(this.next);
    this.stub.onchecked = (report) => this.checked(report);
    this.mark();
    addEventListener("tt-progress", () => this.mark());
  }

  mark() {
    const title = this.box.querySelector(".admonition-title");
    let badge = title.querySelector(".tt-live__solved");
    if (solved.get(this.box.id) && !badge) {
      badge = this.make("span", "tt-live__solved", "solved");
      title.append(" ", badge);
    } else if (!solved.get(this.box.id)) {
      badge?.remove();
    }
  }

  checked(report) {
    this.next.replaceChildren();
    if (report?.passed) {
      solved.set(this.box.id, true);
      changed();
      this.unfold();
      this.#leadOn();
      return;
    }
    const closed = this.hints.filter((hint) => hint.matches(".toggle-hidden"));
    if (closed.length) {
      const word = closed.length < this.hints.length ? "Next hint" : "Open the hint";
      this.next.append(this.button(word, "", () => {
        open(closed[0]);
        this.checked(report);
        this.focus(closed[0]);
      }));
    }
    if (this.solution && !this.solution.querySelector("details").open) {
      this.next.append(this.button("Show the solution", "", () => {
        this.unfold();
        this.checked(report);
        this.focus(this.solution);
      }));
    }
  }

  // The way to the next exercise, if the page has one.
  #leadOn() {
    const boxes = [...document.querySelectorAll(".exercise.admonition[id]")];
    const next = boxes[boxes.indexOf(this.box) + 1];
    if (next) this.next.append(this.make("a", "", "Next exercise", { href: `#${next.id}` }));
  }

  unfold() {
    const fold = this.solution?.querySelector("details");
    if (fold) fold.open = true;
  }

  focus(element) {
    element.scrollIntoView({ block: "nearest" });
    (element.querySelector("button, summary") ?? element).focus();
  }
}

// The theme opens and closes a dropdown by its button.
function open(dropdown) {
  dropdown.querySelector(".toggle-button")?.click();
}

// Choices that were opened once are open again.
function remember() {
  for (const [i, question] of document.querySelectorAll(".tt-reflect").entries()) {
    const key = `${location.pathname.split("/").at(-1)}#${question.id || i + 1}`;
    const choices = [...question.querySelectorAll("details.tt-reflect__choice")];
    for (const j of answers.get(key) ?? []) if (choices[j]) choices[j].open = true;
    for (const [j, choice] of choices.entries()) {
      choice.addEventListener("toggle", () => {
        const given = new Set(answers.get(key) ?? []);
        if (choice.open) answers.set(key, [...given.add(j)]);
      });
    }
  }
}

const count = (ids) => ids.filter((id) => solved.get(id)).length;

// How many exercises of a chapter are solved, beside its name.
function sidebar(data, make) {
  const links = [...document.querySelectorAll(".bd-sidebar-primary .bd-links a.reference")];
  const docs = links.map((a) => [a, a.href.split("#")[0].replace(/.*\/(book\/.*)\.html$/, "$1")]);
  return () => {
    for (const [link, doc] of docs) {
      const ids = doc.startsWith("book/") ? data.exercises[doc] : data.exercises[data.page];
      link.querySelector(".tt-live__count")?.remove();
      if (!ids || !count(ids)) continue;
      const text = make("span", "tt-live__count");
      text.append(`${count(ids)}/${ids.length}`, make("span", "visually-hidden", " solved"));
      link.append(" ", text);
    }
  };
}

// The landing page's account of it all, with the button that forgets it.
function landing(data, { make, button, announce }) {
  const place = document.querySelector(".tt-progress");
  if (!place) return () => {};
  const total = Object.values(data.exercises).flat();
  const text = make("p", "tt-progress__text");
  const bar = make("progress", "tt-progress__bar", "", { max: total.length, "aria-label": "Exercises solved" });
  const clear = button("Forget my progress", "", () => {
    if (clear.dataset.sure) {
      solved.clear();
      answers.clear();
      predictions.clear();
      delete clear.dataset.sure;
      clear.textContent = "Forget my progress";
      announce("Forgotten");
      changed();
    } else {
      clear.dataset.sure = "asked";
      clear.textContent = "Really forget it? Press again";
    }
  });
  place.append(text, bar, clear);
  place.hidden = false;
  return () => {
    const done = count(total);
    text.textContent = `${done} of ${total.length} exercises solved. `
      + "This is remembered in your browser and nowhere else.";
    bar.value = done;
    clear.hidden = !done && ![answers, predictions].some((kept) => Object.keys(kept.all).length);
  };
}
