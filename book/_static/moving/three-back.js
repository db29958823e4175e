// Where a query looks in four models that learned to name the symbol three back, inside and past the trained length.

export default function (figure, { svg, text, note, line, panel, slider, words }) {
  const { schemes, back, trained, step } = figure.data;
  const [strip, low] = [70, 30 + 70 * schemes.length];
  const picture = panel(340, low + 16);
  const query = slider({ label: "Position of the query", min: back, max: schemes[0].looks.length - 1, value: 24 }, draw);
  const tell = words();
  const place = (position) => 6 + step * position;
  const toIt = (scheme, p) => scheme.looks[p].find(([key]) => key === p - back)?.[1] ?? 0; // percent on the symbol three back

  function one(scheme, p, y) {
    const base = y + 60;
    const arcs = scheme.looks[p].filter(([key]) => key !== p).map(([key, weight]) => svg("path", {
      class: "d-query d-line", style: `stroke-width: ${0.6 + 0.07 * weight}px; stroke-linecap: butt`,
      d: `M${place(p)} ${base}Q${(place(p) + place(key)) / 2} ${base - 2 * Math.min(30, 5 + 1.7 * (p - key))} ${place(key)} ${base}`,
    }));
    return [
      svg("rect", { class: "d-muted d-plain", x: 0, y: y + 18, width: place(trained - 0.5), height: 48 }),
      text(0, y + 8, scheme.name, "ink", { face: "bold", anchor: "start", size: 13 }),
      note(340, y + 8, `${scheme.right[p - back]} % right`, "muted", "end"),
      line(`M0 ${base + 0.5}H340`), ...arcs,
      svg("circle", { class: "d-value d-join", cx: place(p - back), cy: base, r: 4.5 }),
      svg("circle", { class: "d-query d-full", cx: place(p), cy: base, r: 3.5 }),
    ];
  }

  function draw() {
    const p = query.valueAsNumber;
    picture.replaceChildren(
      text(0, 11, `Query at ${p}: ${p < trained ? "as in training" : "further out"}`, "ink", { face: "bold", anchor: "start" }),
      ...schemes.flatMap((scheme, i) => one(scheme, p, 30 + strip * i)),
      note(0, low + 6, "0", "muted", "start"), note(place(trained), low + 6, "16: never trained", "muted", "start"), note(340, low + 6, "63", "muted", "end"),
    );
    tell(`On the symbol three back (the ring) lie ${schemes.map((scheme) => `${toIt(scheme, p)} % (${scheme.name})`).join(", ")} of the weight.`);
  }

  draw();
  return {
    numbers: () => {
      const p = query.valueAsNumber;
      return { query: p, back: schemes.map((scheme) => toIt(scheme, p)), right: schemes.map((scheme) => scheme.right[p - back]) };
    },
  };
}
