// The cache while a text is written: what is in it, and how many rows each pass computes with it and without.

const ROW = 28;
const CELL = 16;
const GRID = 14; // of the passes

export default function (figure, { text, note, box, cell, panel, slider, words }) {
  const { words: written, prompt, keys, values } = figure.data;
  const most = written.length - prompt;
  const cache = panel(204, 46 + ROW * written.length);
  const passes = panel(340, 184);
  const say = words();
  let now;

  function show(more) {
    const sizes = Array.from({ length: more + 1 }, (_, pass) => prompt + pass); // what each pass would read again
    const fresh = sizes.map((size, pass) => (pass ? 1 : size));
    now = { kept: prompt + more, with: sum(fresh), without: sum(sizes), fresh: fresh.at(-1) };
    cache.replaceChildren(
      text(86, 12, "keys", "key", { size: 13 }), text(142, 12, "values", "value", { size: 13 }),
      ...written.flatMap((word, i) => row(word, i, now)),
    );
    passes.replaceChildren(
      ...grid(10, "With the cache", now.with, more, (pass, i) => (!pass || i === prompt + pass - 1)),
      ...grid(190, "Without it", now.without, more, () => true),
      note(170, 174, "a column is a pass; its faint rows are kept, not computed"),
    );
    const last = more
      ? `The last pass reads one token, ${written[now.kept - 1]}, and keeps its key and its value.`
      : `The prompt's ${now.kept} tokens are read in one pass, and their keys and values kept.`;
    say(`${last} Rows computed so far: ${now.with}, and without the cache ${now.without}.`);
  }

  // A token with its key and its value, or room for them.
  function row(word, i, { kept, fresh }) {
    const y = 24 + ROW * i;
    const vector = (x, shades, role) => (i < kept ? shades : shades.map(() => null))
      .map((shade, j) => cell(x + CELL * j, y + 4, CELL, CELL, shade, i < kept ? role : "muted"));
    const cells = [...vector(62, keys[i], "key"), ...vector(118, values[i], "value")];
    if (i >= kept) return cells;
    const made = i >= kept - fresh;
    const role = made ? "token" : "muted";
    return [
      box(0, y, 50, 24, role), text(25, y + 12, word, made ? "token" : "ink", { face: "bold" }), ...cells,
      note(172, y + 12, made ? "new" : "kept", role, "start"),
    ];
  }

  // A column for each pass, filled where it computes a row.
  function grid(x, title, count, more, computes) {
    const cells = [];
    for (let pass = 0; pass <= more; pass++) {
      for (let i = 0; i < prompt + pass; i++) {
        const shade = computes(pass, i) ? 0.75 : 0;
        cells.push(cell(x + GRID * pass, 28 + GRID * i, GRID, GRID, shade, pass === more ? "token" : "muted"));
      }
    }
    return [
      text(x, 11, title, "ink", { anchor: "start", face: "bold" }), ...cells,
      text(x, 42 + GRID * written.length, `${count} rows computed`, "token", { anchor: "start" }),
    ];
  }

  const handle = slider({ label: "Tokens written and read", min: 0, max: most, value: 2, say: (more) => `${more} of ${most}` }, show);
  show(handle.valueAsNumber);
  return { numbers: () => now };
}

const sum = (list) => list.reduce((total, value) => total + value, 0);
