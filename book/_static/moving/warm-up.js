// The learning rate of every step, as CosineSchedule of tinytorch gives it: a line up, then half a cosine down.

const RATE = 0.02;
const LONGEST = 160; // steps that the picture has room for
const across = (step) => 44 + 1.65 * step;

export default function (figure, { text, note, line, arrow, panel, slider, words }) {
  const picture = panel(340, 214);
  const say = words();
  const numbers = () => {
    const [warmup, total] = [rising.valueAsNumber, whole.valueAsNumber];
    if (warmup >= total) return { warmup, total, rates: null };
    const rates = Array.from({ length: LONGEST + 1 }, (_, step) => {
      if (step < warmup) return RATE * (step + 1) / warmup;
      const done = (step - warmup) / (total - warmup);
      return RATE * (1 + Math.cos(Math.PI * Math.min(done, 1))) / 2;
    });
    return { warmup, total, rates };
  };

  const draw = () => {
    const all = numbers();
    const [top, end] = [across(all.warmup), across(all.total)];
    const curve = all.rates?.slice(0, all.total + 1).map((rate, step) => `${across(step)} ${166 - 116 * rate / RATE}`);
    picture.replaceChildren(
      text(0, 11, "The learning rate of each step", "ink", { face: "bold", anchor: "start" }),
      line("M44 50H326", "muted", "dashed"),
      ...(all.warmup ? [line(`M${top} 50V172`, "muted", "dashed"), note(top, 182, `warm-up ${all.warmup}`)] : []),
      line(`M${end} 166V172`),
      arrow([38, 166], [336, 166]),
      arrow([44, 172], [44, 34]),
      ...(curve ? [line(`M${curve.join("L")}`, "query", "thick")] : []),
      text(36, 50, `${RATE}`, "query", { anchor: "end", size: 13 }),
      text(36, 158, "0", "query", { anchor: "end", size: 13 }),
      note(end, 200, `${all.total} steps`),
    );
    say(told(all));
  };
  const rising = slider({ label: "Warm-up", min: 0, max: 100, step: 5, value: 40, say: (steps) => `${steps} steps` }, draw);
  const whole = slider({ label: "All steps", min: 40, max: LONGEST, step: 10, value: 120, say: (steps) => `${steps} steps` }, draw);
  draw();
  return { numbers };
}

function told({ warmup, total, rates }) {
  if (!rates) return `A warm-up of ${warmup} steps must end before the ${total} steps do: there is no such schedule.`;
  const up = warmup ? `The rate rises by ${Number(rates[0].toPrecision(2))} a step for ${warmup} steps, up to ${RATE}`
    : `The first step has the whole rate, ${RATE}`;
  return `${up}; then it falls along half a cosine, to 0 at step ${total}.`;
}
