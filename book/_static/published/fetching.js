// The published model on its way into the browser: a file that the site has in pieces. Each is checked by its hash and
// kept as it is.

import { openStore } from "./kept.js";
import { Break, broken, bytesOf, Told } from "./ranges.js";

const MANIFEST = "manifest.json"; // {name, size, sha256, pieces: [{name, size, sha256}]}
const LOCK = "tinytorch-model"; // one tab at a time
const TRIES = 5; // in a row that bring nothing

// A piece that is not what the manifest says.
class Damaged extends Break {}

// The pieces in the folder at `address` of the file with this SHA-256. settings: {patience, pause}: seconds of silence
// that are borne, and the first pause before another try.
export class Published {
  constructor(address, sha256, { patience = 20, pause = 1 } = {}) {
    Object.assign(this, { address, sha256, patience, pause });
  }

  // What is here: {came: bytes, total, isWhole}; null where nothing can be kept.
  async look() {
    this.store ??= await openStore();
    if (!this.store) return null;
    const manifest = await this.#kept();
    if (!manifest) return { came: 0, total: null, isWhole: false };
    const here = await this.#blobs(manifest);
    const part = manifest.pieces.findIndex(({ sha256 }) => sha256 === this.partial?.sha256); // another tab may have it whole
    const came = sum(here.map((blob, i) => blob?.size ?? (i === part ? this.partial.filled : 0)));
    return { came, total: manifest.size, isWhole: here.every(Boolean) };
  }

  // The file as Python reads it: [{name, data}].
  async files() {
    const manifest = await this.#kept();
    return [{ name: manifest.name, data: new Blob(await this.#blobs(manifest)) }];
  }

  // Fetches what is not here yet. onprogress: called with {came, total} and, while it waits for something, {why}.
  async fetch({ signal, onprogress }) {
    this.store ??= await openStore();
    if (!this.store) throw new Told("This browser keeps nothing for this page, as in some private windows: open it in another.");
    const work = () => this.#fetchAll(signal, onprogress);
    const isFree = await navigator.locks.request(LOCK, { ifAvailable: true }, (lock) => lock && work().then(() => true));
    if (isFree) return;
    onprogress({ why: "Another tab is already fetching it; this one is waiting." });
    await navigator.locks.request(LOCK, { signal }, work);
  }

  // Frees the space; says how many bytes that were.
  async forget() {
    return navigator.locks.request(LOCK, { ifAvailable: true }, async (lock) => {
      if (!lock) throw new Told("Another tab is fetching it: pause it there first.");
      this.partial = null;
      const { came } = await this.look();
      await this.store.clear();
      return came;
    });
  }

  async #fetchAll(signal, onprogress) {
    const damaged = new Set();
    let reached = false, tries = 0; // in this visit
    const oncame = (progress) => {
      tries = 0;
      onprogress(progress);
    };
    for (;;) {
      try {
        const manifest = await this.#manifest(signal);
        reached = true;
        await this.#fetchPieces(manifest, signal, oncame);
        return;
      } catch (error) {
        signal?.throwIfAborted();
        const again = error instanceof Damaged && damaged.has(error.piece);
        damaged.add(error.piece);
        tries += 1;
        if (!(error instanceof Break) || again || !reached || tries === TRIES) throw inWords(error);
        const pause = this.pause * 2 ** (tries - 1);
        onprogress({ why: `${error.message} The next try comes in ${pause} s.` });
        await waiting(pause, signal);
      }
    }
  }

  // What the file is made of, if that is kept; null if another file is.
  async #kept() {
    const blob = await this.store.get(MANIFEST);
    const kept = blob?.size ? JSON.parse(await blob.text()) : null;
    return kept?.sha256 === this.sha256 ? kept : null;
  }

  // The blob of each piece, null where it is not here, or not whole.
  #blobs({ pieces }) {
    return Promise.all(pieces.map(async ({ sha256, size }) => {
      const blob = await this.store.get(sha256);
      return blob?.size === size ? blob : null;
    }));
  }

  async #manifest(signal) {
    const kept = await this.#kept();
    if (kept) return kept;
    const parts = [], { patience } = this;
    let manifest;
    try {
      for await (const part of bytesOf(this.address + MANIFEST, { signal, patience })) parts.push(part);
      manifest = JSON.parse(await new Blob(parts).text());
    } catch (error) {
      if (error.status !== 404 && !(error instanceof SyntaxError)) throw error;
      throw new Told("This copy of the book holds no model: run make live, then build it again.");
    }
    if (manifest.sha256 !== this.sha256) throw new Told("The site has another model than this page asks for: load the page again.");
    await this.store.clear(); // of another file
    await this.#askForRoom(manifest.size);
    await this.#keep(MANIFEST, new Blob(parts));
    return manifest;
  }

  async #askForRoom(needed) {
    const { quota, usage = 0 } = await navigator.storage?.estimate?.() ?? {};
    if (quota === undefined || quota - usage >= needed) return;
    throw new Told(`The model takes ${megabytes(needed)}, and the browser lets this site keep no more than `
      + `${megabytes(Math.max(0, quota - usage))} besides what is there. Free some space on the disk and try again.`);
  }

  async #fetchPieces(manifest, signal, oncame) {
    const here = await this.#blobs(manifest), total = manifest.size;
    let came = sum(here.map((blob) => blob?.size ?? 0));
    for (const [i, piece] of manifest.pieces.entries()) {
      if (here[i]) continue;
      const bytes = await this.#whole(piece, signal, (filled) => oncame({ came: came + filled, total }));
      if (await digestOf(bytes) !== piece.sha256) {
        const which = `Piece ${i + 1} of ${manifest.pieces.length}`;
        throw Object.assign(new Damaged(`${which} has arrived damaged.`), { piece: piece.sha256 });
      }
      await this.#keep(piece.sha256, new Blob([bytes]));
      came += piece.size;
    }
    oncame({ came, total });
  }

  // The bytes of a piece; what comes before a break stays until the next try.
  async #whole({ name, size, sha256 }, signal, oncame) {
    const address = this.address + name, { patience } = this;
    if (this.partial?.sha256 !== sha256) this.partial = { sha256, bytes: new Uint8Array(size), filled: 0 };
    const { partial } = this;
    for await (const part of bytesOf(address, { begin: partial.filled, signal, patience })) {
      const some = part.subarray(0, size - partial.filled);
      partial.bytes.set(some, partial.filled);
      partial.filled += some.length;
      oncame(partial.filled);
      if (some.length < part.length) break; // whatever else it sends
    }
    if (partial.filled < size) throw new Break(broken(address));
    this.partial = null;
    return partial.bytes;
  }

  async #keep(name, blob) {
    try {
      await this.store.put(name, blob);
    } catch (error) {
      if (error.name !== "QuotaExceededError") throw error;
      throw new Told("The disk is full, or the browser lets this site keep no more. Free some space and go on from here, "
        + "or discard what has been downloaded.");
    }
  }
}

export const megabytes = (bytes) => `${Math.round(bytes / 1e6)} MB`;

const waiting = (seconds, signal) => new Promise((resolve, reject) => {
  const clock = setTimeout(resolve, 1000 * seconds);
  signal?.addEventListener("abort", () => { clearTimeout(clock); reject(signal.reason); }, { once: true });
});

const sum = (numbers) => numbers.reduce((all, number) => all + number, 0);

async function digestOf(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function inWords(error) {
  if (error instanceof Damaged) return new Told(`${error.message.slice(0, -1)} twice: try again later.`);
  return error instanceof Told ? error : new Told(`It did not work: ${error.message}.`);
}
