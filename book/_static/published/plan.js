// What is fetched of a published file, piece by piece, and which file is made of it.
//
// Both are safetensors files (see tinytorch/files/safetensors.py). The one that is made has the names of our GPT: each big
// matrix is in 8 bits, with its scales, one a row, under its name and `.scales`; all else is float32.

import { fromHalf } from "../playground/safetensors.js";
import { Told } from "./ranges.js";
import { columns, quantizeRows } from "./rows.js";

const WIDTHS = { F32: 4, F16: 2, U8: 1, BOOL: 1 }; // the last two for masks
const PIECE = 4 << 20; // bytes of the published file, at most, unless one row is longer
const LONGEST_HEADER = 10_000_000;
const MASK = /(^|\.)attn\.(masked_)?bias$/; // computed, not learned: nobody needs them
const HEAD = /(^|\.)lm_head\.weight$/; // the table of the tokens once more
const IN_8_BITS = /^(wte|attn\.c_attn|attn\.c_proj|mlp\.c_fc|mlp\.c_proj)\.weight$/;
const OURS = { // the parts of our GPT that each part of the published one is; some lie side by side
  wte: ["token_embedding"],
  ln_1: ["ln1"],
  ln_2: ["ln2"],
  ln_f: ["ln_f"],
  "attn.c_attn": ["attention.q_proj", "attention.k_proj", "attention.v_proj"],
  "attn.c_proj": ["attention.out_proj"],
  "mlp.c_fc": ["mlp.linear1"],
  "mlp.c_proj": ["mlp.linear2"],
};
const NORM = { weight: "gamma", bias: "beta" };

// How many bytes the header has, from the first eight.
export function lengthOfHeader(bytes) {
  const length = bytes.length === 8 ? Number(new DataView(bytes.buffer).getBigUint64(0, true)) : 0;
  if (length < 2 || length > LONGEST_HEADER) damaged("it does not begin like one");
  return length;
}

// header: the text of the published file's. Returns {pieces, size, whole}: the pieces in the order of the published
// file, its size, and whole(blobs), the file that is made, from one blob a piece.
export function planOf(header) {
  const start = 8 + new TextEncoder().encode(header).length;
  const tensors = tensorsOf(header, start);
  const kept = tensors.filter(({ name }) => !MASK.test(name) && !HEAD.test(name));
  const pieces = kept.flatMap(piecesOf);
  return { pieces, size: tensors.at(-1).end, whole: (blobs) => whole(kept, pieces, blobs) };
}

const unknown = (name, dtype) => `${name} is of ${dtype}, not of F32 or F16`;

function tensorsOf(header, start) {
  let entries;
  try {
    entries = Object.entries(JSON.parse(header));
  } catch {
    damaged("its header is not JSON");
  }
  const tensors = entries.filter(([name]) => name !== "__metadata__").map(([name, entry]) => {
    const { dtype, shape, data_offsets: [begin, end] = [] } = entry ?? {};
    if (!Object.hasOwn(WIDTHS, dtype)) damaged(unknown(name, dtype));
    const size = Array.isArray(shape) ? shape.reduce((product, length) => product * length, WIDTHS[dtype]) : NaN;
    if (!(begin >= 0) || end - begin !== size) damaged(`${name} is not as long as it should be`);
    return { name: name.replace(/^transformer\./, ""), dtype, shape, begin: start + begin, end: start + end };
  }).toSorted((a, b) => a.begin - b.begin);
  if (!tensors.length) damaged("there is nothing in it");
  let at = start;
  for (const { name, begin, end } of tensors) {
    if (begin !== at) damaged(`${name} is not where it should be`);
    at = end;
  }
  return tensors;
}

// Rows of one tensor that are fetched, made into 8 bits and kept together. `bytes` of them are made.
function piecesOf(tensor) {
  const { name, dtype, shape, begin, end } = tensor;
  if (!dtype.startsWith("F")) damaged(unknown(name, dtype));
  const [names, inBits] = parametersOf(name);
  const width = shape.at(-1) ?? 1, row = width * WIDTHS[dtype], rows = (end - begin) / row;
  if (width % names.length) damaged(`${name} is not ${names.length} matrices side by side`);
  Object.assign(tensor, { names, inBits, each: width / names.length });
  const most = Math.max(1, Math.floor(PIECE / row)), pieces = [];
  for (let from = 0; from < rows; from += most) {
    const count = Math.min(most, rows - from);
    const bytes = count * (inBits ? width + 4 * names.length : 4 * width);
    pieces.push({ tensor, rows: count, begin: begin + from * row, end: begin + (from + count) * row, bytes });
  }
  return pieces;
}

// The names of a tensor's parameters in our GPT, and whether they become 8 bits.
function parametersOf(name) {
  if (name === "wpe.weight") return [["position_embedding.position_embeddings"], false];
  const [, layer, part, kind] = /^(?:h\.(\d+)\.)?(.+)\.(weight|bias)$/.exec(name) ?? [];
  if (!Object.hasOwn(OURS, part ?? "")) damaged(`${name} is no weight of GPT-2`);
  const block = layer === undefined ? "" : `blocks.${layer}.`;
  const ending = part.startsWith("ln_") ? NORM[kind] : kind;
  return [OURS[part].map((ours) => `${block}${ours}.${ending}`), IN_8_BITS.test(`${part}.${kind}`)];
}

// The bytes of a piece as they are kept: in 8 bits the scales of each part, then its rows; or floats, part by part.
export function made({ tensor: { name, names, dtype, each, inBits } }, bytes) {
  const values = dtype === "F16" ? fromHalf(new Uint16Array(bytes.buffer)) : new Float32Array(bytes.buffer);
  const parts = names.map((_, i) => columns(values, each * names.length, i * each, (i + 1) * each));
  if (!inBits) return new Blob(parts);
  try {
    const matrices = parts.map((part) => quantizeRows(part, each));
    return new Blob([...matrices.map(({ scales }) => scales), ...matrices.map(({ q }) => q)]);
  } catch (error) {
    return damaged(`of ${name}, ${error.message}`);
  }
}

// The file that is made: byte for byte what `save_weights` writes of the same model, `quantize`d.
function whole(tensors, pieces, blobs) {
  const targets = tensors.flatMap((tensor) => targetsOf(tensor, pieces, blobs));
  const inOrder = targets.toSorted((a, b) => (a.dtype === b.dtype ? (a.name < b.name ? -1 : 1) : a.dtype === "F32" ? -1 : 1));
  const header = {};
  let end = 0;
  for (const { name, dtype, shape, blob } of inOrder) {
    header[name] = { dtype, shape, data_offsets: [end, end += blob.size] };
  }
  const text = new TextEncoder().encode(JSON.stringify(header));
  const filled = new Uint8Array(8 + Math.ceil(text.length / 8) * 8).fill(0x20);
  new DataView(filled.buffer).setBigUint64(0, BigInt(filled.length - 8), true);
  filled.set(text, 8);
  return new Blob([filled, ...inOrder.map(({ blob }) => blob)]);
}

function targetsOf({ name: whose, names, shape, each, inBits }, pieces, blobs) {
  const mine = pieces.flatMap(({ tensor, rows }, i) => (tensor.name === whose ? [{ rows, blob: blobs[i] }] : []));
  const last = [...shape.slice(0, -1), each];
  return names.flatMap((name, part) => {
    const scales = mine.map(({ rows, blob }) => blob.slice(4 * rows * part, 4 * rows * (part + 1)));
    const numbers = mine.map(({ rows, blob }) => {
      const before = inBits ? 4 * rows * names.length : 0, size = rows * each * (inBits ? 1 : 4);
      return blob.slice(before + part * size, before + (part + 1) * size);
    });
    const values = { name, dtype: inBits ? "I8" : "F32", shape: last, blob: new Blob(numbers) };
    if (!inBits) return [values];
    return [values, { name: `${name}.scales`, dtype: "F32", shape: [shape[0]], blob: new Blob(scales) }];
  });
}

function damaged(reason) {
  throw new Told(`The published file is damaged, or is not one that this page reads: ${reason}.`);
}
