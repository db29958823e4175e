// How many parts of their own GPT are the reader's: on a chapter's card, and in the list of parts.

import { make } from "./elements.js";
import { all, kept, parts, placesOf } from "./reports.js";

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
