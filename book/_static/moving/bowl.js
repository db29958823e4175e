// Gradient descent in the chapter's bowl, with a rate and a momentum that the reader sets: v = momentum v + g; w = w − rate v.

const STEPS = 40;
const FRAME = { x: [8, 332], y: [34, 202] };

export default function (figure, { svg, text, note, box, line, fixed, panel, slider, words }) {
  const { curvature, start, levels, centre, units } = figure.data;
  const picture = panel(340, 214);
  const say = words();
  const loss = (w) => w.reduce((sum, value, i) => sum + curvature[i] * value * value / 2, 0);
  const dot = ([x, y], role, r) => svg("circle", { class: `d-${role} d-full`, cx: x, cy: y, r });
  const place = ([x, y]) => [centre[0] + units[0] * x, centre[1] - units[1] * y];

  const numbers = () => {
    const [lr, momentum] = [rate.valueAsNumber, kept.valueAsNumber];
    const path = [start];
    let velocity = [0, 0];
    for (let step = 0; step < STEPS; step++) {
      const w = path.at(-1);
      velocity = velocity.map((v, i) => momentum * v + curvature[i] * w[i]);
      path.push(w.map((value, i) => value - lr * velocity[i]));
    }
    const bound = 2 * (1 + momentum) / curvature[1] + 1e-9; // of the rates that keep it in the valley
    return { lr, momentum, bound, path, loss: loss(path.at(-1)) };
  };

  // Across the valley, three positions in a row keep z² − middle z + momentum = 0: its roots say how the path goes.
  const told = ({ lr, momentum, bound, path, loss: last }) => {
    const middle = 1 + momentum - lr * curvature[1];
    const ends = last < 0.005 ? "less than 0.01" : last < 1e6 ? fixed(last) : "more than a million";
    const after = `The loss is ${fixed(loss(start), 0)} at the start and ${ends} after ${STEPS} steps.`;
    if (lr > bound) return `Thrown out: with this momentum no rate above ${Number(bound.toFixed(4))} keeps the path in the valley. ${after}`;
    if (lr > bound - 2e-9) return `At the edge: the jumps across the valley do not die away. ${after}`;
    const beyond = path.some(([, y]) => y < -0.001); // the floor of the valley, so that one sees it
    const across = middle ** 2 < 4 * momentum - 1e-12 && beyond ? "swings back and forth across the valley"
      : middle < -1e-12 ? `jumps from side to side across the valley, ${momentum ? "in the end " : ""}less and less far` : "slides down into the valley";
    const past = path.some(([x]) => x > 0.05);
    const along = past ? "runs past the bottom" : `comes along it as far as x = ${fixed(path.at(-1)[0])}`;
    return `The path ${across}, and ${along}. ${after}`;
  };

  const draw = () => {
    const all = numbers();
    const dots = all.path.map(place);
    if (all.lr > all.bound) dots.length = 1 + dots.findIndex((at, i) => !inside(at) || i === STEPS); // it never rests
    const pieces = dots.slice(1).map((to, i) => seen(dots[i], to)).join("");
    picture.replaceChildren(
      text(0, 11, `${STEPS} steps in the bowl`, "ink", { face: "bold", anchor: "start" }),
      box(8, 34, 324, 168, "muted", { kind: "frame", radius: 4 }),
      ...levels.map((path) => {
        const level = line(path);
        level.style.strokeWidth = "0.75px";
        return level;
      }),
      dot(centre, "value", 3),
      note(centre[0], centre[1] + 10, "bottom", "value"),
      ...(pieces ? [line(pieces, "query")] : []),
      ...dots.filter(inside).map((at) => dot(at, "query", 2)),
      note(dots[0][0] - 2, dots[0][1] - 14, "start", "query"),
    );
    say(told(all));
  };
  const rate = slider({ label: "Learning rate", min: 0.001, max: 0.1, step: 0.001, value: 0.045, say: (value) => fixed(value, 3) }, draw);
  const kept = slider({ label: "Momentum", min: 0, max: 0.95, step: 0.05, value: 0, say: fixed }, draw);
  draw();
  return { numbers };
}

const within = (value, [low, high]) => low <= value && value <= high;
const inside = ([x, y]) => within(x, FRAME.x) && within(y, FRAME.y);

// The piece of a straight line that one sees in the frame.
function seen(from, to) {
  let [begin, end] = [0, 1];
  for (const [i, [low, high]] of [FRAME.x, FRAME.y].entries()) {
    const length = to[i] - from[i];
    if (!length && !within(from[i], [low, high])) return "";
    if (!length) continue;
    const [near, far] = [(low - from[i]) / length, (high - from[i]) / length].toSorted((a, b) => a - b);
    [begin, end] = [Math.max(begin, near), Math.min(end, far)];
  }
  const at = (share) => from.map((value, i) => value + share * (to[i] - value)).join(" ");
  return begin < end ? `M${at(begin)}L${at(end)}` : "";
}
