"""The checks of "The KV cache": right answers pass, empty and wrong ones do not."""

import numpy as np
import pytest

from tinytorch import (
    KVCache,
    Linear,
    Module,
    MultiHeadAttention,
    functional,
    no_grad,
    scaled_dot_product_attention,
)
from tinytorch.check import kv_cache as check

PREDICTIONS = {
    "tokens read without a cache": sum(40 + i for i in range(60)),
    "tokens read with a cache": 40 + 59,
    "keys of a layer after the prompt (B, h, T, d/h)": (1, 8, 40, 64),
    "scores of a layer for the first new token (B, h, n, T)": (1, 8, 1, 41),
    "bytes of the cache": 2 * 6 * 1024 * 512 * 2,
    "bytes of the cache with 16 heads": 2 * 6 * 1024 * 512 * 2,
}


def nothing(*_, **__):
    return None


def step(q, k, v, keys, values, root=None):
    keys, values = np.vstack([keys, k]), np.vstack([values, v])
    scores = keys @ q / np.sqrt(root or len(q))
    return functional.softmax(scores).numpy() @ values, keys, values


def step_before_extending(q, k, v, keys, values):
    weights = functional.softmax(keys @ q / np.sqrt(len(q))).numpy()
    return weights @ values, np.vstack([keys, k]), np.vstack([values, v])


def step_in_front(q, k, v, keys, values):
    return step(q, k, v, keys, values)[0], np.vstack([k, keys]), np.vstack([v, values])


def step_last_in_front(q, k, v, keys, values):
    output, keys, _ = step(q, k, v, keys, values)
    return output, keys, np.vstack([v, values])


def step_mean(q, k, v, keys, values):
    keys, values = np.vstack([keys, k]), np.vstack([values, v])
    return values.mean(axis=0), keys, values


def write(model, prompt, n, cache, clear=True, unread=True, extra=False, by_one=False):
    if clear:
        cache.clear()
    ids = list(prompt)
    with no_grad():
        if by_one:
            for i in ids[:-1]:
                model([i], cache=cache)
        for _ in range(n):
            new = ids[cache.length :] if unread else ids
            ids.append(int(model(new, cache=cache).data[-1].argmax()))
        if extra:
            model(ids[-1:], cache=cache)
    return ids


def write_without(model, prompt, n, cache):
    ids = list(prompt)
    with no_grad():
        for _ in range(n):
            ids.append(int(model(ids).data[-1].argmax()))
    return ids


def write_clearing_every_time(model, prompt, n, cache):
    ids = list(prompt)
    with no_grad():
        for _ in range(n):
            cache.clear()
            ids.append(int(model(ids[cache.length :], cache=cache).data[-1].argmax()))
    return ids


def write_from_the_last(model, prompt, n, cache):
    cache.clear()
    ids = list(prompt)
    with no_grad():
        for _ in range(n):
            ids.append(int(model(ids[-1:], cache=cache).data[-1].argmax()))
    return ids


def write_elsewhere(model, prompt, n, cache):
    return write(model, prompt, n, KVCache(cache.num_layers, cache.max_seq_len))


def write_with_generate(model, prompt, n, cache):
    return model.generate(np.array(prompt), n, temperature=0).data.tolist()


class Remembering(Module):
    """The solution, with switches for what one gets wrong."""

    stores = uses_all = True

    def __init__(self, d, heads, dropout_prob=0.0):
        self.heads = heads
        self.q_proj, self.k_proj = Linear(d, d), Linear(d, d)
        self.v_proj, self.out_proj = Linear(d, d), Linear(d, d)

    def forward(self, x, mask=None, cache=None):
        B, T, d = x.shape
        q, k, v = (
            proj(x).reshape(B, T, self.heads, -1).permute(0, 2, 1, 3)
            for proj in (self.q_proj, self.k_proj, self.v_proj)
        )
        if cache is not None and self.stores:
            all_keys, all_values = cache.extend(k, v)
            if self.uses_all:
                k, v = all_keys, all_values
        if not self.uses_all:
            mask = None if mask is None else mask[:, -T:]
        mixed, _ = scaled_dot_product_attention(q, k, v, mask)
        return self.out_proj(mixed.permute(0, 2, 1, 3).reshape(B, T, d))


class NotStoring(Remembering):
    stores = False


class StoringWhole(Remembering):
    """Gives the cache keys that are not split among the heads."""

    def forward(self, x, mask=None, cache=None):
        if cache is not None:
            cache.extend(self.k_proj(x), self.v_proj(x))
        return super().forward(x, mask)


class Advancing(Remembering):
    """Counts the new tokens itself, before all layers have stored theirs."""

    def forward(self, x, mask=None, cache=None):
        out = super().forward(x, mask, cache)
        if cache is not None:
            cache.advance(x.shape[1])
        return out


class NotLookingBack(Remembering):
    uses_all = False


class Stub(Remembering):
    def forward(self, x, mask=None):
        return super().forward(x, mask)


class NeedsACache(Remembering):
    def forward(self, x, mask=None, cache=None):
        cache.extend(x, x)


class Empty(Remembering):
    def forward(self, x, mask=None, cache=None): ...


RIGHT = {
    check.cache_predict: PREDICTIONS,
    check.cache_step: step,
    check.cache_write: write,
    check.cache_attention: Remembering,
}


@pytest.mark.parametrize("checked", RIGHT, ids=lambda c: c.__name__)
def test_the_right_answer_is_solved_and_an_empty_one_is_not(checked):
    assert checked(RIGHT[checked])
    assert not checked(nothing)
    assert not checked(...)
    assert not checked(None)


def test_the_stubs_of_the_page_are_not_solved():
    assert not check.cache_predict(dict.fromkeys(PREDICTIONS, ...))
    assert not check.cache_write(lambda *a: write(*a, clear=False, unread=False))
    assert not check.cache_attention(Stub)


def test_our_own_layer_passes():
    assert check.cache_attention(MultiHeadAttention)


@pytest.mark.parametrize(
    ("name", "wrong", "hint"),
    [
        ("tokens read without a cache", PREDICTIONS["tokens read without a cache"] + 60, "40"),
        ("tokens read with a cache", 100, "not read"),
        ("keys of a layer after the prompt (B, h, T, d/h)", (1, 8, 40, 512), "d/h"),
        ("scores of a layer for the first new token (B, h, n, T)", (1, 8, 1, 40), "itself"),
        ("scores of a layer for the first new token (B, h, n, T)", (1, 8, 41, 41), "query"),
        ("bytes of the cache", 6 * 1024 * 512 * 2, "keys and values"),
        ("bytes of the cache", 2 * 6 * 1024 * 512 * 4, "float16"),
        ("bytes of the cache", 2 * 6 * 1024 * 512 * 2 * 8, "share out"),
        ("bytes of the cache", 2 * 6 * 1024 * 64 * 2, "d numbers together"),
        ("bytes of the cache with 16 heads", 2 * 6 * 1024 * 32 * 2, "d numbers together"),
        ("bytes of the cache with 16 heads", 4 * 6 * 1024 * 512 * 2, "half the length"),
    ],
)
def test_a_wrong_prediction_fails_where_it_is_wrong(name, wrong, hint):
    report = check.cache_predict({**PREDICTIONS, name: wrong})
    assert report.cases[-1].claim == name
    assert hint in report.cases[-1].hint
    assert not report.cases[-1].expected, "the answer is not given away"


def test_the_predictions_are_those_of_the_package():
    cache = KVCache(6, 1024)
    new = np.zeros((1, 8, 40, 64), dtype=np.float16)
    keys = [cache.extend(layer, new, new)[0] for layer in range(6)]
    assert keys[0].shape == PREDICTIONS["keys of a layer after the prompt (B, h, T, d/h)"]
    assert cache.nbytes == PREDICTIONS["bytes of the cache"]


@pytest.mark.parametrize(
    ("wrong", "claim", "hint"),
    [
        (lambda q, k, v, keys, values: (v, keys, values), "the keys of all tokens", "new token"),
        (step_in_front, "the keys of all tokens", "comes last"),
        (lambda *given: step(*given)[0], "the keys of all tokens", ""),
        (lambda *given: step(*given)[::-1], "the values of all tokens", ""),
        (lambda *g: tuple(step(*g)[i] for i in (0, 2, 1)), "the keys of all tokens", "this order"),
        (step_last_in_front, "the values of all tokens", "comes last"),
        (step_before_extending, "looks at itself as well", "extend, then attend"),
        (step_mean, "output with five tokens in the cache", "softmax"),
        (lambda *given: step(*given, root=1), "output with five tokens in the cache", "root of d"),
    ],
)
def test_a_wrong_step_fails_where_it_is_wrong(wrong, claim, hint):
    last = check.cache_step(wrong).cases[-1]
    assert last.claim == claim
    assert hint in last.hint


def test_a_step_that_changes_what_it_is_given_fails():
    def in_place(q, k, v, keys, values):
        result = step(q, k, v, keys, values)
        if len(keys):
            keys[-1] = k
        return result

    assert "no longer" in check.cache_step(in_place).cases[-1].came


@pytest.mark.parametrize(
    ("options", "claim", "hint"),
    [
        ({"unread": False}, "the text of the model without a cache, 6 tokens", "not read"),
        ({"clear": False}, "the same with a cache that was used before", "clear()"),
        ({"extra": True}, "reads every token once, a prompt of 3", "last token"),
        ({"by_one": True}, "reads every token once, a prompt of 3", "one pass"),
    ],
)
def test_a_wrong_loop_fails_where_it_is_wrong(options, claim, hint):
    last = check.cache_write(lambda *given: write(*given, **options)).cases[-1]
    assert last.claim == claim
    assert hint in last.hint


def test_a_loop_that_reads_on_after_another_text_fails():
    def behind(model, prompt, n, cache):
        ids, before = list(prompt), cache.length
        for _ in range(n):
            with no_grad():
                logits = model(ids[cache.length - before :], cache=cache).data
            ids.append(int(logits[-1].argmax()))
        return ids

    last = check.cache_write(behind).cases[-1]
    assert last.claim == "the same with a cache that was used before"


@pytest.mark.parametrize("wrong", [write_without, write_clearing_every_time])
def test_a_loop_that_reads_everything_again_fails(wrong):
    last = check.cache_write(wrong).cases[-1]
    assert last.claim == "reads every token once, a prompt of 3"
    assert "Pass the cache that you were given, and clear it once" in last.hint


def test_a_loop_that_leaves_out_the_prompt_is_told():
    last = check.cache_write(write_from_the_last).cases[-1]
    assert last.claim.startswith("the text of the model without a cache")
    assert "first the whole prompt" in last.hint


@pytest.mark.parametrize("wrong", [write_elsewhere, write_with_generate])
def test_a_loop_that_does_not_use_the_given_cache_fails(wrong):
    last = check.cache_write(wrong).cases[-1]
    assert last.claim == "the given cache holds all tokens but the last"
    assert "Pass the cache that you were given" in last.hint


def test_a_loop_that_returns_the_new_tokens_alone_is_told():
    last = check.cache_write(lambda *given: write(*given)[len(given[1]) :]).cases[-1]
    assert "prompt as well" in last.hint


@pytest.mark.parametrize(
    ("wrong", "claim", "hint"),
    [
        (Stub, "a prompt with an empty cache", "GPT calls advance"),
        (StoringWhole, "a prompt with an empty cache", "split keys and values"),
        (Advancing, "a prompt with an empty cache", "GPT calls advance"),
        (NotStoring, "stores keys and values", "cache.extend"),
        (NotLookingBack, "a prompt, then token by token", "all tokens"),
        (NeedsACache, "without a cache, as before", "no cache"),
        (Empty, "without a cache, as before", ""),
    ],
)
def test_an_attention_that_does_not_remember_fails_where_it_forgets(wrong, claim, hint):
    last = check.cache_attention(wrong).cases[-1]
    assert last.claim == claim
    assert hint in last.hint
