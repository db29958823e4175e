// Where the last of six tokens looks, with 1 to 16 trained heads: a small picture for each head.

const COUNTS = ["none", "one", "two", "three", "four", "five", "six", "seven", "eight"];

export default function (figure, { svg, text, note, panel, choice, words }) {
  const { models, columns, sharp } = figure.data;
  const picture = panel(340, 286);
  const heads = choice({ label: "Heads", options: models.map((model) => [model.heads, `${model.heads}`]), value: 4 }, draw);
  const tell = words();
  const chosen = () => models.find((model) => model.heads === heads.value);
  const isSharp = (weights) => Math.max(...weights) >= sharp;

  function head(weights, x, y, step) {
    const [base, last] = [y + 2 * step + 8, weights.length - 1];
    const most = weights.indexOf(Math.max(...weights));
    const [role, said] = isSharp(weights) ? ["query", `${last - most} back`] : ["muted", "spread"];
    const at = (i) => x + step * i;
    const arcs = weights.slice(0, last).flatMap((weight, i) => (weight < 3 ? [] : [
      svg("path", {
        class: `d-${role} d-line`, style: `stroke-width: ${0.6 + 0.07 * weight}px; stroke-linecap: butt`,
        d: `M${at(last)} ${base}Q${(at(last) + at(i)) / 2} ${base - 0.8 * step * (last - i)} ${at(i)} ${base}`,
      }),
    ]));
    const dots = weights.slice(0, last).map((_, i) => circle(svg, at(i), base, 2.5, "token"));
    return [...arcs, ...dots, circle(svg, at(last), base, 3.5, "query"), note(x + 2.5 * step, base + 17, said, role)];
  }

  function draw() {
    const { heads: count, right, weights } = chosen();
    const wide = 340 / columns[count], step = (wide - 24) / 5, tall = 2 * step + 42;
    picture.replaceChildren(
      text(0, 11, `${count} head${count > 1 ? "s" : ""}: ${right} % right`, "ink", { face: "bold", anchor: "start" }),
      ...weights.flatMap((row, i) => head(row, wide * (i % columns[count]) + 12, 30 + tall * Math.floor(i / columns[count]), step)),
    );
    tell(sentence(count, weights.filter(isSharp).length));
  }

  function sentence(count, clear) {
    if (count === 1) return "The one head spreads its weight over all four tokens that are asked for. What arrives is a single mixture of them.";
    if (clear === 0) return "Each head spreads its weight over two of the four tokens: the heads have begun to divide the work.";
    if (clear === count) return `Each of the ${COUNTS[count]} heads gives one token nearly all its weight, and no two the same. What arrives has nothing mixed in it.`;
    return `${count} heads: ${COUNTS[clear]} give one token at least ${sharp} % of their weight; the others spread it.`;
  }

  draw();
  return { numbers: () => ({ ...chosen(), sharp: chosen().weights.filter(isSharp).length }) };
}

const circle = (svg, x, y, r, role) => svg("circle", { class: `d-${role} d-full`, cx: x, cy: y, r });
