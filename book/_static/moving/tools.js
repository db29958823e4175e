// What the figures that move are made of. Pictures are drawn in the parts of book/drawings/parts.py; below them stand
// the handles, in the order in which they are asked for, and a line that says in words what is seen.
//
//     export default function (figure, { panel, slider, words, text }) {
//       const picture = panel(340, 120);
//       const say = words();
//       const draw = (k) => {
//         picture.replaceChildren(text(20, 40, `${k}`, "query"));
//         say(`There are ${k}.`);
//       };
//       const handle = slider({ label: "How many", min: 1, max: 8, value: 3 }, draw);
//       draw(handle.valueAsNumber);
//       return { numbers: () => ({ many: handle.valueAsNumber }) };
//     }

const SVG = "http://www.w3.org/2000/svg";
const STILL = 500; // ms without a change, after which the words are read out
let count = 0; // of the handles on the page, for their ids

// Pieces of pictures ----------------------------------------------------------------------------

// An element of SVG; attributes that are undefined are left out.
export const svg = (name, attributes = {}, ...children) => {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined) element.setAttribute(key, value);
  element.append(...children);
  return element;
};

// Words, their middle at height y; face is bold, italic or mono.
export const text = (x, y, words, role = "ink", { size = 14, anchor = "middle", face } = {}) =>
  svg("text", {
    class: `d-${role}${face ? ` d-${face}` : ""}`, x, y: y + 0.32 * size, "text-anchor": anchor, "font-size": size,
  }, words);

export const note = (x, y, words, role = "muted", anchor = "middle") => text(x, y, words, role, { size: 12.5, anchor });

// kind is box (tinted), frame, dashed or full; shade, from 0 to 1, is that of a cell.
export const box = (x, y, width, height, role, { kind = "box", radius = 6 } = {}) =>
  svg("rect", { class: `d-${role} d-${kind}`, x, y, width: Math.max(0, width), height: Math.max(0, height), rx: radius });

export const cell = (x, y, width, height, shade, role) =>
  svg("rect", {
    class: `d-${role} ${shade === null ? "d-empty" : "d-shade"}`, x: x + 0.75, y: y + 0.75, width: width - 1.5, height: height - 1.5,
    rx: 2, "fill-opacity": shade === null ? undefined : 0.14 + 0.8 * Math.min(Math.max(shade, 0), 1),
  });

// Any line as SVG writes it; kind is line, thick, dotted, dashed, plain or head.
export const line = (path, role = "muted", kind = "line") => svg("path", { class: `d-${role} d-${kind}`, d: path });

// A straight arrow from one point to another.
export const arrow = ([x, y], [toX, toY], role = "muted", kind = "line") => {
  const length = Math.hypot(toX - x, toY - y) || 1;
  const [a, b] = [(toX - x) / length, (toY - y) / length];
  const at = (back, aside) => `${toX - back * a - aside * b} ${toY - back * b + aside * a}`;
  return svg("g", {}, line(`M${x} ${y}L${at(Math.min(6, length / 2), 0)}`, role, kind),
    line(`M${at(0, 0)}L${at(8, 4)}L${at(8, -4)}z`, role, "head"));
};

// A number as it is printed, with a true minus.
export const fixed = (value, digits = 2) => value.toFixed(digits).replace(/^-(?=0\.?0*$)/, "").replace("-", "−");

// The tools of one figure -----------------------------------------------------------------------

export function toolsFor(figure) {
  const whole = make("div", "tt-moving");
  const panels = make("div", "tt-drawing__panels");
  const handles = make("div", "tt-moving__handles");
  whole.append(panels, handles);

  // A picture in place of the static one, which stays for paper; at most 340 wide, as those of book/drawings.
  function panel(width, height) {
    if (width > 340) throw new Error(`a panel is at most 340 pixels wide, got ${width}`);
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, style: `--w: ${width}`, "aria-hidden": "true" });
    panels.append(picture);
    if (!whole.isConnected) figure.querySelector(".tt-drawing__panels").after(whole);
    return picture;
  }

  // A handle to slide; say(value) puts its value into words. Gives the range input; change gets its number.
  function slider({ label, min, max, step = 1, value, say = String }, change) {
    const id = `tt-moving-${++count}`;
    const input = make("input", "", { type: "range", id, min, max, step, value });
    const output = make("output", "tt-moving__value", { for: id, "aria-live": "off" });
    const tell = () => {
      output.textContent = say(input.valueAsNumber);
      input.setAttribute("aria-valuetext", output.textContent);
    };
    input.addEventListener("input", () => {
      tell();
      change(input.valueAsNumber);
    });
    tell();
    handles.append(make("div", "tt-moving__slider", {}, make("label", "", { for: id }, label), output, input));
    return input;
  }

  // One of several, as radio buttons; options are texts, or pairs of a value and its text. Gives an object whose
  // `value` is what is chosen.
  function choice({ label, options, value }, change) {
    const name = `tt-moving-${++count}`;
    const chosen = { value };
    const group = make("fieldset", "tt-moving__choice", {}, make("legend", "", {}, label));
    for (const option of options) {
      const [key, title] = Array.isArray(option) ? option : [option, option];
      const input = make("input", "", { type: "radio", name, value: key });
      input.checked = key === value;
      input.addEventListener("change", () => {
        chosen.value = key;
        change(key);
      });
      group.append(make("label", "", {}, input, ` ${title}`));
    }
    handles.append(group);
    return chosen;
  }

  // A button.
  function press(label, action) {
    const button = make("button", "tt-moving__press", { type: "button" }, label);
    button.addEventListener("click", action);
    handles.append(button);
    return button;
  }

  // A line of words under the picture. It changes at once, and is read out when it has changed for the last time: from a
  // place of its own, for NVDA forgets what changes while `aria-busy` is set.
  function words() {
    const said = make("p", "tt-moving__words"), heard = make("p", "visually-hidden", { "aria-live": "polite" });
    let waiting = 0;
    whole.append(said, heard);
    return (sentence) => {
      if (said.textContent === sentence) return;
      const changes = Boolean(said.textContent); // the first sentence comes with the picture
      said.textContent = sentence;
      heard.textContent = "";
      clearTimeout(waiting);
      if (changes) waiting = setTimeout(() => { heard.textContent = sentence; }, STILL);
    };
  }

  return { svg, text, note, box, cell, line, arrow, fixed, panel, slider, choice, press, words };
}

function make(tag, kind, attributes = {}, ...children) {
  const element = document.createElement(tag);
  if (kind) element.className = kind;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
