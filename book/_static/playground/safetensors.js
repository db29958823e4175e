// Weights from a file: the safetensors format, as `tinytorch.training.weight_files` writes it.
//
// 8 bytes say how long the header is; the header, a JSON object, gives the type, shape and position of each tensor;
// then come the numbers. A file that does not add up is refused in words.

const BYTES = { F16: 2, F32: 4 };

// The tensors, by name {shape, data: Float32Array}, and the metadata: texts by name.
export function readSafetensors(buffer) {
  const { header, start } = readHeader(buffer);
  const { __metadata__: metadata = {}, ...entries } = header;
  const tensors = {};
  let end = 0;
  const begins = (name) => entries[name]?.data_offsets?.[0];
  for (const name of Object.keys(entries).toSorted((a, b) => begins(a) - begins(b))) {
    tensors[name] = readTensor(buffer, start, name, entries[name], end);
    end = entries[name].data_offsets[1];
  }
  if (start + end !== buffer.byteLength) refuse(`it has ${buffer.byteLength} bytes instead of ${start + end}`);
  return { tensors, metadata };
}

function readHeader(buffer) {
  const size = buffer.byteLength;
  const length = size < 8 ? -1 : Number(new DataView(buffer).getBigUint64(0, true));
  if (length < 2 || length > size - 8) refuse(`its ${size} bytes do not hold the header that it announces`);
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array(buffer, 8, length));
    const header = JSON.parse(text);
    if (header?.constructor === Object) return { header, start: 8 + length };
  } catch {
    // refused below, like a header that is no object
  }
  return refuse("its header is not a JSON object");
}

function readTensor(buffer, start, name, entry, expected) {
  const { dtype, shape, data_offsets: [begin, end] = [] } = entry ?? {};
  if (!Object.hasOwn(BYTES, dtype)) refuse(`tensor ${name} is of type ${dtype}, not F16 or F32`);
  const size = Array.isArray(shape) ? shape.reduce((product, length) => product * length, BYTES[dtype]) : NaN;
  if (begin !== expected || end - begin !== size) refuse(`tensor ${name} is not where it should be`);
  if (start + end > buffer.byteLength) refuse(`it ends in the middle of tensor ${name}`);
  const bytes = buffer.slice(start + begin, start + end); // a copy, which is aligned
  return { shape, data: dtype === "F16" ? fromHalf(new Uint16Array(bytes)) : new Float32Array(bytes) };
}

const POWERS = Float64Array.from({ length: 31 }, (_, exponent) => 2 ** (Math.max(exponent, 1) - 25));

// Half precision: a sign, 5 bits of exponent and 10 of the fraction (IEEE 754, binary16).
export function fromHalf(halves) {
  return new Float32Array(halves).map((bits) => {
    const exponent = (bits >> 10) & 31, fraction = bits & 1023;
    const size = exponent < 31 ? POWERS[exponent] * (fraction + (exponent && 1024)) : fraction ? NaN : Infinity;
    return bits & 0x8000 ? -size : size;
  });
}

function refuse(reason) {
  throw new Error(`the file of weights is damaged: ${reason}; load the page again`);
}
