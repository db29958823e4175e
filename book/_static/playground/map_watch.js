// One token on its way through the map: part after part is lit, with a sentence about it; at the end a token is written.

import { wordsOf } from "./map_words.js";

export class Watch {
  constructor(map) {
    this.map = map;
    this.at = -1; // the step; -1 while nothing is watched
    this.paused = true;
    this.pace = 4200; // ms for a step that runs by itself
    this.steps = ["tokens", "token-embedding", "positions",
      ...map.blocks.flatMap((block) => [`attention.${block}`, `mlp.${block}`]), "head", "sampling", "written"];
  }

  get on() {
    return this.at >= 0;
  }

  start() {
    this.paused = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.at = -1;
    this.map.begin();
    this.next();
  }

  next() {
    clearTimeout(this.later);
    if (this.at === this.steps.length - 1) {
      this.stop();
      return;
    }
    this.at += 1;
    const key = this.steps[this.at];
    if (key === "sampling") this.map.throwNumber();
    const words = key === "written" ? this.map.written() : wordsOf(key, this.map.scene);
    this.map.light(key, words, this);
    this.#goOn();
  }

  pause() {
    this.paused = !this.paused;
    clearTimeout(this.later);
    this.map.light(this.steps[this.at], null, this);
    if (!this.paused) this.next();
  }

  stop() {
    clearTimeout(this.later);
    this.at = -1;
    this.map.light(null, "", this);
  }

  get isLast() {
    return this.at === this.steps.length - 1;
  }

  #goOn() {
    if (this.paused || this.isLast) return;
    this.later = setTimeout(() => this.next(), this.pace);
  }
}
