// Exercises and questions: what follows a check, what is remembered, and the progress it makes.

import { docOf, make } from "./elements.js";
import { memory } from "./remembered_progress.js";
import { panel } from "./saved_work.js";

const changed = () => dispatchEvent(new Event("tt-progress"));
const solved = memory("solved", changed);
const answers = memory("answers", changed);
const sources = memory("sources", changed); // by check: the code that it has accepted, cell by cell
const built = memory("parts", changed); // of a GPT: what stands in my_parts.py, by name

export async function exercises(data, cells, tools) {
  const boxes = [...document.querySelectorAll(".exercise.admonition[id]")];
  const { Ladder } = boxes.length ? await import("./hints.js") : {};
  for (const box of boxes) {
    const parts = following(box, cells);
    if (parts.stub) new Exercise(box, parts, tools, Ladder);
  }
  remember();
  const views = [contents(data), chapter(data), panel(data, solved, tools)];
  if (document.querySelector(".tt-parts")) views.push((await import("./own_parts.js")).ownParts());
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

const DONE = "You have solved this. Press Check to see the report on what stands above.";

class Exercise {
  constructor(box, { stub, hints, solution }, tools, Ladder) {
    this.box = box;
    this.ladder = new Ladder(box.id, { name: stub.name, stub: stub.element, hints, solution }, tools);
    this.first = stub.element.querySelector(".tt-live__first"); // what to do, until there is a report
    this.asked = this.first?.textContent;
    this.next = make("p", "tt-live__next");
    stub.element.append(this.next);
    stub.onchecked = (report) => this.checked(report);
    this.mark();
    addEventListener("tt-progress", () => this.mark());
  }

  mark() {
    const title = this.box.querySelector(".admonition-title");
    let badge = title.querySelector(".tt-live__solved");
    if (solved.get(this.box.id) && !badge) {
      badge = make("span", "tt-live__solved", "solved");
      title.append(" ", badge);
    } else if (!solved.get(this.box.id)) {
      badge?.remove();
    }
    if (this.first) this.first.textContent = solved.get(this.box.id) ? DONE : this.asked;
    this.next.replaceChildren(...(solved.get(this.box.id) ? [this.#onward()].filter(Boolean) : []));
  }

  // Takes a report, and says what comes next if there is none left to do here.
  checked(report) {
    this.ladder.advise(report?.passed ? [] : report?.checks);
    if (!report?.passed) return "";
    solved.set(this.box.id, true);
    sources.set(report.name, report.cells);
    if (report.part) built.set(report.part.name, report.part.section);
    changed();
    this.ladder.unfold();
    return this.next.textContent;
  }

  // The way to the next open exercise, to one that was passed over or, after all, to the next chapter.
  #onward() {
    const boxes = [...document.querySelectorAll(".exercise.admonition[id]")];
    const open = boxes.filter(({ id }) => !solved.get(id));
    const box = open.find((each) => boxes.indexOf(each) > boxes.indexOf(this.box)) ?? open[0];
    if (box) return make("a", "", `Next: ${titleOf(box)}`, { href: `#${box.id}` });
    const footer = document.querySelector("a.right-next");
    const name = footer?.querySelector(".prev-next-title")?.textContent;
    return name && make("a", "", `Next chapter: ${name}`, { href: footer.href });
  }
}

// "Exercise 5 (The rule itself, 2 points)" is called "Exercise 5, The rule itself".
const titleOf = (box) => /(\S+ \d+)\s+\((.*), \d+ points?/.exec(box.querySelector(".admonition-title").textContent)
  .slice(1).join(", ");

// Choices that were opened once are open again.
function remember() {
  for (const [i, question] of document.querySelectorAll(".tt-reflect").entries()) {
    const key = `${location.pathname.split("/").at(-1)}#${question.id || i + 1}`;
    const choices = [...question.querySelectorAll("details.tt-reflect__choice")];
    for (const [j, choice] of choices.entries()) {
      choice.open ||= Boolean(answers.get(`${key}/${j}`));
      choice.addEventListener("toggle", () => {
        if (choice.open) answers.set(`${key}/${j}`, true);
      });
    }
  }
}

// The points of a chapter's exercises: those that are solved, and all.
function points(worth) {
  const sum = (ids) => ids.reduce((total, id) => total + worth[id], 0);
  const ids = Object.keys(worth);
  return { solved: sum(ids.filter((id) => solved.get(id))), all: sum(ids) };
}

// How many points of a chapter are made, beside its name in the contents.
function contents(data) {
  const named = [...document.querySelectorAll(".bd-sidebar-primary .bd-links a.reference")]
    .map((link) => [link, data.exercises[docOf(link) ?? data.page]]).filter(([, worth]) => worth);
  return () => {
    for (const [link, worth] of named) {
      const made = points(worth);
      link.querySelector(".tt-live__count")?.remove();
      if (!made.solved) continue;
      const text = make("span", "tt-live__count", `${made.solved}/${made.all}`);
      text.append(make("span", "visually-hidden", " points"));
      link.append(" ", text);
    }
  };
}

// The same under the heading of a chapter's exercises, in words.
function chapter(data) {
  const worth = data.exercises[data.page];
  const heading = document.querySelector(".exercise.admonition[id]")?.closest("section")?.querySelector("h2");
  if (!worth || !heading) return () => {};
  const text = make("p", "tt-live__points");
  heading.after(text);
  return () => {
    const made = points(worth);
    text.textContent = `You have ${made.solved} of ${made.all} points.`;
  };
}
