// One query of the page's six words, with and without the causal mask: its weights, and what leaks from later words.

export default function (figure, { text, note, box, line, fixed, panel, choice, words }) {
  const { words: tokens, asks: first, queries, keys } = figure.data;
  const picture = panel(340, 222);
  const mask = choice({ label: "Causal mask", options: [[false, "off"], [true, "on"]], value: false }, draw);
  const asks = choice({ label: "Which word asks", options: tokens.map((token, i) => [i, token]), value: first }, draw);
  const tell = words();

  function attention(masked) {
    const scores = keys.map((key, k) => (masked && k > asks.value ? -Infinity : dot(queries[asks.value], key) / Math.sqrt(key.length)));
    const powers = scores.map(Math.exp); // of small numbers
    const total = powers.reduce((a, b) => a + b);
    const weights = powers.map((power) => power / total);
    return { scores, weights, leaked: weights.slice(asks.value + 1).reduce((a, b) => a + b, 0) };
  }

  function draw() {
    const [own, { scores, weights, leaked }] = [27 + 57 * asks.value, attention(mask.value)];
    const later = tokens.length - 1 - asks.value;
    const pieces = [
      text(0, 11, mask.value ? "With the causal mask" : "Without a mask", "ink", { face: "bold", anchor: "start" }),
      note(0, 34, "weights of six keys; below, their scores", "muted", "start"),
      box(own - 27, 168, 54, 24, "query", { kind: "frame" }),
      line("M0 138.5H340"),
    ];
    tokens.forEach((token, i) => {
      const [x, high, role] = [27 + 57 * i, 76 * weights[i], i > asks.value ? "loss" : "query"];
      const blocked = scores[i] === -Infinity;
      if (!blocked) pieces.push(
        box(x - 16, 138 - high, 32, high, role, { kind: "full", radius: 2 }), note(x, 128 - high, share(weights[i]), role),
      );
      const written = blocked ? "−∞" : Number.isInteger(scores[i]) ? fixed(scores[i], 0) : fixed(scores[i]);
      pieces.push(
        text(x, 154, written, role, { size: 13, face: "mono" }),
        text(x, 180, token, "token", { size: 13, face: i === asks.value ? "bold" : undefined }),
      );
    });
    if (later) pieces.push(
      line(`M${own + 31} 197v5h${57 * later - 6}v-5`),
      text(own + 28 + 28.5 * later, 213, mask.value ? "blocked" : `${share(leaked)} leak`, "ink", { size: 12.5 }),
    );
    picture.replaceChildren(...pieces);
    tell(sentence(tokens[asks.value], later));
  }

  function sentence(token, later) {
    const before = share(attention(false).leaked);
    const them = `the ${COUNTS[later]}later word${later === 1 ? "" : "s"}`;
    if (!later) return `Nothing comes after “${token}”: with or without the mask it sees all six words.`;
    if (!mask.value) return `“${token}” takes ${before} of what it gets from ${them}. To predict the next word, a model could read it there.`;
    return `The mask makes the ${later === 1 ? "score" : "scores"} of ${them} −∞. Their ${before} of the weight is shared out among the rest, in proportion.`;
  }

  draw();
  return { numbers: () => ({ asks: asks.value, masked: mask.value, ...attention(mask.value) }) };
}

const COUNTS = ["", "", "two ", "three ", "four ", "five "];
const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
const share = (weight) => `${(100 * weight).toFixed(0)} %`;
