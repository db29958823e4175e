// The GPT of the book, read on: one function for each part of the model, as the chapters build them.
//
// A matrix is a Float32Array, one row after the other. T counts all tokens of a text and n those that are read now: of
// a text that begins as the last one did only the rest is read, because a token looks at those before it alone.

const VERSION = "1"; // of the files of weights, as book/_runtime/playground_files.py writes them
const WHOLE = { positions: false, mask: false, scale: false, head: null, block: null, residual: false, norm: false };

export class Model {
  #last = null;

  // `tensors` and `config` are the tensors and the metadata that `readSafetensors` gives.
  constructor(tensors, config) {
    if (config.version !== VERSION) refuse(`it is of version ${config.version}, not ${VERSION}`);
    const data = (name) => tensors[name]?.data ?? refuse(`it has no ${name}`);
    const normOf = (name) => ({ gamma: data(`${name}.gamma`), beta: data(`${name}.beta`) });
    const linearOf = (name) => ({ weight: data(`${name}.weight`), bias: data(`${name}.bias`) });
    const attentionOf = (name) => ({
      qProj: linearOf(`${name}.q_proj`),
      kProj: linearOf(`${name}.k_proj`),
      vProj: linearOf(`${name}.v_proj`),
      outProj: linearOf(`${name}.out_proj`),
    });
    this.tokenEmbedding = data("token_embedding.weight"); // (vocab, d)
    [this.vocabSize, this.embedDim] = tensors["token_embedding.weight"].shape;
    this.numHeads = Number(config.num_heads);
    this.maxSeqLen = Number(config.max_seq_len);
    this.numLayers = Object.keys(tensors).filter((name) => name.endsWith(".ln1.gamma")).length;
    this.blocks = Array.from({ length: this.numLayers }, (_, layer) => ({
      ln1: normOf(`blocks.${layer}.ln1`),
      attention: attentionOf(`blocks.${layer}.attention`),
      ln2: normOf(`blocks.${layer}.ln2`),
      mlp: { linear1: linearOf(`blocks.${layer}.mlp.linear1`), linear2: linearOf(`blocks.${layer}.mlp.linear2`) },
    }));
    this.lnF = normOf("ln_f");
    // weight tying: each token is scored by its own row of the table
    this.head = { weight: transposed(this.tokenEmbedding, this.embedDim), bias: new Float32Array(this.vocabSize) };
    this.rotary = rotaryTables(this.maxSeqLen, this.embedDim / this.numHeads);
  }

  // Read the ids of a text. `broken` says what is taken away: `positions`, the rotation of queries and keys; `mask`, so
  // that each token looks at all; `scale`, the division by √d; `head: [layer, head]`, whose output is 0; `block: layer`,
  // which is passed over; `residual`, so that each branch replaces the stream; `norm`, the last one.
  read(ids, broken = {}) {
    if (!ids.length) throw new RangeError("there is nothing to read");
    if (ids.length > this.maxSeqLen) {
      throw new RangeError(`${ids.length} tokens are more than the ${this.maxSeqLen} that the model reads`);
    }
    const wrong = ids.find((id) => !Number.isInteger(id) || id < 0 || id >= this.vocabSize);
    if (wrong !== undefined) throw new RangeError(`token id ${wrong} is not one of the ${this.vocabSize}`);
    this.#last = new Reading(this, [...ids], { ...WHOLE, ...broken }, this.#last);
    return this.#last;
  }
}

// What the model makes of a text. The arrays belong to the reading: look at them, do not change them.
class Reading {
  #streams = []; // the residual stream (T, d) after the embeddings and after each block
  #layers = []; // of each block: keys, values and the stream in its middle (T, d), and of each head the rows of its weights
  #logits = []; // [layer][position], once they have been asked for

  constructor(model, ids, broken, last) {
    Object.assign(this, { model, ids, broken, length: ids.length });
    const start = last ? last.#shared(ids, broken) : 0; // so many tokens are known
    const known = (rows) => rows?.subarray(0, start * model.embedDim) ?? new Float32Array(0);
    let x = embedding(ids.slice(start), model); // (n, d)
    this.#streams.push(joined(known(last?.#streams[0]), x));
    model.blocks.forEach((part, layer) => {
      const { keys, values, middle, weights } = last?.#layers[layer] ?? {};
      const seen = { start, keys: known(keys), values: known(values), middle: known(middle) };
      seen.weights = Array.from({ length: model.numHeads }, (_, head) => weights?.[head].slice(0, start) ?? []);
      const silent = broken.head?.[0] === layer ? broken.head[1] : null;
      if (layer !== broken.block) x = block(x, part, seen, model, { ...broken, silent });
      else seen.middle = joined(seen.middle, x);
      this.#layers.push(seen);
      this.#streams.push(joined(known(last?.#streams[layer + 1]), x));
    });
    this.#logits = this.#streams.map((_, layer) => last?.#logits[layer].slice(0, start) ?? []);
  }

  // The scores (vocab) of every token as the one after a position.
  logits(position) {
    return this.lens(this.model.numLayers, position);
  }

  // The logit lens: the scores if the model ended after so many blocks; 0 for the embeddings alone.
  lens(layer, position) {
    const x = this.stream(layer, position);
    this.#logits[layer][position] ??= this.scores(x);
    return this.#logits[layer][position];
  }

  // The scores (vocab) if the model ended with this vector (d).
  scores(x) {
    return linear(this.broken.norm ? x : norm(x, this.model.lnF), this.model.head);
  }

  // The residual stream (d) at a position after so many blocks.
  stream(layer, position) {
    return this.#row(this.#streams[layer], position, `after ${layer} blocks`);
  }

  // The stream (d) inside a block, between its attention and its MLP.
  middle(layer, position) {
    return this.#row(this.#layers[layer]?.middle, position, `inside block ${layer}`);
  }

  #row(matrix, position, where) {
    const d = this.model.embedDim;
    if (!matrix || !(position in this.ids)) throw new RangeError(`no position ${position} ${where}`);
    return matrix.subarray(position * d, (position + 1) * d);
  }

  // How much a token takes from each that it sees; empty in a block that is passed over.
  looks(layer, head, position) {
    return this.#layers[layer].weights[head][position] ?? new Float32Array(0);
  }

  // How much each token (row) takes from each (column), (T, T); zeros in a block that is passed over.
  attention(layer, head) {
    const table = new Float32Array(this.length ** 2);
    this.#layers[layer].weights[head].forEach((row, i) => table.set(row, i * this.length));
    return table;
  }

  // How many tokens of another text, from the first on, are read as they were here.
  #shared(ids, broken) {
    if (broken.mask || JSON.stringify(broken) !== JSON.stringify(this.broken)) return 0;
    const different = ids.findIndex((id, i) => id !== this.ids[i]);
    return different < 0 ? ids.length : different;
  }
}

// The parts ----------------------------------------------------------------------------------------------------------

// The row of the table of each token, (n, d).
function embedding(ids, { tokenEmbedding, embedDim: d }) {
  const x = new Float32Array(ids.length * d);
  ids.forEach((id, row) => x.set(tokenEmbedding.subarray(id * d, (id + 1) * d), row * d));
  return x;
}

// Look, then think; both are added to the residual stream.
function block(x, part, seen, model, broken) {
  const looked = attention(norm(x, part.ln1), part.attention, seen, model, broken);
  const stream = broken.residual ? looked : sum(x, looked);
  seen.middle = joined(seen.middle, stream);
  const thought = mlp(norm(stream, part.ln2), part.mlp);
  return broken.residual ? thought : sum(stream, thought);
}

// Each token looks at itself and those before it, and takes from their values. `seen` holds the keys, values and
// weights of the tokens before these, and afterwards of all.
function attention(x, part, seen, { numHeads, embedDim: d, rotary }, broken) {
  const [q, k, v] = [part.qProj, part.kProj, part.vProj].map((proj) => linear(x, proj)); // (n, d)
  if (!broken.positions) for (const vectors of [q, k]) rotate(vectors, rotary, seen.start, d);
  seen.keys = joined(seen.keys, k); // (T, d)
  seen.values = joined(seen.values, v);
  const width = d / numHeads, scale = broken.scale ? 1 : 1 / Math.sqrt(width), n = x.length / d;
  const mixed = new Float32Array(n * d);
  for (let head = 0; head < numHeads; head++) {
    for (let row = 0; row < n; row++) {
      const from = row * d + head * width, to = from + width; // this head's part of the row
      const weights = new Float32Array(broken.mask ? seen.start + n : seen.start + row + 1);
      compare(q.subarray(from, to), seen.keys.subarray(head * width), d, scale, weights);
      softmax(weights);
      seen.weights[head].push(weights);
      if (head !== broken.silent) mix(weights, seen.values.subarray(head * width), d, mixed.subarray(from, to));
    }
  }
  return linear(mixed, part.outProj);
}

// The scores of the keys, one every `stride` numbers: scaled dot products with the query.
function compare(query, keys, stride, scale, scores) {
  for (let key = 0; key < scores.length; key++) {
    let dot = 0;
    for (let i = 0; i < query.length; i++) dot += query[i] * keys[key * stride + i];
    scores[key] = dot * scale;
  }
}

// Positive numbers that sum to one, in place of the scores.
function softmax(scores) {
  let largest = -Infinity, total = 0;
  for (let i = 0; i < scores.length; i++) largest = Math.max(largest, scores[i]);
  for (let i = 0; i < scores.length; i++) total += scores[i] = Math.exp(scores[i] - largest);
  for (let i = 0; i < scores.length; i++) scores[i] /= total;
}

// The mean of the values, one every `stride` numbers, by the weights.
function mix(weights, values, stride, mean) {
  for (let key = 0; key < weights.length; key++) {
    for (let i = 0; i < mean.length; i++) mean[i] += weights[key] * values[key * stride + i];
  }
}

// Rotate each pair of neighbours by the angle of its position, in place: (n, heads, width) from position `start` on.
function rotate(x, { cos, sin, pairs }, start, d) {
  for (let i = 0; i < x.length; i += 2) {
    const angle = (start + Math.floor(i / d)) * pairs + (i / 2) % pairs;
    const even = x[i], odd = x[i + 1];
    x[i] = even * cos[angle] - odd * sin[angle];
    x[i + 1] = even * sin[angle] + odd * cos[angle];
  }
}

function rotaryTables(maxSeqLen, width) {
  const pairs = width / 2;
  const angles = Float64Array.from({ length: maxSeqLen * pairs }, (_, i) =>
    Math.floor(i / pairs) * 10_000 ** (-(i % pairs) / pairs),
  );
  return { pairs, cos: Float32Array.from(angles, Math.cos), sin: Float32Array.from(angles, Math.sin) };
}

// What each token does by itself: widen, GELU, narrow.
function mlp(x, { linear1, linear2 }) {
  return linear(gelu(linear(x, linear1)), linear2);
}

// The tanh form of GELU, as GPT-2 has it; in place.
function gelu(x) {
  for (let i = 0; i < x.length; i++) {
    const cube = x[i] * x[i] * x[i]; // a power would be slow
    x[i] *= 0.5 + 0.5 * Math.tanh(Math.sqrt(2 / Math.PI) * (x[i] + 0.044715 * cube));
  }
  return x;
}

// Each row to mean 0 and variance 1, then scaled and shifted.
function norm(x, { gamma, beta }) {
  const y = new Float32Array(x.length), d = gamma.length;
  for (let from = 0; from < x.length; from += d) {
    let mean = 0, variance = 0;
    for (let i = 0; i < d; i++) mean += x[from + i] / d;
    for (let i = 0; i < d; i++) variance += (x[from + i] - mean) ** 2 / d;
    const deviation = Math.sqrt(variance + 1e-5);
    for (let i = 0; i < d; i++) y[from + i] = ((x[from + i] - mean) / deviation) * gamma[i] + beta[i];
  }
  return y;
}

// x @ weight + bias, four columns at a time: (n, inputs) to (n, outputs). Here nearly all the time is spent.
function linear(x, { weight, bias }) {
  const outputs = bias.length, inputs = weight.length / outputs;
  const y = new Float32Array((x.length / inputs) * outputs);
  for (let row = 0, to = 0; row < x.length; row += inputs) {
    for (let column = 0; column < outputs; column += 4, to += 4) {
      let a = bias[column], b = bias[column + 1], c = bias[column + 2], d = bias[column + 3];
      for (let i = row, w = column; i < row + inputs; i++, w += outputs) {
        const value = x[i];
        a += value * weight[w];
        b += value * weight[w + 1];
        c += value * weight[w + 2];
        d += value * weight[w + 3];
      }
      y[to] = a;
      y[to + 1] = b;
      y[to + 2] = c;
      y[to + 3] = d;
    }
  }
  return y;
}

// Matrices -----------------------------------------------------------------------------------------------------------

const sum = (x, y) => x.map((value, i) => value + y[i]);

// The rows of one matrix, and below them those of the other.
function joined(above, below) {
  const both = new Float32Array(above.length + below.length);
  both.set(above);
  both.set(below, above.length);
  return both;
}

function transposed(x, columns) {
  const rows = x.length / columns;
  return x.map((_, i) => x[(i % rows) * columns + Math.floor(i / rows)]);
}

function refuse(reason) {
  throw new Error(`the file of weights cannot be used: ${reason}; load the page again`);
}
