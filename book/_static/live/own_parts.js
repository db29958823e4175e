// The parts of the reader's own GPT: how many there are, how one that has come is greeted, which is open.

import { make } from "./elements.js";
import { memory } from "./remembered_progress.js";

const kept = memory("parts");
// as book/_ext/directives/your_parts.py has written it; two parts may stand in one place
const { parts = [], list } = JSON.parse(document.getElementById("tt-parts")?.textContent || "{}");
const all = new Set(parts.map(({ place }) => place)).size;

const placesOf = (names) => new Set(parts.filter(({ name }) => names.includes(name)).map(({ place }) => place));

// What to say of a part that a check has accepted, and where to go from there: {said, link}.
export function greeting(name) {
  const before = Object.keys(kept.all), mine = placesOf([...before, name]);
  const index = parts.findIndex((part) => part.name === name);
  if (index < 0) return { said: `Kept as your part “${name}”, with your progress: your own GPT is made of it.` };
  const yours = `${parts[index].said} yours${before.includes(name) ? "" : " now"}`;
  if (mine.size === all) {
    return { said: `${yours}, and with it all ${all} parts.`, link: { text: "Make your GPT of them", href: list } };
  }
  const open = parts.filter(({ place }) => !mine.has(place));
  const next = open.find((part) => parts.indexOf(part) > index) ?? open[0];
  const link = { text: `Next open part: ${next.name}, ${next.where}`, href: next.href };
  return { said: `${yours}: ${mine.size} of ${all} parts.`, link };
}

// Counts on the chapter's card, and marks in the list, what is the reader's.
export function ownParts() {
  const chip = document.querySelector(".tt-parts");
  if (!chip || !all) return () => {};
  const link = chip.querySelector("a"), bar = make("span", "tt-parts__bar", "", { "aria-hidden": "true" });
  chip.replaceChildren("Your GPT: ", bar, " ", link);
  return () => {
    const mine = placesOf(Object.keys(kept.all));
    bar.style.setProperty("--share", `${(100 * mine.size) / all}%`);
    link.textContent = `${mine.size} of ${all} parts are yours`;
    for (const place of new Set(parts.map((part) => part.place))) {
      const name = document.getElementById(`part-${place.replaceAll(" ", "-")}`)?.querySelector("strong");
      name?.parentNode.querySelector(".tt-live__solved")?.remove();
      if (name && mine.has(place)) name.after(" ", make("span", "tt-live__solved", "yours"));
    }
  };
}
