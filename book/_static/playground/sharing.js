// Sends what stands in the playground: a link to it, and a picture for messages.

import { make } from "../live/elements.js";
import { toHash } from "./state.js";
import { percent, quoted, seen } from "./tokens.js";

const WIDTH = 1200, HEIGHT = 630, MARGIN = 64;
const ROWS = 5, LINES = 2;
const NAME = "what-comes-next.png";
const TITLE = "TinyTorch: embeddings to GPT";
const FONTS = ["600 44px 'TinyTorch Serif'", "32px 'TinyTorch Serif'"];

// The address at which another browser shows the same.
export const linkTo = (state) => new URL(toHash(state), location.href.split("#")[0]).href;

// What the picture shows: the text, and for each likely token what the model and the truth give it.
export function cardOf({ state, view, thinking, likeliest }) {
  const text = view.at === null ? state.text + thinking.tokenizer.decode(state.drawn)
    : thinking.tokenizer.decode(view.ids.slice(0, view.at));
  const rows = likeliest.slice(0, ROWS).map((id) => ({
    token: thinking.texts[id], model: view.chosen[id], truth: view.truth ? view.truth.get(id) ?? 0 : null,
  }));
  return { text: text.replace(/\s+/gu, " ").trim(), rows };
}

// The same in words, for who does not see it.
export function wordsOf({ text, rows }) {
  const each = rows.map(({ token, model, truth }) => (
    `${quoted(token)} ${percent(model)}${truth === null ? "" : `, the truth ${percent(truth)}`}`
  ));
  return `${text ? `After “${text}”` : "At the start of a story"} the model expects: ${each.join("; ")}.`;
}

// The end of a text in lines of at most this width; `measure` tells that of a text.
export function lastLines(text, measure, width, most = LINES) {
  const lines = [];
  for (const word of text.split(" ")) {
    const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
    if (lines.length && measure(longer) <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  const shown = lines.slice(-most);
  if (shown.length < lines.length) shown[0] = `… ${shown[0]}`;
  return shown;
}

// Draws a card; paint: the 2d context; colours: of ink, muted, paper, model and truth.
export function drawCard(paint, { text, rows }, colours) {
  const write = (words, x, y, font, colour, align = "left") => {
    Object.assign(paint, { font, fillStyle: colour, textAlign: align, textBaseline: "alphabetic" });
    paint.fillText(words, x, y, WIDTH - 2 * MARGIN);
  };
  const fill = (colour, ...box) => { paint.fillStyle = colour; paint.fillRect(...box); };
  fill(colours.paper, 0, 0, WIDTH, HEIGHT);
  fill(colours.model, 0, 0, WIDTH, 10);
  paint.font = FONTS[0];
  const lines = lastLines(`${text} …`.trim(), (words) => paint.measureText(words).width, WIDTH - 2 * MARGIN - 40);
  for (const [i, line] of lines.entries()) write(line, MARGIN, 90 + 56 * i, FONTS[0], colours.ink);
  const top = 190, left = 290, right = WIDTH - 380, most = Math.max(...rows.flatMap((row) => [row.model, row.truth ?? 0]));
  write("What comes next?", MARGIN, top, FONTS[1], colours.muted);
  write("the model", WIDTH - 230, top, FONTS[1], colours.model, "right");
  write("the truth", WIDTH - MARGIN, top, FONTS[1], colours.truth, "right");
  for (const [i, { token, model, truth }] of rows.entries()) {
    const y = top + 24 + 66 * i;
    write(seen(token), MARGIN, y + 40, FONTS[1], colours.ink);
    fill(colours.model, left, y + 8, Math.max(1, (right - left) * model / most), 20);
    if (truth !== null) fill(colours.truth, left, y + 31, Math.max(1, (right - left) * truth / most), 20);
    write(percent(model), WIDTH - 230, y + 40, FONTS[1], colours.model, "right");
    write(truth === null ? "–" : percent(truth), WIDTH - MARGIN, y + 40, FONTS[1], colours.truth, "right");
  }
  write(TITLE, MARGIN, HEIGHT - 40, FONTS[1], colours.muted);
}

function coloursOf(element) {
  const style = getComputedStyle(element);
  const of = (name) => style.getPropertyValue(`--tt-${name}`).trim();
  return { ink: of("ink"), muted: of("muted"), paper: of("paper"), model: of("accent-1"), truth: of("accent-2") };
}

// The picture as a file, or null where a browser draws none or gives none away.
async function pictured(canvas, card, place) {
  try {
    await Promise.all(FONTS.map((font) => document.fonts.load(font)));
    drawCard(canvas.getContext("2d"), card, coloursOf(place));
    const blob = await new Promise((done) => { canvas.toBlob(done, "image/png"); });
    return blob && new File([blob], NAME, { type: "image/png" });
  } catch {
    return null; // which is said
  }
}

// Opens the panel that shares, or closes it.
export async function sharing(play) {
  const { sharing: place, picture: opener } = play.parts;
  const opens = place.hidden;
  place.hidden = !opens;
  opener.setAttribute("aria-expanded", opens);
  if (!opens) return;
  place.className = "tt-play__sharing";
  await new Sharing(play, place).show();
}

class Sharing {
  constructor(play, place) {
    Object.assign(this, { play, place, card: cardOf(play), link: linkTo(play.state) });
    this.told = make("span", "tt-play__note");
  }

  async show() {
    const canvas = make("canvas", "", "", { role: "img", "aria-label": wordsOf(this.card), width: WIDTH, height: HEIGHT });
    const buttons = make("div", "tt-play__links");
    this.place.replaceChildren(buttons, this.told);
    const button = (name, act) => {
      const made = make("button", "", name, { type: "button" });
      made.addEventListener("click", act);
      buttons.append(made);
      return made;
    };
    const link = navigator.share ? button("Send a link", () => this.send({ title: TITLE, url: this.link }))
      : button("Copy the link", () => this.copy());
    if (navigator.share) button("Copy the link", () => this.copy());
    link.focus({ preventScroll: true });
    const file = await pictured(canvas, this.card, this.place);
    if (!file) {
      this.tell("This browser makes no picture of it; the link shows the same.");
      return;
    }
    this.place.append(canvas);
    button("Save the picture", () => this.save(file));
    const files = { files: [file], text: wordsOf(this.card) };
    if (navigator.canShare?.(files)) button("Send the picture", () => this.send({ ...files, text: `${files.text} ${this.link}` }));
  }

  tell(text) {
    this.told.textContent = text;
    this.play.say(text);
  }

  async send(what) {
    try {
      await navigator.share(what);
      this.tell("Sent.");
    } catch (error) {
      if (error.name !== "AbortError") this.tell("This browser does not send it; copy the link or save the picture."); // else: left
    }
  }

  async copy() {
    try {
      await navigator.clipboard.writeText(this.link);
      this.tell("The link is copied.");
    } catch {
      this.play.keep();
      this.tell("The link is in the address bar.");
    }
  }

  save(file) {
    const address = URL.createObjectURL(file);
    make("a", "", "", { href: address, download: NAME }).click();
    URL.revokeObjectURL(address);
    this.tell(`Saved as ${NAME}. It shows: ${wordsOf(this.card)}`);
  }
}
