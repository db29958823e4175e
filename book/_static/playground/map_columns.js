// Where the tokens stand in the map: a column for each, and one for those for which there is no room.

export const NARROWEST = 50; // pixels of a column,
export const WIDEST = 108;
const LEAST = 6; // of them: the start, the focus, two that are wanted, and gaps
const SOME = 120; // more than the window has

// The columns of a text of so many tokens, the start included, in a picture that is `width` pixels wide. The start, the
// token in `focus` and those `wanted` have one; for the others there may be no room. A column is {index, x, width}, or
// for tokens that are not shown {from, to, x, width}: the first of them and the first after them.
export function columnsOf(count, focus, width, wanted = []) {
  const room = Math.max(LEAST, Math.floor(width / NARROWEST) || SOME);
  const all = withGaps(shown(count, focus, wanted, room), count);
  const each = Math.min(WIDEST, width / all.length), left = (width - each * all.length) / 2;
  return all.map((column, i) => ({ ...column, width: each, x: left + each * (i + 0.5) }));
}

// The tokens that have a column of their own: after those that must, the ones before the focus, the nearest first, then
// those after it, as many as there is room for with the gaps between them.
function shown(count, focus, wanted, room) {
  let chosen = [...new Set([0, focus, ...wanted])];
  const before = Array.from({ length: focus }, (_, i) => focus - 1 - i);
  const after = Array.from({ length: count - focus - 1 }, (_, i) => focus + 1 + i);
  for (const index of [...before, ...after]) {
    const more = [...new Set([...chosen, index])];
    if (withGaps(more, count).length <= room) chosen = more;
  }
  return chosen;
}

function withGaps(indices, count) {
  const all = [];
  let next = 0;
  for (const index of [...indices.toSorted((a, b) => a - b), count]) {
    if (index > next) all.push({ from: next, to: index });
    if (index < count) all.push({ index });
    next = index + 1;
  }
  return all;
}

// What a column takes of the weights of a look: of several tokens together, for those that are not shown.
export const share = (weights, { index, from, to }) => (
  index === undefined ? weights.slice(from, to).reduce((sum, weight) => sum + weight, 0) : weights[index] ?? 0
);
