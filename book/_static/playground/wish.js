// The model that wants happy endings, by how much it does: a story that it writes, what its stories earn and how far it has
// moved for that, beside the best there is.

import { make } from "../live/elements.js";
import { come } from "./late.js";
import { START, WISHES } from "./state.js";
import { fillTable } from "./tokens.js";
import { writeOn } from "./writing.js";

const LONG = 110; // tokens of a story
const WORD = /[\p{L}\p{N}_]+(?:'[\p{L}\p{N}_]+)*/gu; // as `tinytorch_book.stories` splits a text
const SVG = "http://www.w3.org/2000/svg";
const LEFT = 26, TOP = 8, ACROSS = 280, UP = 150; // of the drawing: where its axes meet at the top, and how long they are
const NATS = 4, POINTS = 3.2; // up to which they go

// The pieces of a text with their points; a word that has any stands alone.
export function counted(text, points) {
  const pieces = [];
  let end = 0;
  for (const { 0: word, index } of text.matchAll(WORD)) {
    if (!Object.hasOwn(points, word)) continue;
    pieces.push([text.slice(end, index), 0], [word, points[word]]);
    end = index + word.length;
  }
  return [...pieces, [text.slice(end), 0]];
}

const signed = (number) => (number < 0 ? `−${-number}` : `+${number}`);
const plain = (number) => String(number).replace("-", "−");
const fileOf = (beta) => (beta === null ? START.step : `wish-${beta}`);
const nameOf = (beta) => (beta === null ? "untuned" : `β\u00a0=\u00a0${beta}`);
const measured = (mean, error) => mean.toFixed(2) + (error ? `\u00a0±\u00a0${error.toFixed(2)}` : "");

// wishes: what the recipe has measured (book/_runtime/playground_files.py)
export function wish(play, { points, curve, wishes }) {
  const { parts, thinking } = play;
  let number = 0; // of the story: the same dice for each β
  let turn = 0, shown = null, wanted; // what stands there, and the β that was asked for last
  const drawing = new Drawing(parts.wishDrawing, curve, wishes);
  parts.wishPoints.textContent = list(points);

  const place = (beta) => {
    parts.wish.value = WISHES.indexOf(beta);
    parts.wishIs.textContent = nameOf(beta);
    parts.wish.setAttribute("aria-valuetext", nameOf(beta));
  };

  // The model of a β; until it has come the one before stays.
  async function want(beta) {
    if (beta === wanted) return;
    wanted = beta;
    place(beta);
    const still = () => beta === wanted;
    if (!thinking.has(fileOf(beta))) {
      await come(play, "wishFetching", `The model ${nameOf(beta)}`, () => thinking.fetch(fileOf(beta)), still);
      if (!still()) return;
    }
    parts.wishFetching.hidden = true;
    if (play.state.wish !== beta) play.change({ wish: beta }, { says: () => "" });
    else draw(beta);
  }

  function draw(beta) {
    const which = `${beta} ${number}`;
    if (shown === which) return;
    shown = which;
    const { tuned, best, stories } = wishes.find((one) => one.beta === beta);
    drawing.mark(beta);
    const reference = beta === null ? "the grammar" : `the best with ${nameOf(beta)}`;
    fillTable(parts.wishReached, [
      [row("model", "the model"), measured(tuned.reward, tuned.reward_error), measured(tuned.kl, tuned.kl_error)],
      [row("best", reference), measured(best.reward), measured(best.kl)],
    ]);
    parts.bestWrites.textContent = `${reference.replace("t", "T")} writes:`;
    put(parts.bestStory, parts.bestCounted, stories[number % stories.length]);
    write(beta, tuned);
  }

  async function write(beta, { reward, kl }) {
    turn += 1;
    const mine = turn;
    parts.wishCounted.textContent = "";
    const text = await writeOn(thinking, [], { ...START, step: fileOf(beta) }, {
      whole: true, most: LONG, ends: true, seed: number + 1, wanted: () => mine === turn,
      tell: (begun) => { parts.wishStory.textContent = begun; },
    });
    if (text === null) return;
    put(parts.wishStory, parts.wishCounted, text);
    play.say(`${nameOf(beta)}: ${reward.toFixed(2)} points a story, ${kl.toFixed(2)} away from the untuned. It wrote: ${text} ${parts.wishCounted.textContent}`);
  }

  function put(story, sum, text) {
    const pieces = counted(text, points);
    story.replaceChildren(...pieces.map(([piece, p]) => (p ? marked(piece, p) : piece)));
    sum.textContent = told(pieces);
  }

  parts.wish.addEventListener("input", () => want(WISHES[parts.wish.value]));
  parts.wishAnother.addEventListener("click", () => {
    number += 1;
    draw(play.state.wish);
  });
  return {
    show({ wish: beta }) {
      if (thinking.has(fileOf(beta))) {
        wanted = beta;
        place(beta);
        draw(beta);
      } else want(beta);
    },
  };
}

// What a story earns, and for what.
export function told(pieces) {
  const words = pieces.filter(([, p]) => p);
  const sum = words.reduce((total, [, p]) => total + p, 0);
  const what = words.map(([word, p]) => `${word} ${signed(p)}`).join(", ");
  return `${plain(sum)} ${Math.abs(sum) === 1 ? "point" : "points"}${what && `: ${what}`}.`;
}

// The words by their points.
function list(points) {
  const all = [...new Set(Object.values(points))];
  return all.map((p) => {
    const words = Object.keys(points).filter((word) => points[word] === p);
    return `${plain(p)} for ${words.join(", ")}`;
  }).join("; ");
}

function marked(word, p) {
  const made = make("mark", `tt-wish__word ${p < 0 ? "tt-wish__word--less" : ""}`, word);
  made.append(make("sup", "", signed(p)));
  return made;
}

function row(kind, text) {
  const made = make("span");
  made.append(make("i", `tt-wish__sign tt-wish__sign--${kind}`, "", { "aria-hidden": "true" }), text);
  return made;
}

// Points against nats: the curve above which nothing lies, what was measured, and the best for the chosen β. The table
// says the same.
class Drawing {
  constructor(svg, curve, wishes) {
    svg.setAttribute("viewBox", `0 0 ${LEFT + ACROSS + 8} ${TOP + UP + 34}`);
    add(svg, "path", { class: "tt-wish__axis", d: `M${LEFT} ${TOP}v${UP}h${ACROSS}` });
    for (let nats = 0; nats <= NATS; nats += 1) add(svg, "text", { x: x(nats), y: TOP + UP + 14, "text-anchor": "middle" }, nats);
    for (let points = 0; points <= POINTS; points += 1) add(svg, "text", { x: LEFT - 8, y: y(points) + 4, "text-anchor": "end" }, points);
    add(svg, "text", { x: LEFT + ACROSS, y: TOP + UP + 29, "text-anchor": "end" }, "how far from the untuned");
    add(svg, "text", { x: LEFT + 6, y: TOP + 8 }, "points a story");
    const inside = curve.filter(([nats]) => nats <= NATS);
    add(svg, "path", { class: "tt-wish__curve", d: `M${inside.map(([nats, points]) => `${x(nats)} ${y(points)}`).join("L")}` });
    this.marks = new Map(wishes.map(({ beta, tuned, best }) => [beta, [
      add(svg, "circle", { class: "tt-wish__best", cx: x(best.kl), cy: y(best.reward), r: 6 }),
      add(svg, "circle", { class: "tt-wish__tuned", cx: x(tuned.kl), cy: y(tuned.reward), r: 4 }),
    ]]));
  }

  mark(beta) {
    for (const [one, both] of this.marks) for (const mark of both) mark.toggleAttribute("data-chosen", one === beta);
  }
}

const x = (nats) => Number((LEFT + ACROSS * nats / NATS).toFixed(1));
const y = (points) => Number((TOP + UP * (1 - points / POINTS)).toFixed(1));

function add(svg, tag, attributes, text = "") {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  svg.append(made);
  return made;
}
