// Ask it: how probable the model that answers finds every answer, beside what can be known after the text so far.

import { make } from "../live/elements.js";
import { Row } from "./beliefs.js";
import { chosen } from "./sampling.js";
import { QUESTIONS } from "./state.js";
import { percent } from "./tokens.js";

export const UNSURE = "I do not know";
const MODEL = "answering"; // its file
const ELSE = "anything else";
const LONG = 32; // characters of a text that are repeated
const SURE = 1 - 1e-9; // of a probability: certain

// The probability of each answer as a whole text: `tinytorch_book.experiments.answering.believed`.
export function believed(thinking, text, question, answers) {
  const { tokenizer } = thinking;
  const { special_tokens: names, max_seq_len: most } = thinking.about(MODEL), said = JSON.parse(names);
  const asks = [said["<|user|>"], ...tokenizer.encode(question), said["<|assistant|>"]];
  const answering = answers.map((answer) => [...tokenizer.encode(` ${answer}`), said["<|end|>"]]);
  const longest = Math.max(...answering.map(({ length }) => length));
  const [, ...told] = tokenizer.encode(`\n${text}`); // every reading begins with a line break
  const prompt = [...told.slice(0, most - asks.length - longest), ...asks]; // a story has room
  return answering.map((ids) => {
    const reading = thinking.reading([...prompt, ...ids.slice(0, -1)], { step: MODEL }, true);
    return ids.reduce((product, id, i) => product * chosen(reading.logits(prompt.length + i), {})[id], 1);
  });
}

// What is asked about: the story that a text ends with, without a word that is not over, and the posterior after it,
// null if no story begins so.
export function asked(oracle, name, text) {
  const story = text.toWellFormed().trimEnd().split("\n").at(-1);
  const known = oracle.told(name, story);
  if (known || oracle.follow(story).stopped) return { story, known };
  const before = story.slice(0, Math.max(story.lastIndexOf(" "), 0));
  return { story: before, known: oracle.told(name, before) };
}

export function ask(play) {
  const { parts, thinking } = play;
  const buttons = Object.entries(QUESTIONS).map(([name, question]) => {
    const button = make("button", "", question, { type: "button" });
    button.addEventListener("click", () => play.change({ about: name }, { says: said }));
    parts.questions.append(button);
    return { name, button };
  });
  const others = [UNSURE, ELSE].map((value) => new Row(value));
  parts.otherAnswers.append(...others.map(({ element }) => element));
  let name = null, rows = [];

  const said = () => parts.answered.textContent;

  // The rows of the answers to a question.
  function begin(about, answers) {
    name = about;
    rows = answers.map((value) => new Row(value));
    parts.answers.replaceChildren(...rows.map(({ element }) => element));
  }

  return {
    said,
    show({ about }, { ids, rest, at }) {
      const text = thinking.tokenizer.decode(ids.slice(0, at ?? ids.length)) + (at === null ? rest : "");
      const { story, known } = asked(thinking.oracle, about, text);
      const answers = [...thinking.oracle.told(about, "").keys()];
      if (name !== about) begin(about, answers);
      const belief = believed(thinking, story, QUESTIONS[about], [...answers, UNSURE]);
      for (const { name: each, button } of buttons) button.setAttribute("aria-pressed", each === about);
      for (const [i, row] of rows.entries()) row.show(known?.get(row.value), belief[i]);
      const unsure = belief.at(-1), left = belief.reduce((rest_, p) => rest_ - p, 1);
      others[0].show(undefined, unsure);
      others[1].show(undefined, Math.max(left, 0));
      parts.answered.textContent = sentence(story, QUESTIONS[about], [...answers, UNSURE], belief, known);
    },
  };
}

function sentence(story, question, answers, belief, known) {
  const best = belief.indexOf(Math.max(...belief)), answer = answers[best];
  const end = story.length > LONG ? `…${story.slice(-LONG).replace(/^\S*\s/u, "")}` : story;
  const where = story ? `after “${end}”` : "before the first word";
  const says = `Asked “${question}” ${where}, it would say “${answer}”. It gives that ${percent(belief[best])}`;
  if (!known) return `${says}. No story goes on like this, so there is no truth; it answers all the same.`;
  const [likeliest, p] = [...known].reduce((most, one) => (one[1] > most[1] ? one : most));
  if (p > SURE) return `${says}. The text leaves no choice: it is “${likeliest}”.`;
  const truth = answer === UNSURE ? "." : `; in truth it has ${percent(known.get(answer))}.`;
  const most = p > (known.get(answer) ?? 0) ? ` The likeliest in truth is “${likeliest}”, ${percent(p)}.` : "";
  return `${says}${truth}${most} ${common(belief, [...known.values()])}`;
}

// The belief among the answers, without what it spends on saying nothing, beside the posterior.
function common(belief, known) {
  const given = belief.slice(0, -1).reduce((sum, p) => sum + p, 0);
  const share = known.reduce((sum, p, i) => sum + Math.min(p, belief[i] / given), 0);
  return `Among the answers alone, model and truth have ${percent(share)} in common.`;
}
