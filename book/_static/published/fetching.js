// The published weights on their way into the browser: fetched, made into 8 bits, kept. A break loses one piece at most.

import { openStore } from "./kept.js";
import { lengthOfHeader, made, planOf } from "./plan.js";
import { allBytesOf, Break, bytesOf, Told } from "./ranges.js";

const WEIGHTS = "model.safetensors", TEXTS = ["config.json", "vocab.json", "merges.txt"];
const SOURCE = "source.json", VERSION = 1; // what the pieces were made of, and how
const LOCK = "tinytorch-gpt2"; // one tab at a time
const TRIES = 5; // in a row that bring nothing

class Changed extends Error {}

// A folder of the hub, at `address`. settings: {patience, pause}: seconds of silence that are borne, and the
// first pause before another try.
export class Published {
  constructor(address, { patience = 20, pause = 1 } = {}) {
    Object.assign(this, { address, patience, pause });
  }

  // What is here: {kept: bytes, came: bytes of the published file, total, isWhole}; null where nothing can be kept.
  async look() {
    this.store ??= await openStore();
    if (!this.store) return null;
    const source = await this.#source();
    if (!source) return { kept: 0, came: 0, total: null, isWhole: false };
    const blobs = await this.#blobs(source.plan);
    const texts = await Promise.all(TEXTS.map((name) => this.store.get(name)));
    const { pieces } = source.plan;
    return {
      kept: sum([...blobs, ...texts].map((blob) => blob?.size ?? 0)),
      came: sum(pieces.map((piece, i) => (blobs[i] ? lengthOf(piece) : 0))),
      total: sum(pieces.map(lengthOf)),
      isWhole: [...blobs, ...texts].every((blob) => blob?.size),
    };
  }

  // The files of the folder as Python reads them: [{name, data}].
  async files() {
    const { plan } = await this.#source();
    const texts = TEXTS.map(async (name) => ({ name, data: await this.store.get(name) }));
    return [{ name: WEIGHTS, data: plan.whole(await this.#blobs(plan)) }, ...await Promise.all(texts)];
  }

  // Fetches what is not here yet. onprogress: called with {came, total} and, while it waits for something, {why}.
  async fetch({ signal, onprogress }) {
    this.store ??= await openStore();
    if (!this.store) throw new Told("This browser keeps nothing for this page, as in some private windows: open it in another.");
    const work = () => this.#fetchAll(signal, onprogress);
    const isFree = await navigator.locks.request(LOCK, { ifAvailable: true }, (lock) => lock && work().then(() => true));
    if (isFree) return;
    onprogress({ why: "Another tab of this browser fetches it; this one waits for that." });
    await navigator.locks.request(LOCK, { signal }, work);
  }

  // Frees the space; says how many bytes that were.
  async forget() {
    return navigator.locks.request(LOCK, { ifAvailable: true }, async (lock) => {
      if (!lock) throw new Told("Another tab of this browser fetches it: pause it there first.");
      const { kept } = await this.look();
      await this.store.clear();
      return kept;
    });
  }

  async #fetchAll(signal, onprogress) {
    let reached = false, began = false, tries = 0; // in this visit
    const oncame = (bytes, progress) => {
      if (bytes) tries = 0;
      onprogress(progress);
    };
    for (;;) {
      try {
        const source = await this.#begin(signal);
        reached = true;
        for (const name of TEXTS) await this.#fetchText(name, signal);
        await this.#fetchPieces(source, signal, oncame);
        return;
      } catch (error) {
        signal?.throwIfAborted();
        if (error instanceof Changed && !began) {
          began = true;
          await this.store.clear();
          onprogress({ why: "The published file has changed: what was here is thrown away, and it starts again." });
        } else {
          tries += 1;
          if (!(error instanceof Break) || !reached || tries === TRIES) throw inWords(error);
          const pause = this.pause * 2 ** (tries - 1);
          onprogress({ why: `${error.message} The next try comes in ${pause} s.` });
          await waiting(pause, signal);
        }
      }
    }
  }

  // What is kept of the published file's header; null if there is nothing of this file.
  async #source() {
    const blob = await this.store.get(SOURCE);
    const kept = blob?.size ? JSON.parse(await blob.text()) : null;
    if (kept?.version !== VERSION || kept.address !== this.address) return null;
    return { ...kept, plan: planOf(kept.header) };
  }

  // The blob of each piece, null where it is not here, or not whole.
  async #blobs({ pieces }) {
    const blobs = await Promise.all(pieces.map((_, i) => this.store.get(String(i))));
    return blobs.map((blob, i) => (blob?.size === pieces[i].bytes ? blob : null));
  }

  // Reads the published header, and compares it with that of what is here.
  async #begin(signal) {
    const address = `${this.address}${WEIGHTS}`, { patience } = this;
    const kept = await this.#source();
    let etag = null;
    const onanswer = (about) => { etag = about.etag ?? etag; };
    const read = (begin, end) => allBytesOf(address, { begin, end, signal, patience, onanswer });
    const length = lengthOfHeader(await read(0, 8));
    const header = new TextDecoder().decode(await read(8, 8 + length));
    if (kept && (kept.header !== header || etag !== null && kept.etag !== null && kept.etag !== etag)) throw new Changed();
    if (kept) return kept;
    const plan = planOf(header);
    await this.store.clear();
    await this.#askForRoom(plan);
    const source = { version: VERSION, address: this.address, etag, header };
    await this.#keep(SOURCE, new Blob([JSON.stringify(source)]));
    return { ...source, plan };
  }

  async #askForRoom({ pieces }) {
    const needed = sum(pieces.map(({ bytes }) => bytes));
    const { quota, usage = 0 } = await navigator.storage?.estimate?.() ?? {};
    if (quota === undefined || quota - usage >= needed) return;
    throw new Told(`The model takes ${megabytes(needed)}, and the browser lets this site keep no more than `
      + `${megabytes(Math.max(0, quota - usage))} besides what is there. Free some space on the disk and try again.`);
  }

  async #fetchText(name, signal) {
    if ((await this.store.get(name))?.size) return;
    const { patience } = this;
    await this.#keep(name, new Blob([await allBytesOf(`${this.address}${name}`, { signal, patience })]));
  }

  // Runs of pieces that are not here and lie side by side are one request each.
  async #fetchPieces({ etag, plan: { pieces, size } }, signal, oncame) {
    const { patience } = this, here = await this.#blobs({ pieces });
    const total = sum(pieces.map(lengthOf));
    let came = sum(pieces.map((piece, i) => (here[i] ? lengthOf(piece) : 0)));
    oncame(0, { came, total });
    const onanswer = (about) => {
      const other = etag !== null && about.etag !== null && about.etag !== etag;
      if (other || about.total !== null && about.total !== size) throw new Changed();
    };
    for (let first = 0; first < pieces.length; first += 1) {
      if (here[first]) continue;
      let last = first;
      while (last + 1 < pieces.length && !here[last + 1] && pieces[last + 1].begin === pieces[last].end) last += 1;
      const options = { begin: pieces[first].begin, end: pieces[last].end, signal, patience, onanswer };
      let i = first, filled = 0, bytes = new Uint8Array(lengthOf(pieces[i]));
      for await (let part of bytesOf(`${this.address}${WEIGHTS}`, options)) {
        while (part.length) {
          const some = part.subarray(0, bytes.length - filled);
          bytes.set(some, filled);
          filled += some.length;
          part = part.subarray(some.length);
          if (filled < bytes.length) continue;
          await this.#keep(String(i), made(pieces[i], bytes));
          came += filled;
          oncame(filled, { came, total });
          i += 1;
          filled = 0;
          if (i <= last) bytes = new Uint8Array(lengthOf(pieces[i]));
        }
      }
      first = last;
    }
  }

  async #keep(name, blob) {
    try {
      await this.store.put(name, blob);
    } catch (error) {
      if (error.name !== "QuotaExceededError") throw error;
      throw new Told("The disk is full, or the browser lets this site keep no more. Free some space and go on from here, "
        + "or forget what has come.");
    }
  }
}

export const megabytes = (bytes) => `${Math.round(bytes / 1e6)} MB`;

const waiting = (seconds, signal) => new Promise((resolve, reject) => {
  const clock = setTimeout(resolve, 1000 * seconds);
  signal?.addEventListener("abort", () => { clearTimeout(clock); reject(signal.reason); }, { once: true });
});

const sum = (numbers) => numbers.reduce((all, number) => all + number, 0);

const lengthOf = ({ begin, end }) => end - begin;

function inWords(error) {
  if (error instanceof Changed) return new Told("The published file changes while it is fetched. Try again later.");
  return error instanceof Told ? error : new Told(`It did not work: ${error.message}.`);
}
