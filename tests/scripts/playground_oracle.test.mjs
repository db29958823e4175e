// The playground's own oracle beside the package: letters, tokens, and beginnings cut in a word.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Oracle } from "../../book/_static/playground/oracle.js";
import { Tokenizer } from "../../book/_static/playground/tokenizer.js";
import { close, jsonOf, known } from "./known.mjs";

const tokenizer = new Tokenizer(jsonOf("playground/tokenizer.json"));
const grammar = jsonOf("playground/grammar.json");
const oracle = new Oracle(grammar);
const expected = known("oracle");

test("the grammar is the package's own, in its order", () => {
  assert.equal(JSON.stringify(grammar), JSON.stringify(expected.grammar));
});

test("letter probabilities equal the package's", () => {
  for (const { text, probs, stopped } of expected.spelled) {
    const found = oracle.follow(text);
    close(found.probs, probs, { what: text.slice(0, 60) });
    const place = stopped && { ...stopped, position: [...text].slice(0, stopped.position).join("").length }; // Python counts characters
    assert.deepEqual(found.stopped, place);
  }
});

test("token probabilities equal the package's, or end where its do", () => {
  const kinds = { same: 0, token: 0 };
  for (const { ids, probs, refused } of expected.following) {
    const found = oracle.nextTokens(ids, tokenizer);
    if (probs) {
      kinds.same += 1;
      assert.equal(found.stopped, null);
      assert.deepEqual([...found.probs.keys()], probs.map(([id]) => id));
      close([...found.probs.values()], probs.map(([, p]) => p), { what: tokenizer.decode(ids) });
      continue;
    }
    assert.equal(found.probs, null);
    const { token, char, position } = found.stopped;
    const quoted = refused.match(/^no story is cut with .* as token (\d+), /s);
    if (quoted) assert.equal(token, Number(quoted[1]), refused);
    else {
      const place = refused.match(/^no story has (.*) at position (\d+), /s);
      assert.equal(position, Number(place[2]), refused);
      assert.ok(char.length > 1 || place[1].includes(char) || place[1].includes("\\"), refused);
    }
    kinds.token += token !== undefined;
  }
  assert.ok(kinds.same > 100 && kinds.token > 10, JSON.stringify(kinds));
});

test("posteriors of hidden values equal the package's", () => {
  const { ids, ...hidden } = expected.hidden;
  for (const [name, rows] of Object.entries(hidden)) {
    for (const [end, row] of rows.entries()) {
      const found = oracle.hidden(name, ids.slice(0, end), tokenizer);
      close([...found.values()], row, { what: `${name} after ${end}` });
    }
    assert.equal(oracle.hidden(name, tokenizer.encode("The dragon said"), tokenizer), null);
    assert.equal(oracle.hidden(name, [...tokenizer.encode("One"), ...tokenizer.encode("One")], tokenizer), null);
  }
});

test("a piece and its ending are a word with which a story can go on", () => {
  let count = 0;
  for (const story of expected.whole) {
    const ids = tokenizer.encode(story);
    for (let end = 0; end < ids.length; end += 3) {
      const before = ids.slice(0, end), { probs } = oracle.nextTokens(before, tokenizer);
      for (const [id, { word, ending }] of oracle.pieces(before, tokenizer)) {
        const text = tokenizer.decode([...before, id]) + ending;
        assert.ok(probs.get(id) > 0 && text.endsWith(word), text);
        assert.equal(oracle.follow(text).stopped, null);
        const next = ["\n", " "].filter((sign) => !oracle.follow(text + sign).stopped);
        assert.ok(next.length, `“${text}” is no whole word`);
        count += 1;
      }
    }
  }
  assert.ok(count > 100);
});

test("a beginning that ends in a word is healed without loss", () => {
  let unfinished = 0;
  for (const [text, healed] of expected.healed) {
    const { ids, rest } = oracle.heal(text, tokenizer);
    assert.deepEqual({ ids, rest }, healed);
    unfinished += rest !== "";
    const { probs: letters, stopped } = oracle.follow(text);
    if (stopped || text.length > 500) continue; // the tokens that begin with the rest hold all that is possible
    const read = ids.reduce((sum, id, i) => sum + Math.log(oracle.nextTokens(ids.slice(0, i), tokenizer).probs.get(id)), 0);
    const after = oracle.nextTokens(ids, tokenizer).probs;
    const begun = [...after].reduce((sum, [id, p]) => sum + (tokenizer.decode([id]).startsWith(rest) ? p : 0), 0);
    close([read + Math.log(begun)], [letters.reduce((sum, p) => sum + Math.log(p), 0)], { what: text });
  }
  assert.ok(unfinished > 20);
});
