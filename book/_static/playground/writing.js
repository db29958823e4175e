// Lets a model write on by itself, beside what the reader has written: always with the same random numbers.

import { chosen, draw, seeded } from "./sampling.js";
import { WINDOW } from "./state.js";
import { breath } from "./thinking.js";

const SEED = 1;

// Writes on after the ids, a token at a time, so that the page stays quick. `most`: tokens at most; `wanted` says
// whether it still matters; `tell` gets what has been written so far; `seed` is that of the dice. Resolves to
// that, cut off after a whole word if it goes on, or to null if it was given up.
export async function writeOn(thinking, ids, state, { whole, most, ends = false, wanted, tell = () => {}, seed = SEED }) {
  const random = seeded(seed);
  const written = [...ids], text = () => thinking.tokenizer.decode(written.slice(ids.length));
  for (let i = 0; i < most && written.length < WINDOW - 1; i += 1) {
    await breath();
    if (!wanted()) return null;
    const reading = thinking.reading(written, state, whole);
    const id = draw(chosen(reading.logits(written.length), state), random);
    if (ends && id === thinking.newline) return text(); // the story is over
    written.push(id);
    tell(text());
  }
  const cut = /[.!?\n]$/.test(text()) ? text() : text().replace(/(\S)\s+\S*$/u, "$1 …");
  tell(cut);
  return cut;
}
