// A query steps over the keys: at each a score, then the softmax, then the mixture of the values.

const PLACES = [48, 130, 212, 294];

export default function (figure, { svg, text, note, box, cell, line, arrow, fixed, panel, slider, choice, press, words }) {
  const { tokens, queries, keys, values, largest } = figure.data;
  const [softmaxed, last] = [keys.length + 1, keys.length + 2]; // steps: the query, each key, the softmax, the mixture
  const picture = panel(340, 372);
  const asks = choice({ label: "Which token asks", options: tokens.map((token, i) => [i, token]), value: tokens.length - 1 }, draw);
  const step = slider({
    label: "Step", min: 0, max: last, value: last,
    say: (k) => (k === 0 ? "the query" : k === softmaxed ? "softmax" : k === last ? "the values" : `the key of “${tokens[k - 1]}”`),
  }, draw);
  press("Next step", () => {
    step.value = step.valueAsNumber === last ? 0 : step.valueAsNumber + 1;
    step.dispatchEvent(new Event("input"));
  });
  const tell = words();
  const row = (x, y, numbers, role) => numbers.map((n, i) => cell(x - 28 + 14 * i, y, 14, 18, n / largest, role));

  function draw() {
    const [own, reached] = [PLACES[asks.value], step.valueAsNumber];
    const { scores, weights, output } = attention(queries[asks.value], keys, values);
    const pieces = PLACES.flatMap((x, i) => [
      box(x - 36, 1, 72, 26, i === asks.value ? "query" : "token"),
      text(x, 14, tokens[i], i === asks.value ? "query" : "token", { face: "bold" }),
      ...row(x, 112, keys[i], "key"),
      ...row(x, 262, values[i], "value"),
    ]);
    pieces.push(
      ...row(own, 44, queries[asks.value], "query"), text(own - 36, 53, "q", "query", { face: "italic" }),
      text(12, 121, "k", "key", { face: "italic" }), text(12, 271, "v", "value", { face: "italic" }),
      line("M8 244.5H334"),
    );
    for (const [i, x] of PLACES.entries()) {
      if (reached > i) {
        const passed = i < reached - 1 && reached <= keys.length;
        pieces.push(arrow([own, 66], [x, 109], passed ? "muted" : "query"), text(x, 146, short(scores[i]), "query", { face: "mono" }));
      }
      if (reached >= softmaxed) {
        const high = 64 * weights[i];
        pieces.push(box(x - 18, 244 - high, 36, high, "query", { kind: "full", radius: 2 }), note(x, 234 - high, share(weights[i]), "query"));
      }
      if (reached === last) pieces.push(svg("path", {
        class: "d-value d-line", d: `M${x} 283C${x} 318 ${own} 305 ${own} 342`,
        style: `stroke-width: ${1 + 11 * weights[i]}px; stroke-linecap: butt`,
      }));
    }
    if (reached === last) {
      const [aside, anchor] = own > 170 ? [-38, "end"] : [38, "start"];
      pieces.push(...row(own, 346, output, "value"), note(own + aside, 355, `the new vector of “${tokens[asks.value]}”`, "muted", anchor));
    }
    picture.replaceChildren(...pieces);
    tell(sentence(reached, scores, weights, output));
  }

  function sentence(reached, scores, weights, output) {
    const [token, query] = [tokens[asks.value], queries[asks.value]];
    if (reached === 0) return `“${token}” asks with its query, ${query.join(", ")}. The fuller a cell's colour, the larger its number.`;
    if (reached === softmaxed) return `The softmax makes weights of the four scores: ${weights.map(share).join(", ")}.`;
    if (reached === last) return `Each value comes by its weight. Their sum is the new vector of “${token}”: ${output.map((n) => fixed(n)).join(", ")}.`;
    const key = keys[reached - 1];
    const products = query.map((q, i) => `${q} · ${key[i]}`).join(" + ");
    return `The query of “${token}” meets the key of “${tokens[reached - 1]}”: ${products} = ${dot(query, key)}, and divided by √${key.length} the score is ${short(scores[reached - 1])}.`;
  }

  draw();
  return {
    numbers: () => {
      const [reached, { scores, weights, output }] = [step.valueAsNumber, attention(queries[asks.value], keys, values)];
      return {
        asks: asks.value, step: reached, scores: scores.slice(0, reached),
        weights: reached < softmaxed ? [] : weights, output: reached < last ? [] : output,
      };
    },
  };
}

const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
const short = (score) => String(Number(score.toFixed(2))); // none is negative
const share = (weight) => `${(100 * weight).toFixed(0)} %`;

function attention(query, keys, values) {
  const scores = keys.map((key) => dot(query, key) / Math.sqrt(key.length));
  const powers = scores.map(Math.exp);
  const weights = powers.map((power) => power / powers.reduce((a, b) => a + b));
  return { scores, weights, output: values[0].map((_, c) => dot(weights, values.map((value) => value[c]))) };
}
