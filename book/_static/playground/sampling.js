// From scores to one token: what `tinytorch.models.sampling` does, in the same order and with the same ties.

// The probabilities from which the next token is drawn: the scores divided by the temperature become probabilities,
// top-k keeps the most likely, top-p keeps of those the fewest that hold enough, and what is left sums to one.
// At temperature 0 the most likely is certain; topK and topP of null keep all.
export function chosen(logits, { temperature = 1, topK = null, topP = null } = {}) {
  if (!(temperature >= 0 && temperature < Infinity)) {
    throw new RangeError(`the temperature must be 0 or more, and finite, got ${temperature}`);
  }
  let probs = tempered(logits, temperature);
  if (topK !== null) probs = keepTopK(probs, topK);
  if (topP !== null) probs = keepTopP(probs, topP);
  return probs;
}

// One token; `random` gives a number from 0 to below 1. What has probability 0 is never drawn.
export function draw(probs, random) {
  const total = probs.reduce((sum, p) => sum + p, 0);
  const target = random() * total; // which may be rounded up to the total
  let sum = 0;
  return probs.findIndex((p) => (sum += p) > target || sum === total);
}

// Random numbers from 0 to below 1, the same for the same seed: mulberry32 (Tommy Ettinger, public domain).
export function seeded(seed) {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

// softmax(logits / temperature), or its limit at 0: the most likely, of equals the one with the lowest id.
function tempered(logits, temperature) {
  let largest = -Infinity;
  for (let id = 0; id < logits.length; id++) largest = Math.max(largest, logits[id]); // NaN if one of them is
  if (!Number.isFinite(largest)) throw new RangeError("the scores hold no finite largest one");
  const probs = new Float64Array(logits.length);
  if (temperature === 0) {
    probs[logits.indexOf(largest)] = 1;
    return probs;
  }
  for (let id = 0; id < probs.length; id++) probs[id] = Math.exp((logits[id] - largest) / temperature);
  return normalised(probs);
}

function keepTopK(probs, k) {
  if (!(Number.isInteger(k) && k >= 1)) throw new RangeError(`top-k must be a whole number from 1 on, got ${k}`);
  return kept(probs, likeliestFirst(probs).slice(0, k));
}

// The fewest that hold `p`, one at least; a sum that misses it by rounding alone has reached it.
function keepTopP(probs, p) {
  if (!(p > 0 && p <= 1)) throw new RangeError(`top-p must be above 0 and at most 1, got ${p}`);
  if (p === 1) return probs;
  const order = likeliestFirst(probs);
  let before = 0; // what the more likely ones hold
  const first = order.findIndex((id) => {
    const enough = before > 0 && before >= p - 1e-12;
    before += probs[id];
    return enough;
  });
  return kept(probs, first < 0 ? order : order.slice(0, first));
}

// The ids from the most likely to the least; among equals the lower first.
export const likeliestFirst = (probs) => [...probs.keys()].toSorted((a, b) => probs[b] - probs[a] || a - b);

function kept(probs, ids) {
  const rest = new Float64Array(probs.length);
  for (const id of ids) rest[id] = probs[id];
  return normalised(rest);
}

// In place, so that the sum is one.
function normalised(probs) {
  let sum = 0;
  for (let id = 0; id < probs.length; id++) sum += probs[id];
  for (let id = 0; id < probs.length; id++) probs[id] /= sum;
  return probs;
}
