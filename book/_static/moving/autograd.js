// The graph of loss = (w·x − y)² with the reader's inputs: values forward, and the gradients as far back as the reader goes.

const WIRES = { // the ends of each, and where its value and its gradient stand
  w: [[74, 62], [102, 96], 37, 48, 37, 82],
  x: [[74, 162], [102, 130], 37, 176, 37, 142],
  y: [[194, 180], [194, 128], 194, 195, 204, 152],
  p: [[126, 113], [180, 113], 153, 96, 153, 133],
  e: [[208, 113], [250, 113], 229, 96, 229, 133],
  loss: [[278, 113], [306, 113], 316, 92, 316, 137],
};
const REACHED = { loss: 1, e: 2, p: 3, y: 3, w: 4, x: 4 }; // the step back in which each gets its gradient
const BACK = ["none yet", "of the loss", "through the square", "through the difference", "through the product"];

export default function (figure, { svg, text, box, arrow, fixed, panel, slider, words }) {
  const picture = panel(340, 214);
  const say = words();
  const short = (value) => fixed(value).replace(/\.?0+$/, "");
  const join = (x, sign, lit, size) => [
    svg("circle", { class: `d-${lit ? "gradient d-box" : "muted d-join"}`, cx: x, cy: 113, r: 14 }),
    text(x, 114, sign, lit ? "gradient" : "ink", { size }),
  ];
  const inputs = {};
  const numbers = () => {
    const [w, x, y, back] = ["w", "x", "y", "back"].map((name) => inputs[name].valueAsNumber);
    const p = w * x;
    const e = p - y;
    const gradients = { loss: 1, e: 2 * e, p: 2 * e, y: -2 * e, w: 2 * e * x, x: 2 * e * w };
    for (const name in gradients) if (REACHED[name] > back) gradients[name] = null;
    return { back, values: { w, x, y, p, e, loss: e * e }, gradients };
  };

  const wire = (name, value, gradient) => {
    const [from, to, x, top, gradientX, below] = WIRES[name];
    const flow = ([a, b]) => (name === "w" || name === "x" ? [a - 8, b + (name === "w" ? 6 : -6)]
      : name === "y" ? [a + 5, b] : [a, b + 7]);
    const input = "wxy".includes(name);
    return [
      arrow(from, to),
      ...(gradient === null ? [] : [arrow(flow(to), flow(from), "gradient", "dotted")]),
      ...(input ? [box(x - 37, top - 15, 74, 30, "token")] : []),
      text(x, top, input ? `${name} = ${short(value)}` : short(value), "token", { face: "mono", size: 13 }),
      ...(gradient === null ? []
        : [text(gradientX, below, short(gradient), "gradient", { face: "mono", size: 13, anchor: name === "y" ? "start" : "middle" })]),
    ];
  };

  const told = ({ back, values: v, gradients: g }) => {
    const n = short;
    if (!back) return `Forward: ${n(v.w)} times ${n(v.x)} is ${n(v.p)}; take away ${n(v.y)} and ${n(v.e)} is left; its square is the loss, ${n(v.loss)}.`;
    if (back === 1) return "Back: a change of the loss changes the loss as much, so its own gradient is 1.";
    if (back === 2) return `The square multiplies it by twice what went in, ${n(v.e)}, and hands on ${n(g.e)}.`;
    if (back === 3) return `The difference hands ${n(g.p)} to the product, and the opposite, ${n(g.y)}, to y.`;
    if (!v.e) return "The product is what it should be: the loss is 0, and so is the gradient of every input.";
    const way = g.w > 0 ? "a little less" : "a little more";
    const advice = g.w ? `With ${way} of w, the loss falls.` : "A little more or less of w changes nothing, since x is 0.";
    return `The product hands each factor ${n(g.p)} times the other: ${n(g.w)} to w and ${n(g.x)} to x. ${advice}`;
  };

  const draw = () => {
    const all = numbers();
    const lit = (step) => all.back === step;
    picture.replaceChildren(
      text(0, 11, "loss = (w·x − y)²", "ink", { face: "bold", anchor: "start" }),
      ...Object.keys(WIRES).flatMap((name) => wire(name, all.values[name], all.gradients[name])),
      ...join(114, "×", lit(4), 17), ...join(194, "−", lit(3), 17), ...join(264, "( )²", lit(2), 12),
      text(326, 113, "L", "loss", { face: "italic", size: 17 }),
    );
    say(told(all));
  };
  const handle = (name, label, settings) => { inputs[name] = slider({ label, ...settings }, draw); };
  handle("w", "w, the weight", { min: -3, max: 4, step: 0.5, value: 2, say: short });
  handle("x", "x, the input", { min: -3, max: 4, step: 0.5, value: 3, say: short });
  handle("y", "y, the target", { min: -3, max: 8, step: 0.5, value: 5, say: short });
  handle("back", "Gradients", { min: 0, max: 4, value: 4, say: (step) => BACK[step] });
  draw();
  return { numbers };
}
