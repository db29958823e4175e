// What the reader has chosen, in the page's address and back: a link to it shows the same.
//
//     #play&text=Once+upon&drawn=258.385&temperature=0.8&off=mask.norm&step=500
//
// Only what differs from the start stands there. What an address says is checked: a damaged one
// gives the start, or as much of it as can be read.

export const STEPS = [0, 100, 500, 2000, 4000]; // of the training, whose weights there are
export const MINE = "mine"; // in place of a step: the model that the reader has trained
export const WINDOW = 112; // tokens that the model reads, the line break before the story among them
export const BLOCKS = 2, HEADS = 4, VOCABULARY = 512;
export const LONGEST = 2000; // characters of a text: the field takes no more, and an address holds them
// what unfolds on the playground's page, in the order in which it stands there
export const FOLDS = ["training", "attention", "lens", "beliefs", "surprise", "broken", "ask", "wish"];
export const QUESTIONS = { hero: "Who?", place: "Where?", animal: "Which animal?", food: "What food?", thing: "Which thing?" };
export const WISHES = [null, 2, 1, 0.5, 0.25]; // what a nat costs the model that wants happy endings; null is untuned
export const SWITCHES = ["positions", "mask", "scale", "residual", "norm"]; // parts that are there or not

export const START = Object.freeze({
  text: "One sunny morning", // what the reader has written
  drawn: [], // the tokens written on after it
  at: null, // the token that is looked at; null is the next one
  temperature: 1, topK: null, topP: null,
  step: STEPS.at(-1),
  off: [], // of SWITCHES
  head: null, // [block, head] that is silent
  block: null, // that is passed over
  seen: [BLOCKS - 1, 0], // the head whose attention is drawn
  about: "animal", // one of QUESTIONS
  wish: null, // one of WISHES
  map: null, // the part of the map that is open
  open: [], // of FOLDS, those that are unfolded
  lesson: null, // what is shown large to a class: one of FOLDS, or the bars
});

export const BARS = "bars"; // of a lesson: no fold
const MARK = "#play";
const LEFT = "tinytorch-book:left"; // in the tab's storage
const TOURED = "tinytorch-book:toured";

// The part of the address that says what differs from the start; "" if nothing does.
export function toHash(state) {
  const said = new URLSearchParams();
  const add = (name, value, start) => { if (String(value) !== String(start)) said.set(name, value); };
  add("text", state.text.slice(0, LONGEST), START.text);
  add("drawn", state.drawn.join("."), "");
  add("at", state.at ?? "", "");
  add("temperature", state.temperature, START.temperature);
  add("k", state.topK ?? "", "");
  add("p", state.topP ?? "", "");
  add("step", state.step, START.step);
  add("off", state.off.join("."), "");
  add("head", state.head?.join(".") ?? "", "");
  add("block", state.block ?? "", "");
  add("seen", state.seen.join("."), START.seen.join("."));
  add("about", state.about, START.about);
  add("wish", state.wish ?? "", "");
  add("map", state.map ?? "", "");
  add("open", state.open.join("."), "");
  add("lesson", state.lesson ?? "", "");
  const all = said.toString();
  return all ? `${MARK}&${all}` : "";
}

// The state that an address speaks of; null if it speaks of something else.
export function fromHash(hash) {
  if (hash !== MARK && !hash.startsWith(`${MARK}&`)) return null;
  const said = new URLSearchParams(hash.slice(MARK.length + 1));
  const text = said.get("text");
  const drawn = integers(said.get("drawn"), VOCABULARY)?.slice(0, WINDOW) ?? [];
  const [off, open] = ["off", "open"].map((name) => (said.get(name) ?? "").split("."));
  return {
    text: text?.slice(0, LONGEST) ?? START.text,
    drawn,
    at: integers(said.get("at"), WINDOW)?.[0] ?? null,
    temperature: number(said.get("temperature"), 0, 2) ?? START.temperature,
    topK: number(said.get("k"), 1, VOCABULARY, true),
    topP: number(said.get("p"), 0.01, 0.99),
    step: [...STEPS, MINE].find((step) => String(step) === said.get("step")) ?? START.step,
    off: SWITCHES.filter((name) => off.includes(name)),
    head: pair(said.get("head")),
    block: number(said.get("block"), 0, BLOCKS - 1, true),
    seen: pair(said.get("seen")) ?? START.seen,
    about: Object.keys(QUESTIONS).find((name) => name === said.get("about")) ?? START.about,
    wish: WISHES.find((beta) => String(beta) === said.get("wish")) ?? START.wish,
    map: /^[a-z-]+(\.\d)?$/.exec(said.get("map") ?? "")?.[0] ?? null,
    open: FOLDS.filter((name) => open.includes(name)),
    lesson: [BARS, ...FOLDS].find((name) => name === said.get("lesson")) ?? null,
  };
}

// A reload takes the address as it was before the page was left. So the state is kept for it in the tab.
export function leave(state) {
  stored((storage) => storage.setItem(LEFT, toHash(state) || MARK));
}

// The state of the address, or after a reload the one that was left; null if there is none.
export function arrive() {
  const left = stored((storage) => storage.getItem(LEFT));
  stored((storage) => storage.removeItem(LEFT));
  const [{ type }] = performance.getEntriesByType("navigation");
  return fromHash(type === "reload" && left ? left : location.hash);
}

// What the engine calls `broken`: everything that is taken away.
export function broken({ off, head, block }) {
  const taken = Object.fromEntries(SWITCHES.map((name) => [name, off.includes(name)]));
  return { ...taken, head, block };
}

// When in its training a model is the way it is.
export const moment = (step) => {
  if (step === MINE) return "that you trained";
  return step ? `after ${step.toLocaleString("en")} steps` : "before the first step";
};

// Whether the bars show what the model believes, and nothing else.
export const isPlain = ({ temperature, topK, topP }) => temperature === 1 && topK === null && topP === null;

export const isWhole = ({ off, head, block }) => !off.length && head === null && block === null;

function integers(text, end) {
  if (!/^\d+(\.\d+)*$/.test(text ?? "")) return null;
  const all = text.split(".").map(Number);
  return all.every((one) => one < end) ? all : null;
}

function number(text, least, most, whole = false) {
  const value = text ? Number(text) : NaN;
  return value >= least && value <= most && (!whole || Number.isInteger(value)) ? value : null;
}

function pair(text) {
  const both = integers(text, HEADS);
  return both?.length === 2 && both[0] < BLOCKS ? both : null;
}

// Whether the tour has been seen, which the browser keeps.
export const toured = () => stored((storage) => storage.getItem(TOURED), () => localStorage) !== null;
export const rememberTour = () => stored((storage) => storage.setItem(TOURED, "seen"), () => localStorage);

function stored(act, where = () => sessionStorage) {
  try {
    return act(where());
  } catch {
    return null; // a browser may refuse
  }
}
