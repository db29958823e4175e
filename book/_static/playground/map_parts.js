// The parts of the map: what each is called, which chapter builds it, and what it does in two sentences. Names and
// remarks are those of the drawing (book/drawings/model.py).

// [name, remark, colour, what it does, [page, title] of its chapters]
const ALL = {
  tokens: ["Tokenization", "text becomes integers", "token",
    "The text is cut into tokens: words, or pieces of words, each with a number. The model never sees letters, only these numbers; "
    + "“start” is the line break before every story.",
    [["foundations/tokenization", "Tokenization"]]],
  gpt: ["GPT", "all the parts together", "muted",
    "A GPT is a stack of equal blocks between a table of vectors and a list of scores. It writes one token at a time: what it "
    + "has written is part of what it reads next.",
    [["transformer/gpt", "GPT"]]],
  embedding: ["Embedding layer", "tokens and positions joined", "token",
    "Each number becomes a vector, a list of 64 numbers. From here on every token has a lane of its own, down which its vector "
    + "runs while the parts below add to it.",
    [["embeddings/embedding-layer", "The embedding layer"]]],
  "token-embedding": ["Embeddings", "what each token is", "token",
    "Each of the 512 tokens has a vector of 64 numbers, learned in training and looked up here. A square shows all 64: the "
    + "stronger a dot, the farther from 0, teal above and rust below it.",
    [["embeddings/token-embeddings", "Token embeddings"]]],
  positions: ["Positions", "where each stands", "position",
    "Without them the model could not tell which token came first. This model adds nothing for it here: inside attention it turns "
    + "pairs of numbers by angles that grow with the position, like the hands of clocks.",
    [["embeddings/positional-encodings", "Positional encodings"], ["attention/positions-in-attention", "Positions in attention"]]],
  block: ["Transformer block", "residual connections around attention and MLP", "norm",
    "A block first looks around, then thinks: attention brings what other tokens know, the MLP works on each token alone. "
    + "What both find is added to the vector, which is why its way down is called the residual stream.",
    [["transformer/block", "The transformer block"]]],
  attention: ["Multi-head attention", "how tokens look at each other", "query",
    "Each token looks back at those before it and takes something from each: the thicker the arc, the more. There are four heads, "
    + "four ways of looking at once; pick one.",
    [["attention/scaled-dot-product", "Attention"], ["attention/multi-head", "Several heads"], ["generation/kv-cache", "The cache"]]],
  mlp: ["Norm and MLP", "what each token makes of it", "value",
    "The MLP, a small network, takes the vector of each token by itself and adds what it makes of it. If the model had to guess "
    + "right before it and right after it, these probabilities would change most.",
    [["transformer/normalisation-and-mlp", "Normalisation and MLP"]]],
  head: ["Scores", "a score for every possible next token", "norm",
    "The last vector is compared with the vector of every token in the table: the better they fit, the higher the score. "
    + "Then the scores become probabilities, which add up to 100 %.",
    [["transformer/gpt", "GPT"]]],
  sampling: ["Sampling", "one token is chosen, and again", "query",
    "All tokens lie in a row, each as wide as its probability. A random number picks a point, the token there is written, and "
    + "everything runs again.",
    [["generation/sampling", "Sampling"]]],
  training: ["Training", "data, loss and the steps that lower it", "loss",
    "In training the model reads stories, and each token that comes says how wrong it was: the less likely, the larger the "
    + "surprise. Each step changes all its numbers a little, so that the surprise, the loss, becomes smaller.",
    [["training/data-and-loss", "Data and loss"], ["training/optimisation", "Optimisation"]]],
  tensors: ["Tensors", "arrays and their shapes", "norm",
    "All that is seen here is arrays of numbers: a table of tokens by 64 numbers, a square of looks for each head. A tensor is such "
    + "an array that remembers how it was computed.",
    [["foundations/tensors", "Tensors"]]],
  autograd: ["Autograd", "how all of it learns", "loss",
    "Training must know how the loss changes with each of the model's numbers. Autograd works that out, back through every "
    + "step of the computation.",
    [["foundations/autograd", "Autograd"]]],
};

export const PARTS = Object.fromEntries(Object.entries(ALL).map(([key, [name, remark, role, says, chapters]]) => (
  [key, { name, remark, role, says, chapters }]
)));

// What the small map on the card of a chapter lights, where it is called something else there.
const ELSEWHERE = {
  text: "tokens", "positions-in-attention": "positions", stack: "gpt", cache: "attention", gradients: "autograd",
};
const IN_BLOCKS = ["block", "attention", "mlp"]; // a block's number follows: attention.0

// The part that an address names, with the block it is in; null if there is none of this name.
export function partNamed(name, blocks) {
  const [said, number = "0"] = (name ?? "").split(".");
  const part = Object.hasOwn(ELSEWHERE, said) ? ELSEWHERE[said] : said;
  if (!Object.hasOwn(PARTS, part) || !(Number(number) < blocks)) return null;
  return IN_BLOCKS.includes(part) ? `${part}.${Number(number)}` : part;
}
