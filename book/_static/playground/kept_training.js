// What this browser keeps of a model that was trained here: its weights, for the playground, and the whole run, from
// which it can go on at the next visit. Of two tabs that train one keeps.

import { openStore } from "../published/kept.js";

const NAME = "tinytorch-training";
const NONE = "this browser has none";

// The weights of the model that was kept last, as a file of safetensors.
export async function keptWeights() {
  const store = await openStore(NAME).catch(() => null);
  const blob = await store?.get("weights").catch(() => null);
  if (!blob?.size) throw new Error(NONE);
  return blob.arrayBuffer();
}

export class KeptTraining {
  #alone = null; // whether this tab is the one that keeps: a promise, once it has been asked

  // {size, seed, floor, losses, heldOut, run: Blob, weights: ArrayBuffer} of the last visit; null if nothing is kept.
  async read() {
    try {
      const store = await openStore(NAME);
      const [about, run, weights] = await Promise.all(["about", "run", "weights"].map((name) => store.get(name)));
      if (!about || !run?.size || !weights?.size) return null;
      return { ...JSON.parse(await about.text()), run, weights: await weights.arrayBuffer() };
    } catch {
      return null; // refused, or damaged: as if there were nothing
    }
  }

  // Keeps what is given; gives "" or a sentence on why it is not kept.
  async write({ about, ...files }) {
    this.#alone ??= locked();
    if (!await this.#alone) return "Another tab trains too, and only that one is kept for your next visit.";
    try {
      const store = await openStore(NAME);
      if (!store) return "This browser keeps nothing for this page: closing the tab forgets the model, unless you save it as a file.";
      for (const [name, bytes] of Object.entries(files)) await store.put(name, new Blob([bytes]));
      await store.put("about", new Blob([JSON.stringify(about)]));
      return "";
    } catch {
      return "There is no room to keep the model in this browser: closing the tab forgets it, unless you save it as a file.";
    }
  }
}

// Takes what one tab can have; until it is closed no other gets it.
function locked() {
  const { locks } = navigator;
  if (!locks) return Promise.resolve(true);
  return new Promise((told) => {
    const hold = (lock) => {
      told(Boolean(lock));
      return lock ? new Promise(() => {}) : undefined;
    };
    locks.request(NAME, { ifAvailable: true }, hold).catch(() => told(true));
  });
}
