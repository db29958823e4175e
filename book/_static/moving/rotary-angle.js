// A query and a key on a dial, rotated by their positions: their dot product depends on the distance alone.

import { svg } from "./tools.js";

const [X, Y, RADIUS] = [170, 132, 74]; // of the dial
const [AXIS, HIGH, ACROSS] = [314, 34, 10]; // of the dot products: the height of zero, that of one, a step of distance

export default function (figure, { text, note, line, arrow, fixed, panel, slider, press, words }) {
  const { turn, query: first, key: second } = figure.data; // steps in a full turn, and the positions to begin with
  const picture = panel(340, 374);
  const options = { min: 0, max: turn - 1 };
  const query = slider({ label: "Position of the query", ...options, value: first }, draw);
  const key = slider({ label: "Position of the key", ...options, value: second }, draw);
  press("Both one back", () => shift(-1));
  press("Both one further", () => shift(1));
  const tell = words();

  const angle = (position) => (2 * Math.PI * position) / turn;
  const rotated = (position) => [Math.cos(angle(position)), Math.sin(angle(position))]; // what was (1, 0)
  const product = (s, t) => rotated(s)[0] * rotated(t)[0] + rotated(s)[1] * rotated(t)[1];
  const hand = (position, length) => [X + length * Math.cos(angle(position)), Y - length * Math.sin(angle(position))];

  function shift(steps) {
    const moved = [query, key].map((handle) => handle.valueAsNumber + steps);
    if (Math.min(...moved) < 0 || Math.max(...moved) >= turn) return;
    [query, key].forEach((handle, i) => {
      handle.value = moved[i];
      handle.dispatchEvent(new Event("input"));
    });
  }

  function name(position, letter, role, length) {
    const found = text(...hand(position, length), letter, role, { size: 16, face: "italic" });
    found.append(svg("tspan", { dy: 3, "font-size": 12 }, position));
    return found;
  }

  function draw() {
    const [s, t] = [query.valueAsNumber, key.valueAsNumber];
    const apart = s - t;
    const ticks = Array.from({ length: turn }, (_, i) => `M${hand(i, RADIUS - 4)}L${hand(i, RADIUS + 1)}`).join("");
    const pieces = [circle(X, Y, RADIUS, "muted", "frame"), line(ticks)];
    if (apart) {
      const arc = `A34 34 0 ${Math.abs(apart) > turn / 2 ? 1 : 0} ${apart > 0 ? 0 : 1} ${hand(s, 34)}`;
      pieces.push(line(`M${X} ${Y}L${hand(t, 34)}${arc}z`, "position", "plain"));
      if (Math.abs(apart) > 1) pieces.push(text(...hand((s + t) / 2, 54), `${Math.abs(apart)}ω`, "position", { size: 15 }));
    }
    pieces.push(
      arrow([X, Y], hand(t, RADIUS - 8), "key"), arrow([X, Y], hand(s, RADIUS - 8), "query"), circle(X, Y, 3, "ink", "full"),
      name(t, "k", "key", RADIUS + 17), name(s, "q", "query", RADIUS + (apart ? 17 : 44)),
      text(0, 11, `Query at ${s}, key at ${t}`, "ink", { face: "bold", anchor: "start" }),
      note(0, 262, "dot product by distance", "muted", "start"),
      text(340, 262, `q · k = ${fixed(product(s, t))}`, "position", { anchor: "end" }),
      line(`M${X - ACROSS * turn} ${AXIS}H${X + ACROSS * turn}`),
    );
    for (let distance = 1 - turn; distance < turn; distance++) {
      const place = [X + ACROSS * distance, AXIS - HIGH * product(distance, 0)];
      pieces.push(circle(...place, distance === apart ? 6 : 2.5, distance === apart ? "position" : "muted", "full"));
    }
    for (const distance of [1 - turn, 0, turn - 1]) pieces.push(note(X + ACROSS * distance, 362, fixed(distance, 0)));
    picture.replaceChildren(...pieces);
    tell(`The query is rotated by ${steps(s)} of ${360 / turn}°, the key by ${t}. Between them ${Math.abs(apart) === 1 ? "is" : "are"} ${steps(Math.abs(apart))}, `
      + `and the dot product is ${fixed(product(s, t))}, wherever in the text the two stand.`);
  }

  draw();
  return {
    numbers: () => {
      const [s, t] = [query.valueAsNumber, key.valueAsNumber];
      return { query: s, key: t, rotatedQuery: rotated(s), rotatedKey: rotated(t), product: product(s, t) };
    },
  };
}

const circle = (x, y, r, role, kind) => svg("circle", { class: `d-${role} d-${kind}`, cx: x, cy: y, r });
const steps = (n) => `${n} ${n === 1 ? "step" : "steps"}`;
