// Byte-pair encoding on five words, merge by merge: the text as it is cut, its pairs, and the tree that grows.

const LETTER = 14; // width in the text
const TREE = { top: 146, step: 58 };
const MIDDLES = new Map([["t", 40], ["h", 100], ["e", 160], ["n", 220], ["he", 130], ["the", 85], ["then", 150]]);

// Every pair of neighbours inside the words and how often it is seen, in the order in which they are met.
function countPairs(words) {
  const found = [];
  for (const word of words) {
    for (let i = 0; i + 1 < word.length; i++) {
      const known = found.find(([left, right]) => left === word[i] && right === word[i + 1]);
      if (known) known[2] += 1;
      else found.push([word[i], word[i + 1], 1]);
    }
  }
  return found;
}

// Of equals the pair that was met first.
const mostFrequent = (pairs) => pairs.reduce((best, pair) => (pair[2] > best[2] ? pair : best));

function merge(word, [left, right]) {
  const merged = [];
  for (const token of word) {
    merged.push(token);
    if (merged.at(-2) === left && merged.at(-1) === right) merged.splice(-2, 2, left + right);
  }
  return merged;
}

// The text after each number of merges, and its pairs.
function steps(text, merges) {
  let words = text.split(" ").map((word) => [...word]);
  const found = [];
  for (let made = 0; made <= merges; made++) {
    const pairs = countPairs(words);
    const best = mostFrequent(pairs);
    found.push({ words, pairs, best });
    words = words.map((word) => merge(word, best));
  }
  return found;
}

export default function (figure, { text, note, box, line, panel, slider, words }) {
  const all = steps(figure.data.text, figure.data.merges);
  const picture = panel(340, 342);
  const say = words();
  let now;

  function show(made) {
    const { words: cut, pairs, best } = all[made];
    now = { words: cut, pairs, merges: all.slice(0, made).map((step) => step.best) };
    picture.replaceChildren(
      ...inText(cut),
      note(0, 58, made < figure.data.merges ? "side by side, and how often:" : "still side by side:", "muted", "start"),
      ...inPairs(pairs, made < figure.data.merges ? best : undefined),
      ...tree(made),
    );
    const count = cut.flat().length;
    const next = made < figure.data.merges
      ? `Most often side by side, ${times(best[2])}: ${best[0]} and ${best[1]}. They merge next.`
      : `Still side by side, ${times(best[2])}: ${best[0]} and ${best[1]}.`;
    say(`After ${made} ${made === 1 ? "merge" : "merges"} the text has ${count} tokens. ${next}`);
  }

  const token = (x, y, name, width, role = "token", kind = "box") => [
    box(x - width / 2, y - 14, width, 28, role, { kind, radius: 5 }),
    text(x, y, name, role, { face: "mono" }),
  ];

  // The words, each token a box; what a merge has made is tinted.
  function inText(cut) {
    let x = 1;
    return cut.flatMap((word) => {
      const pieces = word.flatMap((name) => {
        const width = LETTER * name.length + 2;
        x += width + 1;
        const made = name.length > 1;
        return token(x - width / 2 - 1, 18, name, width, made ? "token" : "muted", made ? "box" : "frame");
      });
      x += 8;
      return pieces;
    });
  }

  function inPairs(pairs, best) {
    let x = 0;
    return pairs.flatMap((pair) => {
      const [left, right, count] = pair;
      const role = pair === best ? "query" : "muted";
      const [first, second] = [left, right].map((name) => 10 * name.length + 10);
      const at = x;
      x += first + second + 40;
      return [
        ...token(at + first / 2 + 1, 88, left, first, role), ...token(at + first + second / 2 + 2, 88, right, second, role),
        text(at + first + second + 8, 88, `${count}×`, role, { anchor: "start", face: pair === best ? "bold" : "" }),
      ];
    });
  }

  // The tree as far as it has grown; what merges next has a dashed outline.
  function tree(made) {
    const { top, step } = TREE;
    const y = (name) => top + step * (all.findIndex(({ best }) => best[0] + best[1] === name) + 1);
    const shown = all.slice(0, figure.data.merges);
    const grown = shown.slice(0, made + 1).flatMap(({ best: [left, right, count] }, i) => {
      const name = left + right;
      const middle = y(name) - 27;
      const branch = (child) => line(
        `M${MIDDLES.get(child)} ${(child.length > 1 ? y(child) : top) + 14}V${middle}H${MIDDLES.get(name)}V${y(name) - 14}`, "muted", i < made ? "line" : "dashed");
      return [
        branch(left), branch(right),
        ...token(MIDDLES.get(name), y(name), name, 22 + 9 * name.length, i < made ? "token" : "query", i < made ? "box" : "dashed"),
        note(250, y(name) - 8, i < made ? `merge ${i + 1}` : "merges next", i < made ? "token" : "query", "start"),
        note(250, y(name) + 9, `seen ${times(count)}`, "muted", "start"),
      ];
    });
    const letters = [...new Set(figure.data.text.replaceAll(" ", ""))];
    return [...grown, ...letters.flatMap((name) => token(MIDDLES.get(name), top, name, 31)), note(250, top, "letters", "muted", "start")];
  }

  const handle = slider({ label: "Merges", min: 0, max: figure.data.merges, value: figure.data.merges }, show);
  show(handle.valueAsNumber);
  return { numbers: () => now };
}

const times = (count) => (count === 1 ? "once" : `${count} times`);
