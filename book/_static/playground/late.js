// What comes only once it is asked for: meanwhile a sentence says so, and what fails can be tried again.

import { make } from "../live/elements.js";

// A fold that `load` makes when it is first shown. place: the part that says how it is coming.
export function late(play, place, what, load) {
  let fold = null, last = null;
  const begin = async () => {
    fold = await come(play, place, what, () => load(play));
    fold.show(...last);
    if (fold.said) play.say(fold.said());
  };
  return {
    show(...seen) {
      const first = !last;
      last = seen;
      if (fold) fold.show(...seen);
      else if (first) begin();
    },
  };
}

// Resolves to what `get` resolves to, in the end; or to null, and says nothing, once it is no longer `wanted`.
export async function come(play, place, what, get, wanted = () => true) {
  const told = play.parts[place];
  for (;;) {
    tell(`${what} is on its way.`);
    try {
      const got = await get();
      if (!wanted()) return null;
      told.hidden = true;
      return got;
    } catch (error) {
      if (!wanted()) return null;
      const again = make("button", "", "Try again", { type: "button" });
      const ofScript = error instanceof TypeError || error instanceof SyntaxError;
      if (ofScript) console.error(error);
      const why = ofScript ? "one of its scripts did not come" : error.message;
      tell(`${what} could not be loaded: ${why}. `, again);
      await new Promise((done) => { again.addEventListener("click", done); });
      told.closest("details").querySelector("summary").focus(); // the button goes
    }
  }

  function tell(text, ...more) {
    told.hidden = false;
    told.replaceChildren(text, ...more);
    play.say(text);
  }
}
