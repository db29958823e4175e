// What the first chapter's programs write and how surprised they are, for each number of letters remembered.

const BASE = 160; // of the columns
const UNIT = 58; // of a nat

const many = (letters) => (letters === 1 ? "1 letter" : `${letters} letters`);

export default function (figure, { text, note, box, line, fixed, panel, slider, words }) {
  const { floor, programs, best } = figure.data;
  const written = panel(340, 126);
  const columns = panel(340, 228);
  const say = words();
  let now;

  function show(letters) {
    const { text: lines, loss, never } = programs[letters - 1];
    now = { letters, text: lines, loss, never, floor };
    written.replaceChildren(
      text(0, 11, `Remembers ${many(letters)}`, "ink", { anchor: "start", face: "bold" }),
      ...lines.map((said, i) => text(0, 44 + 22 * i, said, "ink", { size: 13, anchor: "start", face: "mono" })),
    );
    columns.replaceChildren(
      text(0, 11, "Surprise at new stories, nats a letter", "ink", { anchor: "start", face: "bold" }),
      ...programs.flatMap((program, i) => column(program, i, i + 1 === letters)),
      line(`M0 ${BASE - UNIT * floor}H340`, "ink", "dashed"),
      note(6, BASE + 38, "never read, % of the places in new stories", "muted", "start"),
    );
    const lowest = letters === best ? ", the least of these" : "";
    say(`With ${many(letters)} the surprise is ${fixed(loss)} nats a letter${lowest}; `
      + `the floor, dashed, is ${fixed(floor)}. ${places(never)}`);
  }

  const places = (never) => (never < 0.0001
    ? "The letters before have nearly always been read together."
    : `At ${fixed(100 * never)} % of the places the letters before were never read together.`);

  function column({ loss, never }, i, chosen) {
    const [x, height] = [6 + 42 * i, UNIT * loss];
    const role = chosen ? "query" : "token";
    return [
      box(x, BASE - height, 34, height, role, { kind: chosen ? "full" : "box", radius: 2 }),
      note(x + 17, BASE - height - 10, fixed(loss), role),
      text(x + 17, BASE + 14, `${i + 1}`, role, { face: "bold" }),
      note(x + 17, BASE + 58, fixed(100 * never), role),
    ];
  }

  const handle = slider({ label: "Letters remembered", min: 1, max: programs.length, value: 1 }, show);
  show(handle.valueAsNumber);
  return { numbers: () => now };
}
