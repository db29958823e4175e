// What the package computes (known.py), and the files of the site beside which it is read.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

export const known = (name) => JSON.parse(readFileSync(`${process.env.KNOWN}/${name}.json`, "utf8"));

export const site = (name) => new URL(`../../book/_static/${name}`, import.meta.url);

export const fileOf = (name) => {
  const bytes = readFileSync(site(name));
  return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
};

export const jsonOf = (name) => JSON.parse(readFileSync(site(name), "utf8"));

// The numbers of an array: of a large one their bytes stand there.
export const floats = (array) => (typeof array === "string"
  ? new Float32Array(Uint8Array.from(Buffer.from(array, "base64")).buffer) : Float32Array.from(array.flat(Infinity)));

// Whether numbers are the same but for rounding.
export function close(found, expected, { rounding = 1e-9, share = 0, what = "" } = {}) {
  assert.equal(found.length, expected.length, what);
  for (let i = 0; i < found.length; i += 1) {
    const most = rounding + share * Math.abs(expected[i]);
    if (!(Math.abs(found[i] - expected[i]) <= most)) assert.fail(`${what}[${i}]: ${found[i]} instead of ${expected[i]}`);
  }
}
