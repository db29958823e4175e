// Six words that can be read: W_q says what each kind of word looks for, and one of its numbers can be changed.

const KEYS = 3; // the kinds by which a word can be found: a link is not one
const [LEFT, WIDE, TOP, HIGH, BASE] = [78, 64, 60, 24, 268]; // of the matrix, and the line of words

export default function (figure, { svg, text, note, box, line, panel, choice, slider, press, words, fixed }) {
  const { words: tokens, kinds, x, toQuery, toKey, asks: first } = figure.data;
  const keys = times(x, toKey);
  const picture = panel(340, 314);
  const asks = choice({ label: "Which word asks", options: tokens.map((token, i) => [i, token]), value: first }, draw);
  const row = choice({ label: "Row to change", options: kinds.map((kind, i) => [i, kind]), value: 1 }, back);
  const column = choice({ label: "Column to change", options: kinds.slice(0, KEYS).map((kind, i) => [i, `for ${kind}s`]), value: 1 }, back);
  const value = slider({ label: "The number", min: -4, max: 8, value: toQuery[1][1], say: (n) => fixed(n, 0) }, draw);
  press("As it was", back);
  const tell = words();

  function back() {
    value.value = toQuery[row.value][column.value];
    value.dispatchEvent(new Event("input"));
  }

  const matrix = () => toQuery.map((each, i) => each.map((n, j) => (i === row.value && j === column.value ? value.valueAsNumber : n)));

  function attention(by) {
    const [query] = times([x[asks.value]], by);
    const scores = keys.map((key) => dot(query, key) / Math.sqrt(key.length));
    const powers = scores.map(Math.exp);
    return { query, scores, weights: powers.map((power) => power / powers.reduce((a, b) => a + b)) };
  }

  function draw() {
    const [by, own] = [matrix(), 27 + 57 * asks.value];
    const { query, weights } = attention(by);
    const pieces = [
      text(0, 11, `“${tokens[asks.value]}” asks`, "ink", { face: "bold", anchor: "start" }),
      note(70, 48, "looks for a", "muted", "end"),
      ...kinds.map((kind, j) => note(LEFT + 30 + WIDE * j, 48, kind)),
    ];
    by.forEach((numbers, i) => {
      pieces.push(note(70, TOP + 11 + HIGH * i, article(kinds[i]), x[asks.value][i] ? "query" : "muted", "end"));
      numbers.forEach((n, j) => {
        const chosen = i === row.value && j === column.value;
        pieces.push(
          svg("rect", { class: "d-query d-tint", x: LEFT + 0.75 + WIDE * j, y: TOP + 0.75 + HIGH * i, width: 58.5, height: 20.5, rx: 2 }),
          text(LEFT + 30 + WIDE * j, TOP + 11 + HIGH * i, fixed(n, 0), "query", { size: 13, face: "mono" }),
        );
        if (chosen) pieces.push(box(LEFT + WIDE * j, TOP + HIGH * i, 60, 22, "loss", { kind: "frame", radius: 3 }));
      });
    });
    pieces.push(
      line("M78 160.5H330"), note(70, 177, `so “${tokens[asks.value]}”`, "query", "end"),
      ...query.map((n, j) => text(LEFT + 30 + WIDE * j, 177, short(n), "query", { face: "mono" })),
    );
    tokens.forEach((token, i) => {
      const at = 27 + 57 * i;
      if (i !== asks.value) pieces.push(svg("path", {
        class: "d-query d-line", style: `stroke-width: ${0.6 + 9 * weights[i]}px; stroke-linecap: butt`,
        d: `M${own} ${BASE}Q${(own + at) / 2} ${BASE - 24 - 0.44 * Math.abs(at - own)} ${at} ${BASE}`,
      }));
      pieces.push(
        text(at, BASE + 14, token, i === asks.value ? "query" : "token", { size: 13 }),
        note(at, BASE + 33, share(weights[i]), "query"),
      );
    });
    pieces.push(box(own - 27, BASE + 3, 54, 22, "query", { kind: "frame" }));
    picture.replaceChildren(...pieces);
    tell(sentence(query, weights));
  }

  function sentence(query, weights) {
    const token = tokens[asks.value];
    const is = kinds.flatMap((kind, i) => (x[asks.value][i] ? [`${x[asks.value][i]} ${kind}`] : [])).join(" and ");
    const before = attention(toQuery).weights;
    const found = (all) => tokens.filter((_, i) => all[i] > most(all) - 1e-9).map((word) => `“${word}”`);
    const part = (all) => share(most(all)) + (found(all).length > 1 ? " each" : "");
    if (most(weights) < 0.25) return `“${token}” is ${is}. It has no strong preference, so its attention is spread out.`;
    const was = weights.every((weight, i) => Math.abs(weight - before[i]) < 1e-9) ? "" : ` Before the change: ${part(before)} at ${found(before).join(" and ")}.`;
    return `“${token}” is ${is}. So its query is ${query.map(short).join(", ")}, and it looks most at ${found(weights).join(" and ")}, with ${part(weights)}.${was}`;
  }

  draw();
  return { numbers: () => ({ asks: asks.value, row: row.value, column: column.value, value: value.valueAsNumber, ...attention(matrix()) }) };
}

const dot = (a, b) => a.reduce((sum, n, i) => sum + n * b[i], 0);
const times = (rows, matrix) => rows.map((each) => matrix[0].map((_, j) => each.reduce((sum, n, i) => sum + n * matrix[i][j], 0)));
const article = (kind) => `${kind === "action" ? "an" : "a"} ${kind}`;
const short = (n) => String(Number(n.toFixed(2))).replace("-", "−");
const most = (all) => Math.max(...all);
const share = (weight) => `${(100 * weight).toFixed(0)} %`;
