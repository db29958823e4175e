// Where the rows of 24 words stand while the chapter's word model is trained, at the steps that were kept.

export default function (figure, { svg, text, panel, slider, words }) {
  const { words: names, roles, steps, points, labels, same, of, place } = figure.data;
  const picture = panel(340, 318);
  const say = words();
  const numbers = () => {
    const at = handle.valueAsNumber;
    return { step: steps[at], points: points[at], same: same[at], of };
  };

  const told = (at) => (steps[at] ? `after ${steps[at]} steps` : "before training");
  const draw = () => {
    const at = handle.valueAsNumber;
    const dots = points[at].map(([x, y], i) => svg("circle", {
      class: `d-${roles[i]} d-full`, cx: place.x + place.wide * x, cy: place.y - place.high * y, r: 2.5,
    }));
    const written = labels[at].map(([x, y], i) => text(x, y, names[i], roles[i], { face: "mono", size: 12 }));
    const when = told(at).replace(/^./, (letter) => letter.toUpperCase());
    picture.replaceChildren(text(0, 11, when, "ink", { face: "bold", anchor: "start" }), ...dots, ...written);
    say(`${when}, ${same[at] || "none"} of the ${of} words that have a kind stand nearest to a word of their own kind.${at ? "" : " Move the handle to train."}`);
  };
  const handle = slider({ label: "Training", min: 0, max: steps.length - 1, value: 0, say: told }, draw);
  draw();
  return { numbers };
}
