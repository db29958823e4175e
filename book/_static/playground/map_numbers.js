// The numbers that the map shows, computed from what the model has read; no picture is made here.

import { chosen, likeliestFirst } from "./sampling.js";

const SEEN = 0.0005; // of a chance, which is shown to a tenth of a percent

export const lengthOf = (vector) => Math.hypot(...vector);

// What happens to the vector of one token on its way down: of each stage the part, its block, what it `added` to the
// vector (null for the embedding, which is the first) and the vector `after` it. Where the residual stream is taken
// away a part replaces the vector: `added` is then all of it, and `onto` is null.
export function stages(reading, position) {
  const first = { part: "token-embedding", block: null, onto: null, added: null, after: reading.stream(0, position) };
  const all = [first];
  for (let block = 0; block < reading.model.numLayers; block += 1) {
    const after = [["attention", reading.middle(block, position)], ["mlp", reading.stream(block + 1, position)]];
    for (const [part, vector] of after) {
      const replaced = reading.broken.residual && reading.broken.block !== block;
      const before = all.at(-1).after, onto = replaced ? null : before;
      all.push({ part, block, onto, added: onto ? vector.map((value, i) => value - onto[i]) : vector, after: vector });
    }
  }
  return all;
}

// The head of a block whose look at one token is the strongest, and that look: {head, to, weight}. The start and the
// token itself count only where there is nothing else; null in a block that is passed over.
export function strongest(reading, block, position) {
  let best = null;
  for (let head = 0; head < reading.model.numHeads; head += 1) {
    for (const [to, weight] of reading.looks(block, head, position).entries()) {
      const counts = position < 2 || (to !== 0 && to !== position);
      if (counts && weight > (best?.weight ?? 0)) best = { head, to, weight };
    }
  }
  return best;
}

// The tokens whose vectors in the table point most nearly in the direction of one token's: {id, cosine}, the nearest
// first, itself left out.
export function nearest({ tokenEmbedding: table, embedDim: d, vocabSize }, id, count) {
  const row = (at) => table.subarray(at * d, (at + 1) * d);
  const own = row(id), length = lengthOf(own);
  const cosine = (at) => row(at).reduce((sum, value, i) => sum + value * own[i], 0) / (length * lengthOf(row(at)));
  return Array.from({ length: vocabSize }, (_, at) => ({ id: at, cosine: cosine(at) }))
    .filter((one) => one.id !== id).toSorted((a, b) => b.cosine - a.cosine).slice(0, count);
}

// What a stage changes, if the model ended right before it or right after it: the tokens whose chance rises the most
// and those whose chance falls the most, {id, score, before, after}, `score` by how much the token's score changes. What
// changes by less than can be seen is left out.
export function changes(reading, { onto, after }, count) {
  const [old, now] = [onto, after].map((vector) => reading.scores(vector));
  const [before, then] = [old, now].map((scores) => chosen(scores, {}));
  const about = (id) => ({ id, score: now[id] - old[id], before: before[id], after: then[id] });
  const risen = then.map((p, id) => p - before[id]);
  const first = (sign) => likeliestFirst(risen.map((much) => sign * much)).slice(0, count)
    .filter((id) => sign * risen[id] >= SEEN).map(about);
  return { raised: first(1), lowered: first(-1) };
}

// The angles (radians) by which queries and keys of a position are turned, one for each pair of a head's numbers.
export const angles = ({ rotary, embedDim, numHeads }, position) => (
  Array.from({ length: rotary.pairs }, (_, pair) => position * 10_000 ** (-2 * pair / (embedDim / numHeads)))
);

// All tokens in a row, each as long as its chance: those worth a piece of their own {id, from, to}, in the order of
// their numbers, as `draw` goes through them.
export function pieces(probs, least = 0.01) {
  const total = probs.reduce((sum, p) => sum + p, 0), all = [];
  let from = 0;
  for (const [id, p] of probs.entries()) {
    if (p / total >= least) all.push({ id, from, to: from + p / total });
    from += p / total;
  }
  return all;
}
