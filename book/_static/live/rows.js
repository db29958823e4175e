// What stands beside and below the buttons of a cell when something is the matter: a bar for the bytes of
// Python, another try where they do not come, the other text that a second tab has.

import { make } from "./elements.js";

const SURE = 2; // seconds after which the speed of a connection can be told

// Beside what each of these cells says; nothing where nobody counts bytes.
export function drawBytes(cells, { bytes, total }) {
  if (!bytes) for (const drawn of document.querySelectorAll(".tt-live__bytes")) drawn.remove();
  for (const { bar } of bytes ? cells : []) {
    const drawn = bar.querySelector(".tt-live__bytes") ?? make("progress", "tt-live__bytes", "", { "aria-label": "Of Python" });
    if (total) drawn.max = total;
    drawn.value = total ? bytes : 0;
    if (!drawn.isConnected) bar.append(drawn);
  }
}

export const duration = (seconds) => seconds < 1 ? `${seconds.toFixed(1)} s`
  : seconds < 90 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`;

// What is said while Python comes: how much of it is there and, after some seconds, how long the rest takes if it
// goes on like this.
export function coming({ text, bytes, total }, seconds) {
  if (!text) return "";
  const count = [bytes, total].filter(Boolean).map((n) => (n / 1e6).toFixed(1)).join(" of ");
  const left = bytes < total && seconds > SURE ? `, about ${duration(seconds * (total / bytes - 1))} left` : "";
  return `${text}${bytes ? `: ${count} MB${left}` : ""} …`;
}

// Why Python did not come, and what happens next.
export const notLoaded = (why) => navigator.onLine === false
  ? "No connection: Python could not be loaded. It is tried again when there is one."
  : `Python could not be loaded: ${why}.`;

// A row with the button that tries again; the connection, when it is back, does the same unasked.
export function anotherTry(button, name, act) {
  const row = make("div", "tt-live__above");
  row.append(button("Try again", `Try again: ${name}`, act));
  addEventListener("online", () => row.isConnected && act(), { once: true });
  return row;
}

// A script that is fetched when it is first asked for. A browser may keep in mind that one did not come:
// the next try has another address.
let tries = 0;
export async function fetched(name) {
  const address = new URL(name, import.meta.url);
  if (tries) address.searchParams.set("try", tries);
  try {
    return await import(address);
  } catch (error) {
    tries += 1;
    throw error;
  }
}

// Says below a cell that it has another text too, and offers that.
export class OtherText {
  constructor(cell, edit, { button, announce }) {
    Object.assign(this, { cell, edit, announce });
    this.row = make("div", "tt-live__above");
    const show = () => {
      cell.write(edit.swap());
      if (!this.row.isConnected) cell.runButton.focus();
    };
    const forget = () => {
      this.unwanted = edit.theirs;
      edit.forgetTheirs();
      this.show();
      cell.runButton.focus();
    };
    this.row.append(
      make("span", "", "Another tab has another text in this cell. Both are kept."),
      button("Show the other", `Show the other text of ${cell.name}`, show),
      button("Forget the other", `Forget the other text of ${cell.name}`, forget),
    );
  }

  show() {
    const { theirs } = this.edit;
    const differs = theirs !== undefined && theirs !== this.cell.source && theirs !== this.unwanted;
    if (differs === this.row.isConnected) return;
    if (!differs) return this.row.remove();
    this.cell.bar.after(this.row);
    this.announce(`${this.cell.name}: ${this.row.firstChild.textContent}`);
  }
}
