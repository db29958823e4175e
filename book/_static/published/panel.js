// Talk to it: a published model comes when the reader asks for it, stays, and answers in the page's Python.

import { make } from "../live/elements.js";
import { duration } from "../live/rows.js";
import { Conversation } from "./conversation.js";
import { megabytes, Published } from "./fetching.js";

const SECOND = 1000, QUARTERS = 4; // how often a listener hears how far it is

class Paused extends Error {}

const PIECES = new URL("../live/smollm2/", import.meta.url).href;

// place: the element of the directive, which knows the hash and the size of the file. tools: {kernel, button, announce}
export async function panel(place, tools) {
  const made = new Panel(place, tools);
  await made.show();
  return made;
}

class Panel {
  constructor(place, { kernel, button, announce }) {
    Object.assign(this, { place, announce });
    const { address = PIECES, sha256, patience, pause } = place.dataset;
    const settings = patience ? { patience: Number(patience), pause: Number(pause) } : {};
    this.model = new Published(address, sha256, settings);
    this.told = make("p", "tt-talk__told");
    this.bar = make("progress", "tt-progress__bar", "", { "aria-label": "How much has been fetched" });
    this.fetchButton = button("", "", () => this.fetch());
    this.fetchButton.classList.add("tt-live__button--run");
    this.pauseButton = button("Pause", "Pause fetching", () => this.abort.abort(new Paused()));
    this.forgetButton = button("Forget the model", "", () => this.forget());
    const buttons = make("div", "tt-talk__buttons");
    buttons.append(this.fetchButton, this.pauseButton, this.forgetButton);
    this.conversation = new Conversation({ kernel, button, announce, model: this.model, ongone: () => this.show().then(() => announce(this.told.textContent)) });
    place.replaceChildren(this.told, this.bar, buttons, this.conversation.element);
  }

  #say(text) {
    this.told.textContent = text;
  }

  #offer({ fetch = "", pause = false, forget = false, talk = false, bar = false }) {
    const focused = this.place.contains(document.activeElement);
    this.fetchButton.textContent = fetch;
    this.fetchButton.hidden = !fetch;
    this.pauseButton.hidden = !pause;
    this.forgetButton.hidden = !forget;
    this.conversation.element.hidden = !talk;
    this.bar.hidden = !bar;
    // the button that had the focus may be gone: the next one has it
    if (focused && !this.place.contains(document.activeElement) || document.activeElement?.closest("[hidden]")) {
      [this.fetchButton, this.pauseButton, this.conversation.start].find((one) => !one.closest("[hidden]"))?.focus();
    }
  }

  // What is here, and what can be done with it.
  async show() {
    const { size } = this.place.dataset, here = this.here = await this.model.look();
    this.place.dataset.state = !here ? "impossible" : here.isWhole ? "whole" : here.came ? "part" : "none";
    if (!here) {
      this.#say("This browser keeps nothing for this page, as in some private windows: in another one the model can be fetched here.");
      this.#offer({});
    } else if (here.isWhole) {
      await this.conversation.mount();
      this.#say(`The model is kept in this browser: ${megabytes(here.came)}. What you ask stays on your device.`);
      this.#offer({ talk: true, forget: true });
    } else if (here.came) {
      this.#say(`${megabytes(here.came)} of ${megabytes(here.total)} are downloaded.`);
      this.#draw(here);
      this.#offer({ fetch: "Resume fetching", forget: true, bar: true });
    } else {
      this.#say(`The model is a file of ${megabytes(size)}. It comes from this site, once, and is kept in this browser for the next time. `
        + "It answers on your device: what you ask stays there.");
      this.#offer({ fetch: `Fetch the model (${megabytes(size)})` });
    }
  }

  #draw({ came, total }) {
    this.bar.max = total;
    this.bar.value = came;
  }

  async fetch() {
    this.abort = new AbortController();
    const since = { time: performance.now(), came: null, quarter: null };
    this.place.dataset.state = "fetching";
    this.#say("Asking for the file …");
    this.#offer({ pause: true, bar: true });
    this.bar.removeAttribute("value");
    this.announce("Fetching the model");
    try {
      await this.model.fetch({ signal: this.abort.signal, onprogress: (about) => this.#tell(about, since) });
      await this.show();
      this.announce(this.told.textContent);
    } catch (error) {
      await this.show();
      const isError = !(error instanceof Paused);
      if (isError) this.#say(`${error.message} ${this.here?.came ? this.told.textContent : ""}`);
      this.announce(this.told.textContent, isError);
    }
  }

  #tell({ came, total, why }, since) {
    if (why) {
      this.#say(why);
      this.announce(why);
      return;
    }
    this.#draw({ came, total });
    since.came ??= came; // what was here before says nothing of the speed
    const speed = (came - since.came) / (performance.now() - since.time) * SECOND;
    const left = speed > 0 ? `, about ${duration((total - came) / speed)} left` : "";
    this.#say(`${megabytes(came)} of ${megabytes(total)}${left}`);
    const quarter = Math.floor(QUARTERS * came / total);
    if (since.quarter !== null && quarter > since.quarter) this.announce(this.told.textContent);
    since.quarter = quarter;
  }

  async forget() {
    try {
      const freed = await this.model.forget();
      await this.show();
      this.conversation.clear();
      this.#say(`Forgotten: ${megabytes(freed)} freed. ${this.told.textContent}`);
      this.announce(this.told.textContent);
    } catch (error) {
      this.#say(error.message);
      this.announce(error.message, true);
    }
  }
}
