// What the best possible reader of a story expects next, exactly: `tinytorch_book.stories.oracle`, in characters, and
// `tinytorch_book.stories.tokens`, in tokens.
//
// A hypothesis is what may still come of a story, where {name} is not chosen yet, and who has been chosen:
// {todo: "unny {time} {hero} {went} to the {place}. ...", cast: [null, "Mia", ...], prob: 0.2}. A belief is the list
// of those that agree with the text so far. Each begins with a character, and their probabilities sum to one; no two
// are the same, for every choice can be read off a story.

// The words of a text, each with the space before it: a word ends before a space or a newline.
const WORDS = /[^]*?\P{White_Space}(?=[ \n])|[^]+$/gu;

export class Oracle {
  // The rules and the cast of the grammar, as the package has them.
  constructor({ rules, cast }) {
    this.rules = new Map(Object.entries(rules).map(([name, options]) => [name, choice(options)]));
    this.members = readCast(cast);
    this.nobody = Array(this.members.size).fill(null);
    this.text = ""; // the last text, as far as a story can go on so,
    this.probs = []; // the probability of each of its characters,
    this.beliefs = [this.#unfold("", this.nobody, 1)]; // and the belief before each, and after the last
    this.words = new WeakMap(); // that can come, by belief
    this.cuts = new WeakMap(); // of words, by tokenizer
  }

  // The probability of every character, given those before it, up to the first impossible one.
  follow(text) {
    const position = this.#walk(text);
    const probs = this.probs.slice(0, position);
    if (position === text.length) return { probs, stopped: null };
    const allowed = new Set(this.beliefs[position].map(({ todo }) => characterAt(todo, 0)));
    return { probs, stopped: { position, char: characterAt(text, position), allowed: [...allowed].toSorted() } };
  }

  // The words with which a story can go on where this text stops being one, or where its last word begins, the
  // likeliest first, each with the space before it; and where in the text that is.
  wordsFor(text) {
    const end = this.#walk(text), start = lastWord(text.slice(0, end)), begun = text.slice(start, end);
    const words = this.#wordsAfter(this.beliefs[start]);
    const whole = /\p{White_Space}/u.test(text[end] ?? "") && words.find(({ word }) => word === begun);
    return whole ? { start: end, words: likeliest(this.#wordsAfter(whole.after)) } : { start, words: likeliest(words) };
  }

  // Of the tokens that can follow, those that are pieces of words, by id: the likeliest word that is cut like this, its
  // ending after the piece, and whether it is the only one.
  pieces(ids, tokenizer) {
    const words = new Map();
    for (const way of this.#ways(ids, tokenizer)) words.set(way.id, [...words.get(way.id) ?? [], way]);
    const found = new Map();
    for (const [id, ways] of words) {
      const [{ word, left }] = ways.toSorted((a, b) => b.prob - a.prob);
      const only = ways.every((way) => way.word === word);
      if (left.length) found.set(id, { word: word.trim(), ending: tokenizer.decode(left), only });
    }
    return found;
  }

  // The probability of every token that can follow these, by id. Where none can, it stopped at a character, as above,
  // or at a token: the text is possible, but a tokenizer that cuts whole stories never cuts it so.
  nextTokens(ids, tokenizer) {
    const weights = this.#following(ids, tokenizer);
    if (!weights.size) {
      const { stopped } = this.follow(tokenizer.decode(ids));
      return { probs: null, stopped: stopped ?? { token: this.#wrongToken(ids, tokenizer) } };
    }
    const total = sum([...weights.values()]);
    const inOrder = [...weights].toSorted(([a], [b]) => a - b);
    return { probs: new Map(inOrder.map(([id, weight]) => [id, weight / total])), stopped: null };
  }

  // What can be known of one of the cast after these tokens: the probability of every value it can have. Null if no story
  // is cut like this. As `tinytorch_book.stories.token_beliefs`.
  hidden(name, ids, tokenizer) {
    const { words } = this.#begun(ids, tokenizer);
    return this.#posterior(name, words.flatMap(({ prob, after }) => after.map((one) => ({ ...one, prob: prob * one.prob }))));
  }

  // The same after a text whose last word is over. Null if no story has this. As `tinytorch_book.stories.cast_beliefs`.
  told(name, text) {
    if (this.#walk(text) < text.length) return null;
    const belief = this.beliefs[text.length];
    return this.#posterior(name, text ? belief.filter(({ todo }) => " \n".includes(todo[0])) : belief);
  }

  #posterior(name, belief) {
    const { rows } = this.members.get(name);
    const found = new Map([...rows.values()].flat().map(([value]) => [value, 0]));
    for (const { cast, prob } of belief) {
      for (const [value, p] of this.#values(name, cast)) found.set(value, found.get(value) + prob * p);
    }
    const total = sum([...found.values()]);
    return total ? new Map([...found].map(([value, p]) => [value, p / total])) : null;
  }

  // The tokens of a beginning that may end inside a word: those that every word which can still come of it has, and
  // the rest, which is the beginning of the next token.
  heal(text, tokenizer) {
    if (this.#walk(text) < text.length) return { ids: tokenizer.encode(text), rest: "" };
    const start = lastWord(text), begun = text.slice(start);
    const [first, ...others] = this.#wordsAfter(this.beliefs[start])
      .filter(({ word }) => word.startsWith(begun))
      .map(({ word }) => this.#cut(word, tokenizer));
    let shared = first;
    for (const cut of others) shared = shared.slice(0, agreement(shared, cut));
    while (!begun.startsWith(tokenizer.decode(shared))) shared = shared.slice(0, -1);
    const rest = begun.slice(tokenizer.decode(shared).length);
    return { ids: [...this.#cut(text.slice(0, start), tokenizer), ...shared], rest };
  }

  // How much of a text is possible. What the text before had in common with it is known already.
  #walk(text) {
    const from = agreement(text, this.text);
    let position = from;
    for (; position < text.length; position++) {
      const [prob, after] = this.#read(this.beliefs[position], text[position]);
      if (!after.length) break;
      this.probs[position] = prob;
      this.beliefs[position + 1] = after;
    }
    if (position > from) this.text = text.slice(0, position);
    return position;
  }

  // The probability of a character, and the belief after it, which is empty if the character is impossible.
  #read(belief, char) {
    const kept = belief.filter(({ todo }) => todo[0] === char);
    const total = kept.length === belief.length ? 1 : Math.min(1, sum(kept.map(({ prob }) => prob)));
    const after = kept.flatMap(({ todo, cast, prob }) => this.#unfold(todo.slice(1), cast, prob / total));
    return [total, after];
  }

  // Every hypothesis with which this can go on, once what stands first is chosen; after a story comes another one.
  #unfold(todo, cast, prob) {
    if (!todo) return this.#unfold("{story}", this.nobody, prob);
    if (todo[0] !== "{") return [{ todo, cast, prob }];
    const end = todo.indexOf("}"), name = todo.slice(1, end), rest = todo.slice(end + 1);
    return this.rules.has(name)
      ? this.rules.get(name).flatMap(([text, p]) => this.#unfold(text + rest, cast, p * prob))
      : this.#values(name, cast).map(([value, p, after]) => ({ todo: value + rest, cast: after, prob: p * prob }));
  }

  // Every [value, probability, cast afterwards] of one of the cast.
  #values(name, cast) {
    const { number, parent, rows } = this.members.get(name);
    if (cast[number] !== null) return [[cast[number], 1, cast]];
    const parents = parent ? this.#values(parent, cast) : [["", 1, cast]];
    return parents.flatMap(([given, p, after]) => (
      rows.get(given).map(([value, q]) => [value, p * q, after.map((old, n) => (n === number ? value : old))])
    ));
  }

  // The tokens that can follow, in proportion; none if no story is cut like this.
  #following(ids, tokenizer) {
    const weights = new Map();
    for (const { id, prob } of this.#ways(ids, tokenizer)) weights.set(id, (weights.get(id) ?? 0) + prob);
    return weights;
  }

  // The tokens of the last word, which may have only begun, and the words that are cut so; none if no story is.
  #begun(ids, tokenizer) {
    const text = tokenizer.decode(ids), start = lastWord(text), none = { last: [], words: [] };
    if (this.#walk(text.slice(0, start)) < start) return none;
    const before = this.#cut(text.slice(0, start), tokenizer); // complete words, which have one cut
    if (agreement(before, ids) < before.length) return none;
    const last = ids.slice(before.length);
    const words = this.#wordsAfter(this.beliefs[start]).map((word) => ({ ...word, cut: this.#cut(word.word, tokenizer) }));
    return { last, words: words.filter(({ cut }) => agreement(cut, last) === last.length) };
  }

  // Every way on: the next token, the word that it is of, and the tokens that are left of that.
  *#ways(ids, tokenizer) {
    const { last, words } = this.#begun(ids, tokenizer);
    for (const { prob, word, after, cut } of words) {
      if (cut.length > last.length) yield { prob, word, id: cut[last.length], left: cut.slice(last.length + 1) };
      else {
        for (const next of this.#wordsAfter(after)) {
          const [id, ...left] = this.#cut(next.word, tokenizer);
          yield { prob: prob * next.prob, word: next.word, id, left };
        }
      }
    }
  }

  // The first token with which no story is cut: where the text has another cut, or in its last word.
  #wrongToken(ids, tokenizer) {
    const text = tokenizer.decode(ids);
    let token = agreement(this.#cut(text.slice(0, lastWord(text)), tokenizer), ids);
    while (this.#following(ids.slice(0, token + 1), tokenizer).size) token++;
    return token;
  }

  // Every word that can come, with the space before it: its probability, and the belief once it has ended.
  #wordsAfter(belief) {
    if (!this.words.has(belief)) this.words.set(belief, [...this.#spell(belief, "", 1)]);
    return this.words.get(belief);
  }

  *#spell(belief, begun, prob) {
    const ends = ({ todo }) => /\P{White_Space}$/u.test(begun) && " \n".includes(todo[0]);
    const ended = belief.filter(ends), total = sum(ended.map((one) => one.prob));
    if (ended.length) {
      yield { prob: prob * total, word: begun, after: ended.map((one) => ({ ...one, prob: one.prob / total })) };
    }
    for (const char of new Set(belief.filter((one) => !ends(one)).map(({ todo }) => todo[0]))) {
      const [p, after] = this.#read(belief, char);
      yield* this.#spell(after, begun + char, prob * p);
    }
  }

  // The tokens of words that a story can have; the cut of each is kept.
  #cut(text, tokenizer) {
    if (!this.cuts.has(tokenizer)) this.cuts.set(tokenizer, new Map());
    const cuts = this.cuts.get(tokenizer);
    return wordsOf(text).flatMap((word) => {
      if (!cuts.has(word)) cuts.set(word, tokenizer.encode(word));
      return cuts.get(word);
    });
  }
}

const likeliest = (words) => [...new Set(words.toSorted((a, b) => b.prob - a.prob).map(({ word }) => word))];

const wordsOf = (text) => text.match(WORDS) ?? [];

// Where the last word of a text begins.
const lastWord = (text) => text.length - (wordsOf(text).at(-1)?.length ?? 0);

// A choice as [text, probability]; a text alone is certain.
function choice(options) {
  if (typeof options === "string") return [[options, 1]];
  const total = sum(Object.values(options));
  return Object.entries(options).map(([text, weight]) => [text, weight / total]);
}

// The cast by name: the number of each, the parent or "", and the choice for every value of the parent.
function readCast(cast) {
  return new Map(Object.entries(cast).map(([key, options], number) => {
    const [name, parent = ""] = key.split(" given ");
    const rows = parent ? Object.entries(options) : [["", options]];
    return [name, { number, parent, rows: new Map(rows.map(([given, row]) => [given, choice(row)])) }];
  }));
}

// How many items two lists, or characters two texts, have in common at their beginning.
function agreement(one, other) {
  const most = Math.min(one.length, other.length);
  let count = 0;
  while (count < most && one[count] === other[count]) count++;
  return count;
}

const characterAt = (text, position) => String.fromCodePoint(text.codePointAt(position));

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
