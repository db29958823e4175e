// Four hands of the sinusoidal table, at a position and some positions further: their angles do not depend on where.

import { svg } from "./tools.js";

const [Y, RADIUS] = [84, 34]; // of the dials
const [FIRST, APART] = [42.5, 85]; // the middle of the first dial, and from one to the next

export default function (figure, { text, note, line, arrow, fixed, panel, slider, words }) {
  const { width, position, shift } = figure.data;
  const speeds = Array.from({ length: width / 2 }, (_, i) => 10000 ** ((-2 * i) / width));
  const picture = panel(340, 254);
  const where = slider({ label: "Position p", min: 0, max: 50, value: position }, draw);
  const further = slider({ label: "Further by k", min: 1, max: 6, value: shift }, draw);
  const tell = words();

  const rowOf = (p) => speeds.flatMap((speed) => [Math.sin(p * speed), Math.cos(p * speed)]);

  // Each pair of the row, multiplied by the matrix that rotates it by kω.
  const rotated = (row, k) => speeds.flatMap((speed, i) => {
    const [s, c, a, b] = [row[2 * i], row[2 * i + 1], Math.cos(k * speed), Math.sin(k * speed)];
    return [s * a + c * b, c * a - s * b];
  });

  function shown() {
    const [p, k] = [where.valueAsNumber, further.valueAsNumber];
    const row = rowOf(p), moved = rotated(row, k);
    return { position: p, shift: k, row, moved, product: row.reduce((sum, value, i) => sum + value * moved[i], 0) };
  }

  function dial(i, before, after, angle) {
    const x = FIRST + APART * i;
    const wedge = `M${x} ${Y}L${tip(i, before, 30)}A30 30 0 ${angle > Math.PI ? 1 : 0} 1 ${tip(i, after, 30)}z`;
    return [
      svg("circle", { class: "d-muted d-frame", cx: x, cy: Y, r: RADIUS }), line(wedge, "position", "plain"),
      arrow([x, Y], tip(i, before, 30)), arrow([x, Y], tip(i, after, 30), "position"),
      note(x, 36, `ω = ${Number(speeds[i].toPrecision(2))}`), note(x, 132, degrees(angle), "position"),
    ];
  }

  const numbers = (i, pair, y, role) => pair.flatMap((value, j) => {
    const x = FIRST + APART * i - 40 + 40 * j;
    return [
      svg("rect", { class: `d-${role} d-tint`, x: x + 0.75, y: y + 0.75, width: 38.5, height: 20.5, rx: 2 }),
      text(x + 20, y + 11, fixed(value), role, { size: 11.5, face: "mono" }),
    ];
  });

  function draw() {
    const { position: p, shift: k, row, moved, product } = shown();
    const angles = speeds.slice(0, 4).map((speed) => k * speed);
    picture.replaceChildren(
      text(0, 11, `Position ${p}, and ${k} further`, "ink", { face: "bold", anchor: "start" }),
      ...angles.flatMap((angle, i) => {
        const [before, after] = [row, moved].map((each) => each.slice(2 * i, 2 * i + 2));
        return [...dial(i, before, after, angle), ...numbers(i, before, 162, "muted"), ...numbers(i, after, 204, "position")];
      }),
      note(0, 152, `row ${p}`, "muted", "start"),
      note(0, 194, `row ${p + k}: each pair rotated`, "position", "start"),
      note(0, 244, `with all ${width} columns, row ${p} · row ${p + k} = ${fixed(product)}`, "muted", "start"),
    );
    tell(`${k} further rotates these four hands by ${angles.map(degrees).join(", ")}, from position ${p} as from every other, `
      + `and the two rows have the dot product ${fixed(product)}.`);
  }

  draw();
  return { numbers: shown };
}

const degrees = (angle) => `${((180 * angle) / Math.PI).toFixed(0)}°`;

const tip = (i, [right, up], length) => [FIRST + APART * i + length * right, Y - length * up];
