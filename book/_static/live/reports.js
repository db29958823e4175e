// What a check says, as a list of its checks: in colour and in words, the first failure open; and of a part of
// the reader's own GPT, that it is theirs now.

import { make } from "./elements.js";
import { memory } from "./remembered_progress.js";

// A report as `Report.told` in book/lab/tinytorch_book/exercises/report.py has it, as an element.
export function report({ passed, untouched, points, checks, part: built, kept }) {
  const held = checks.filter(({ state }) => state === "passed").length;
  const box = make("div", "tt-report", "", { role: "group", "aria-label": "What the check says" });
  box.dataset.state = passed ? "solved" : "not yet";
  box.append(make("p", "tt-report__verdict", verdict({ passed, untouched, points, held, all: checks.length })));
  const list = make("ol", "tt-report__checks");
  const first = checks.find(({ state }) => state === "not yet");
  list.append(...checks.map((check) => line(check, check === first)));
  box.append(list);
  if (kept) box.append(keeping(built, kept));
  if (first) box.append(make("p", "tt-report__stuck", "Stuck? The hints are below, one at a press, the solution last."));
  return box;
}

// The same in a sentence or two, for those who do not see it.
export function spoken({ passed, untouched, points, checks, part: built, kept }) {
  const held = checks.filter(({ state }) => state === "passed").length;
  const first = checks.find(({ state }) => state === "not yet");
  const said = verdict({ passed, untouched, points, held, all: checks.length });
  if (!first) return kept ? `${said} ${keeping(built, kept).textContent}` : said;
  const parts = ["expected", "got"].filter((part) => first[part]).map((part) => `${part} ${first[part]}`);
  return [`${said} The first that does not hold: ${first.claim}.`, ...parts].join("\n");
}

// That a part of the GPT is the reader's now, and which is next; or why it is not.
function keeping(built, kept) {
  if (!built) return make("p", "tt-report__kept", `${kept[0].toUpperCase()}${kept.slice(1)}.`);
  const { said, link } = greeting(built.name);
  const greeted = make("p", "tt-report__kept", said);
  if (link) greeted.append(" ", make("a", "", link.text, { href: link.href }));
  greeted.dataset.yours = "";
  return greeted;
}

function verdict({ passed, untouched, points, held, all }) {
  if (passed) return `Solved: ${points} of ${points} ${points === 1 ? "point" : "points"}.`;
  if (untouched) return "Nothing is written yet: press Edit, write it, then press Check.";
  return `Not yet: ${held} of ${all} ${all === 1 ? "check" : "checks"} passed.`;
}

function line(check, open) {
  const item = make("li", "tt-report__check");
  item.dataset.state = check.state;
  const state = make("span", "tt-report__state", check.state);
  if (check.state !== "not yet") {
    item.append(state, " ", make("span", "", check.claim));
    return item;
  }
  const fold = make("details", "");
  fold.open = open;
  const summary = make("summary", "");
  summary.append(state, " ", make("span", "", check.claim));
  const found = make("dl", "tt-report__found");
  for (const part of ["given", "expected", "got"]) {
    if (!check[part]) continue;
    const value = make("dd", "");
    value.append(make("pre", "", check[part]));
    found.append(make("dt", "", part), value);
  }
  fold.append(summary, found);
  item.append(fold);
  return item;
}

// The parts of the reader's own GPT, and how one that has come is greeted.

export const kept = memory("parts");
// as book/_ext/directives/your_parts.py has written it; two parts may stand in one place
export const { parts = [], list = "" } = JSON.parse(document.getElementById("tt-parts")?.textContent || "{}");
export const all = new Set(parts.map(({ place }) => place)).size;

export const placesOf = (names) => new Set(parts.filter(({ name }) => names.includes(name)).map(({ place }) => place));

// What to say of a part that a check has accepted, and where to go from there: {said, link}.
export function greeting(name) {
  const before = Object.keys(kept.all), mine = placesOf([...before, name]);
  const index = parts.findIndex((part) => part.name === name);
  if (index < 0) return { said: `Kept as your part “${name}” of the published model, with your progress.` };
  const yours = `${parts[index].said} yours${before.includes(name) ? "" : " now"}`;
  if (mine.size === all) {
    return { said: `${yours}, and with it all ${all} parts.`, link: { text: "Make your GPT of them", href: list } };
  }
  const open = parts.filter(({ place }) => !mine.has(place));
  const next = open.find((part) => parts.indexOf(part) > index) ?? open[0];
  const link = { text: `Next open part: ${next.name}, ${next.where}`, href: next.href };
  return { said: `${yours}: ${mine.size} of ${all} parts for your GPT.`, link };
}
