// Says to a screen reader what the eye sees happen. A message stands below those before it, so that none takes the
// place of one that has not been read yet; an error interrupts.

import { make } from "./elements.js";

const READ = 10_000; // ms after which a message goes when the next one comes

const region = (live, more = {}) => make("div", "visually-hidden", "", { "aria-live": live, "aria-atomic": "false", ...more });

// Gives (text, isError) -> nothing.
export function voice() {
  const polite = region("polite", { role: "log" }), urgent = region("assertive");
  document.body.append(polite, urgent);
  return (text, isError = false) => {
    const place = isError ? urgent : polite, now = performance.now();
    while (now - place.firstChild?.dataset.at > READ) place.firstChild.remove();
    place.append(make("p", "", text, { "data-at": now }));
  };
}
