// Eight scores of the size that dot products of d numbers have, divided by √d or not: their softmax and its slopes.

export default function (figure, { text, note, box, line, fixed, panel, slider, choice, words }) {
  const { sizes, width } = figure.data;
  const picture = panel(340, 268);
  const handle = slider({
    label: "d, the length of query and key", min: 0, max: 10, value: Math.log2(width),
    say: (power) => (2 ** power).toLocaleString("en"),
  }, draw);
  const divide = choice({ label: "The dot products", options: [[false, "as they are"], [true, "divided by √d"]], value: false }, draw);
  const tell = words();

  function softmax() {
    const d = 2 ** handle.valueAsNumber;
    const scores = sizes.map((size) => (divide.value ? size : size * Math.sqrt(d)));
    const powers = scores.map((score) => Math.exp(score - Math.max(...scores)));
    const total = powers.reduce((a, b) => a + b);
    const weights = powers.map((power) => power / total);
    const slopes = weights.map((w, i) => w * weights.reduce((others, other, j) => (i === j ? others : others + other), 0));
    const entropy = -weights.reduce((sum, w) => sum + (w ? w * Math.log(w) : 0), 0);
    return { d, divided: divide.value, scores, weights, slopes, entropy };
  }

  function draw() {
    const { d, divided, scores, weights, slopes, entropy } = softmax();
    const [highest, top] = [Math.max(...weights), Math.max(...scores)];
    const digits = top < 10 ? 2 : 1;
    const how = divided ? `divided by √d = ${Number(Math.sqrt(d).toFixed(2))}` : "not divided";
    const pieces = [
      text(0, 11, `d = ${d.toLocaleString("en")}: ${how}`, "ink", { face: "bold", anchor: "start" }),
      note(0, 34, "weights of eight keys; below, their scores", "muted", "start"),
      note(0, 184, "slopes: how much a weight moves with its score", "muted", "start"),
    ];
    weights.forEach((weight, i) => {
      const [x, high, steep] = [22 + 42 * i, 74 * weight, 200 * slopes[i]];
      pieces.push(
        box(x - 13, 138 - high, 26, high, "query", { kind: "full", radius: 2 }),
        note(x, 128 - high, `${(100 * weight).toFixed(0)} %`, "query"),
        text(x, 154, fixed(scores[i], digits), "query", { size: 11.5, face: "mono" }),
        box(x - 13, 266 - steep, 26, steep, "gradient", { kind: "full", radius: 2 }),
        note(x, 256 - steep, fixed(slopes[i]), "gradient"),
      );
    });
    picture.replaceChildren(...pieces, line("M0 138.5H340M0 266.5H340"));
    const evenly = Math.log(weights.length);
    tell(`The scores reach from ${fixed(Math.min(...scores), digits)} to ${fixed(top, digits)}. The largest weight is ${short(100 * highest)} %, `
      + `the entropy ${short(entropy)} nats (all equal: ${fixed(evenly)}), and the steepest slope ${short(Math.max(...slopes))}.`
      + (divided ? " Divided by √d, the scores have this size at every width." : ""));
  }

  draw();
  return { numbers: softmax };
}

// Two digits after the point, or two that count; what is smaller than a millionth is said to be below that.
const short = (x) => (x < 1e-6 ? "below 0.000001" : x < 0.01 ? x.toLocaleString("en", { maximumSignificantDigits: 2 }) : x.toFixed(2));
