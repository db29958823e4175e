// Rows of a matrix in 8 bits, bit for bit as `quantize_rows` in tinytorch/core/quantization.py makes them.

const LARGEST = 127;
const ROUND = 1.5 * 2 ** 52; // added and taken away it leaves the nearest whole number, of two equally near the even one

// values: Float32Array of (rows, width). Returns {q: Int8Array of (rows, width), scales: Float32Array of (rows,)}.
export function quantizeRows(values, width) {
  const q = new Int8Array(values.length), scales = new Float32Array(values.length / width);
  for (let row = 0; row < scales.length; row += 1) {
    const start = row * width, end = start + width;
    let largest = 0;
    for (let i = start; i < end; i += 1) {
      const size = Math.abs(values[i]);
      if (!(size <= largest)) largest = size; // also where it is not a number
    }
    if (!(largest < Infinity)) throw new RangeError("it holds what is no finite number");
    const scale = Math.fround(largest / LARGEST);
    scales[row] = scale;
    if (scale === 0) continue; // a row of zeros stays one
    for (let i = start; i < end; i += 1) {
      const whole = Math.fround(values[i] / scale) + ROUND - ROUND;
      q[i] = whole > LARGEST ? LARGEST : whole < -LARGEST ? -LARGEST : whole; // a tiny scale is rounded too
    }
  }
  return { q, scales };
}

// Some columns of a matrix of (rows, width), as a matrix.
export function columns(values, width, from, to) {
  const rows = values.length / width, part = new Float32Array(rows * (to - from));
  for (let row = 0; row < rows; row += 1) {
    part.set(values.subarray(row * width + from, row * width + to), row * (to - from));
  }
  return part;
}
