// Text to tokens and back: the `BPETokenizer` of the package, from the file that its `save` writes.
//
// The file writes each byte as one letter (`tinytorch.text.tokenizer_files`), so that a token is a string of letters, and two
// neighbours are joined by joining their letters.

const FORMAT = "tinytorch byte-pair encoding";
const VERSION = 1;

// GPT-2's pattern: an English ending such as 's; letters, digits or other symbols with one space before them; white
// space, whose last space is left to the word that follows.
const WORDS =
  /'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;

// The words of a text, as GPT-2 cuts it; joined, they are the text again.
export const splitLikeGpt2 = (text) => text.match(WORDS) ?? [];

// A byte that is a visible character of Latin-1 stands for itself, the others take the letters from U+0100 on.
const isVisible = (byte) => (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
let others = 0x100;
const LETTERS = Array.from({ length: 256 }, (_, byte) => String.fromCharCode(isVisible(byte) ? byte : others++));
const BYTES = new Map(LETTERS.map((letter, byte) => [letter, byte]));
const LENIENT = new TextDecoder("utf-8", { ignoreBOM: true });
const STRICT = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export class Tokenizer {
  // `json` is the parsed file.
  constructor(json) {
    const size = Object.keys(json?.tokens ?? {}).length;
    if (json?.format !== FORMAT || json.version !== VERSION || !size || json.size !== size) {
      const found = `${json?.format ?? "nothing known"}, version ${json?.version}, ${size} tokens`;
      throw new Error(`the tokenizer's file is not one that this page reads (${found}); load the page again`);
    }
    this.ids = new Map(Object.entries(json.tokens)); // of the letters of every token, in the order of joining too
    this.letters = new Map([...this.ids].map(([letters, id]) => [id, letters]));
    this.vocabSize = Math.max(...this.ids.values()) + 1;
  }

  // The ids of a text; half a character (a lone surrogate) is refused, as by the package.
  encode(text) {
    if (/\p{Surrogate}/u.test(text)) throw new Error("the text holds half a character, which has no bytes");
    return splitLikeGpt2(text).flatMap((word) => this.#join(word).map((letters) => this.ids.get(letters)));
  }

  // The text of some ids; bytes that are no whole character become "\ufffd".
  decode(ids) {
    return LENIENT.decode(this.bytes(ids));
  }

  // The bytes of some ids, one token after the other.
  bytes(ids) {
    return Uint8Array.from([...ids].flatMap((id) => [...this.#lettersOf(id)].map((letter) => BYTES.get(letter))));
  }

  // One token to be shown: its text, or its bytes as \xf0 where they are no whole character.
  text(id) {
    const bytes = this.bytes([id]);
    try {
      return STRICT.decode(bytes);
    } catch {
      return [...bytes].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("");
    }
  }

  // The tokens of a text, to be shown.
  pieces(text) {
    return this.encode(text).map((id) => this.text(id));
  }

  #lettersOf(id) {
    const letters = this.letters.get(id);
    if (letters === undefined) throw new RangeError(`token id ${id} is not in the vocabulary of ${this.vocabSize}`);
    return letters;
  }

  // The tokens of one word. Of all neighbours that can be joined, those that make the lowest id come first.
  #join(word) {
    const bytes = [...new TextEncoder().encode(word)].map((byte) => LETTERS[byte]);
    if (this.ids.has(bytes.join(""))) return [bytes.join("")];
    for (let tokens = bytes; ; ) {
      let lowest = Infinity;
      for (let i = 1; i < tokens.length; i++) {
        lowest = Math.min(lowest, this.ids.get(tokens[i - 1] + tokens[i]) ?? Infinity);
      }
      if (lowest === Infinity) return tokens;
      tokens = merge(tokens, this.letters.get(lowest));
    }
  }
}

// Join two neighbours wherever they make this token, from left to right.
function merge(tokens, token) {
  const merged = [];
  for (const next of tokens) {
    if (merged.length && merged.at(-1) + next === token) merged[merged.length - 1] = token;
    else merged.push(next);
  }
  return merged;
}
