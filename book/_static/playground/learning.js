// The slider over the moments of training: the bars, and the story that the model writes then, with the same random numbers.
// The weights of the other moments come when it is first touched. Below it a model can be trained in the page.

import { make } from "../live/elements.js";
import { Bars, FEW } from "./bars.js";
import { MINE, STEPS, moment } from "./state.js";
import { writeOn } from "./writing.js";

const LONG = 80; // tokens that are written on
const REST = 250; // ms without a change, after which it writes

export function learning(play) {
  const { parts, thinking } = play;
  let wanted = null, coming = null; // steps: the last that was asked for, and what is on its way
  let turn = 0, later;

  const place = (step) => {
    if (step !== MINE) parts.step.value = STEPS.indexOf(step);
    const is = step === MINE ? "yours" : moment(step);
    parts.stepIs.textContent = is;
    parts.step.setAttribute("aria-valuetext", is);
  };
  const tell = (text) => {
    parts.fetching.textContent = text;
    parts.fetching.hidden = !text;
    if (text) play.say(text);
  };
  const fetchOthers = async () => {
    for (const step of STEPS) await thinking.fetch(step);
  };
  // The model of a step; until it has come the one before stays.
  const want = async (step) => {
    wanted = step;
    if (!thinking.has(step)) {
      coming = step;
      tell(`The model ${moment(step)} is on its way. You still see the one ${moment(play.state.step)}.`);
      try {
        await thinking.fetch(step);
      } catch (error) {
        if (wanted === step) {
          coming = null;
          place(play.state.step);
          tell(`The model ${moment(step)} could not be loaded: ${error.message}. You still see the one ${moment(play.state.step)}.`);
        }
        return;
      }
    }
    if (wanted !== step) return;
    coming = null;
    tell("");
    play.change({ step });
    if (step !== MINE) fetchOthers().catch(() => {}); // told when one of them is asked for
  };

  const bars = new Bars(parts.learnedBars, FEW, (id) => play.press(id));
  parts.step.addEventListener("input", () => {
    parts.stepIs.textContent = moment(STEPS[parts.step.value]);
    parts.costs.hidden = true;
    want(STEPS[parts.step.value]);
  });
  parts.trainHere.addEventListener("click", () => openTraining(play, parts));

  // What stands there is gone on with once nothing has changed for a moment; a story that is being written is seen above.
  const write = (state, { ids, longer }) => {
    turn += 1;
    const mine = turn;
    clearTimeout(later);
    parts.begun.textContent = thinking.tokenizer.decode(ids);
    if (play.writing || longer) parts.wrote.textContent = "";
    else later = setTimeout(() => {
      writeOn(thinking, ids, state, {
        most: LONG, ends: true, wanted: () => mine === turn, tell: (text) => { parts.wrote.textContent = text; },
      });
    }, parts.wrote.textContent ? REST : 0);
  };

  return {
    want,
    show(state, view) {
      bars.show(view, thinking.texts);
      if (coming === null) { // of what failed there is nothing to say once something else has changed
        tell("");
        place(state.step);
      }
      parts.learned.textContent = `${parts.verdict.textContent} ${parts.reason.textContent}`;
      write(state, view);
    },
  };
}

// The panel that trains comes when it is asked for.
async function openTraining(play, { trainHere, training }) {
  if (trainHere.getAttribute("aria-disabled") === "true") return;
  trainHere.setAttribute("aria-disabled", true);
  try {
    const { trainingHere } = await import("./training_here.js");
    await trainingHere(play, training);
    trainHere.hidden = true;
  } catch (error) {
    console.error(error);
    const why = error.constructor === Error ? error.message : "The training code could not be loaded: is there a connection? Press again.";
    training.replaceChildren(make("p", "tt-play__note", why));
    play.say(why);
    trainHere.setAttribute("aria-disabled", false);
  }
}
