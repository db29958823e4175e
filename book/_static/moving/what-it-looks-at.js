// A story, and what each head looks at from the token that asks. Behind it, faint, where the head looks elsewhere.

const NAMES = { 0.3: "0.3, the animal head", "1.0": "1.0, the hero head" };

export default function (figure, { svg, text, note, box, panel, slider, choice, press, words }) {
  const { tokens, heads, places, asks } = figure.data;
  const last = tokens.length - 2; // after the last token nothing comes
  const picture = panel(340, places.at(-1)[1] + 20);
  const head = choice({ label: "Head", options: Object.keys(heads).toSorted().map((name) => [name, NAMES[name] ?? name]), value: "0.3" }, draw);
  const query = slider({ label: "Token that asks", min: 0, max: last, value: asks, say: (i) => quoted(tokens[i]) }, draw);
  press("Next look of 40 % or more", () => {
    const later = (i) => (query.valueAsNumber + 1 + i) % (last + 1);
    const all = Array.from({ length: last + 1 }, (_, i) => later(i));
    const next = all.find((i) => i > 1 && heads[head.value][i][0]?.[1] >= 0.4);
    query.value = next ?? query.valueAsNumber;
    query.dispatchEvent(new Event("input"));
  });
  const tell = words();

  function draw() {
    const [own, looked] = [query.valueAsNumber, heads[head.value]];
    const keys = new Map(looked[own]);
    const drawn = (i, least, role, opacity) => looked[i].filter(([key, share]) => key !== i && share >= least)
      .map(([key, share]) => arc(places[i], places[key], share, role, opacity));
    const faint = looked.slice(0, last + 1).flatMap((_, i) => (i === own ? [] : drawn(i, 0.4, "muted", 0.2)));
    const role = (i) => (i === own ? "query" : keys.has(i) ? "key" : i === own + 1 ? "value" : "ink");
    const marks = [own, ...keys.keys()].map((i) => frame(places[i], role(i)));
    const start = svg("circle", { class: `d-${role(0)} d-frame`, cx: places[0][0] + 5, cy: places[0][1], r: 3 });
    const spelled = tokens.slice(1).map((token, i) =>
      text(places[i + 1][0], places[i + 1][1], token.trim(), role(i + 1), { size: 12.5, anchor: "start", face: "mono" }));
    const shares = looked[own].map(([key, share]) =>
      note(Math.min(Math.max(places[key][0] + places[key][2] / 2, 14), 322), places[key][1] - 17, percent(share), role(key)));
    picture.replaceChildren(...faint, ...drawn(own, 0, "query", 0.6), ...marks, start, ...spelled, ...shares);
    const rest = looked[own].map(([key, share]) => `${percent(share)} to ${key === own ? "itself" : quoted(tokens[key])}`).join(", ");
    tell(`${quoted(tokens[own])} asks, ${quoted(tokens[own + 1])} comes next. Head ${head.value} gives ${rest || "no token as much as a tenth"}.`);
  }

  const frame = ([x, y, wide], role) => box(x - 2, y - 10, wide + 4, 20, role, { radius: 3 });

  function arc([left, y, wide], [keyLeft, at, width], share, role, opacity) {
    const [x, to] = [left + wide / 2, keyLeft + width / 2];
    const high = 18 + Math.min(14, Math.abs(x - to) / 12);
    const d = y === at
      ? `M${x} ${y - 10}C${x} ${y - 10 - high} ${to} ${at - 10 - high} ${to} ${at - 10}`
      : `M${x} ${y - 10}C${x} ${y - 34} ${to} ${at + 36} ${to} ${at + 10}`;
    return svg("path", { class: `d-${role} d-line`, d, style: `stroke-width: ${1 + 5 * share}px; stroke-opacity: ${opacity}` });
  }

  draw();
  return {
    numbers: () => {
      const looked = heads[head.value][query.valueAsNumber];
      return { head: head.value, asks: query.valueAsNumber, keys: looked.map(([key]) => key), shares: looked.map(([, share]) => share) };
    },
  };
}

const percent = (share) => `${Math.round(100 * share)} %`;
const quoted = (token) => (token === "\n" ? "the newline" : `“${token.trim()}”`);
