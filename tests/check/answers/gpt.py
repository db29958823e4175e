"""Right and wrong answers to the exercises of "GPT"."""

from functools import partial
from itertools import pairwise

import numpy as np

from tinytorch import (
    GPT,
    AdamW,
    Embedding,
    LayerNorm,
    Linear,
    Module,
    MultiHeadAttention,
    PositionalEncoding,
    Tensor,
    TransformerBlock,
    causal_mask,
    functional,
)
from tinytorch.core.positions import Rotary
from tinytorch.stories import StoryGrammar

# One table, two uses --------------------------------------------------------------------------


def scatter_add(ids, g_in, x, g_logits):
    gradient = g_logits.T @ x
    np.add.at(gradient, ids, g_in)
    return gradient


def one_hot(ids, g_in, x, g_logits):
    return g_logits.T @ x + np.eye(g_logits.shape[1])[ids].T @ g_in


def row_by_row(ids, g_in, x, g_logits):
    gradient = np.einsum("tv,td->vd", g_logits, x)
    for i, g in zip(ids, g_in, strict=True):
        gradient[i] += g
    return gradient


def forgets_repeats(ids, g_in, x, g_logits):
    gradient = g_logits.T @ x
    gradient[ids] += g_in
    return gradient


def overwrites(ids, g_in, x, g_logits):
    gradient = g_logits.T @ x
    gradient[ids] = g_in
    return gradient


def as_many_rows_as_ids(ids, g_in, x, g_logits):
    gradient = np.zeros((ids.max() + 1, x.shape[1]))
    np.add.at(gradient, ids, g_in)
    part = g_logits.T @ x
    return part[: len(gradient)] + gradient


def as_many_rows_as_positions(ids, g_in, x, g_logits):
    return g_logits.T @ x + np.eye(len(ids))[ids].T @ g_in


def by_the_package(ids, g_in, x, g_logits):
    table = Tensor(np.zeros((g_logits.shape[1], x.shape[1])), requires_grad=True)
    read = functional.embedding(table, ids)
    (read * g_in).sum().backward()
    return g_logits.T @ x + table.grad


# Counting -------------------------------------------------------------------------------------


def count(V, d, L, T, ratio, tied):
    hidden = ratio * d
    mlp = 2 * d * hidden + hidden + d
    block = 4 * d**2 + 4 * d + mlp + 4 * d
    return V * d * (1 if tied else 2) + T * d + L * block + 2 * d


def count_by_formula(V, d, L, T, r, tied):
    return V * d * (2 - tied) + T * d + L * ((4 + 2 * r) * d * d + (9 + r) * d) + 2 * d


def count_by_shapes(V, d, L, T, r, tied):
    linear = [(d, d)] * 4 + [(d, r * d), (r * d, d)]
    block = sum((m + 1) * n for m, n in linear) + 2 * (d + d)
    tables = [(V, d), (T, d)] + ([] if tied else [(d, V)])
    return sum(m * n for m, n in tables) + sum(block for _ in range(L)) + (d + d)


# A test for causality -------------------------------------------------------------------------


def token_by_token(model, ids, rows=None, equal=lambda a, b: np.allclose(a, b, atol=1e-5)):
    """The solution; `rows` and `equal` are what one gets wrong."""
    before = model(ids)
    for t in range(len(ids)):
        changed = ids.copy()
        changed[t] = (changed[t] + 1) % before.shape[1]
        after = model(changed)
        own = slice(0, t) if rows is None else rows(t)
        if not equal(after[own], before[own]):
            return False
    return True


def largest_difference(model, ids):
    before = np.asarray(model(ids))
    vocab, worst = before.shape[1], 0.0
    for t in range(1, len(ids)):
        other = (ids[t] + vocab - 1) % vocab
        after = np.asarray(model(np.concatenate([ids[:t], [other], ids[t + 1 :]])))
        worst = max(worst, np.abs(after - before)[:t].max())
    return bool(worst < 1e-5)


def every_token_everywhere(model, ids):
    before = model(ids)

    def kept(t, token):
        changed = ids.copy()
        changed[t] = token
        return np.allclose(model(changed)[:t], before[:t])

    return all(kept(t, token) for t in range(len(ids)) for token in range(before.shape[1]))


def whole_suffix(model, ids):
    before = model(ids)
    for t in range(1, len(ids)):
        changed = ids.copy()
        changed[t:] = (changed[t:] + 1) % before.shape[1]
        if not np.allclose(model(changed)[:t], before[:t]):
            return False
    return True


def one_change(model, ids, t):
    before, changed = model(ids), ids.copy()
    changed[t] = (changed[t] + 1) % before.shape[1]
    return np.allclose(model(changed)[:t], before[:t])


def redrawn_suffix(model, ids):
    before, rng = model(ids), np.random.default_rng(0)
    for t in range(1, len(ids)):
        changed = ids.copy()
        changed[t:] = rng.integers(before.shape[1], size=len(ids) - t)
        if not np.allclose(model(changed)[:t], before[:t]):
            return False
    return True


def set_to(token):
    def is_causal(model, ids):
        before = model(ids)
        for t in range(len(ids)):
            changed = ids.copy()
            changed[t] = token
            if not np.allclose(model(changed)[:t], before[:t]):
                return False
        return True

    return is_causal


def out_of_the_vocabulary(model, ids):
    before = model(ids)
    for t in range(len(ids)):
        changed = ids.copy()
        changed[t] += 1
        if not np.allclose(model(changed)[:t], before[:t]):
            return False
    return True


def five_tokens(model, ids):
    before = model(ids)
    for t in range(len(ids)):
        changed = ids.copy()
        changed[t] = (changed[t] + 1) % 5
        if not np.allclose(model(changed)[:t], before[:t]):
            return False
    return True


def changes_ids(model, ids):
    before = model(ids)
    for t in range(len(ids)):
        ids[t] = (ids[t] + 1) % before.shape[1]
        if not np.allclose(model(ids)[:t], before[:t]):
            return False
    return True


def prefixes(model, ids):
    """Compares each row with that of a text that ends there, the first and the last row only."""
    before = model(ids)
    return all(np.allclose(model(ids[: t + 1])[t], before[t]) for t in (0, len(ids) - 1))


def every_prefix(model, ids):
    """The loop of the page: what is read of a text so far must not depend on what follows."""
    before = model(ids)
    return all(np.allclose(model(ids[:t]), before[:t], atol=1e-5) for t in range(1, len(ids) + 1))


# A model --------------------------------------------------------------------------------------


class OwnGPT(Module):
    """The solution, with what one gets wrong as arguments."""

    def __init__(
        self, V, d, layers, heads, T, norm=LayerNorm, attention=MultiHeadAttention,
        *, shared=False, last=None, own=True, dropout=0.0, positions=True,
    ):  # fmt: skip
        parts = {"norm": norm, "attention": attention} if own else {}
        self.token_embedding = Embedding(V, d)
        if positions:
            self.position_embedding = PositionalEncoding(T, d)
        blocks = [TransformerBlock(d, heads, 4, dropout, **parts) for _ in range(layers)]
        self.blocks = blocks[:1] * layers if shared else blocks
        self.ln_f = (last or norm)(d)

    def mask(self, ids):
        return causal_mask(ids.shape[1])

    def embed(self, ids):
        return self.position_embedding(self.token_embedding(ids))

    def logits(self, x):
        return self.ln_f(x) @ self.token_embedding.weight.T

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x, mask=self.mask(ids))
        return self.logits(x)


class OwnMask(OwnGPT):
    def mask(self, ids):
        T = ids.shape[-1]
        return np.where(np.tri(T, dtype=bool), 0.0, -np.inf).astype(np.float32)

    def logits(self, x):
        return functional.linear(self.ln_f(x), self.token_embedding.weight.transpose(0, 1))


class Inlined(Module):
    def __init__(self, V, d, layers, heads, T, norm=LayerNorm, attention=MultiHeadAttention):
        self.token_embedding, self.position_embedding = Embedding(V, d), PositionalEncoding(T, d)
        self.blocks = []
        for _ in range(layers):
            block = TransformerBlock(d, heads, dropout_prob=0, norm=norm, attention=attention)
            self.blocks.append(block)
        self.ln_f = norm(d)

    def forward(self, ids):
        _, T = np.shape(ids)
        table = self.token_embedding.weight
        x = table[ids] + self.position_embedding.position_embeddings[:T]
        for block in self.blocks:
            x = x + block.attention(block.ln1(x), mask=causal_mask(T))
            x = x + block.mlp(block.ln2(x))
        return self.ln_f(x) @ table.T


class Unmasked(OwnGPT):
    def mask(self, ids):
        return None


class MaskOfTheBatch(OwnGPT):
    def mask(self, ids):
        return causal_mask(ids.shape[0])


class MaskOfFive(OwnGPT):
    def mask(self, ids):
        return causal_mask(5)


class StrictMask(OwnGPT):
    def mask(self, ids):
        T = ids.shape[1]
        return np.where(np.tri(T, k=-1, dtype=bool) | (np.arange(T)[:, None] == 0), 0, -np.inf)


class MaskOnTheFirst(OwnGPT):
    def forward(self, ids):
        x = self.embed(ids)
        for i, block in enumerate(self.blocks):
            x = block(x, mask=self.mask(ids) if i == 0 else None)
        return self.logits(x)


class NoPositions(OwnGPT):
    def embed(self, ids):
        return self.token_embedding(ids)


class NoLastNorm(OwnGPT):
    def logits(self, x):
        return x @ self.token_embedding.weight.T


class Untied(OwnGPT):
    def __init__(self, V, d, layers, heads, T, **parts):
        super().__init__(V, d, layers, heads, T, **parts)
        self.lm_head = Linear(d, V, bias=False)

    def logits(self, x):
        return self.lm_head(self.ln_f(x))


class Probabilities(OwnGPT):
    def logits(self, x):
        return functional.softmax(super().logits(x))


class OthersNames(OwnGPT):
    def __init__(self, *sizes, **parts):
        super().__init__(*sizes, **parts)
        self.table = self.__dict__.pop("token_embedding")


def own(**switches):
    return lambda *sizes, **parts: OwnGPT(*sizes, **parts, **switches)


# Half the parameters --------------------------------------------------------------------------


def livelier(V, T, init_std=0.1, **parts):
    return GPT(V, 20, 1, 2, T, init_std=init_std, **parts)


def livelier_and_rotary(V, T):
    return livelier(V, T, pos_encoding="rotary")


def untied_and_rotary(V, T):
    attention = partial(MultiHeadAttention, rotate=Rotary(T, 10))
    return livelier(V, T, 0.2, tie_weights=False, pos_encoding=None, attention=attention)


class OneBlock(Module):
    def __init__(self, V, T, d=20):
        rng = np.random.default_rng(1)
        self.token_embedding, self.ln_f = Embedding(V, d), LayerNorm(d)
        attention = partial(MultiHeadAttention, rotate=Rotary(T, d // 2))
        self.block = TransformerBlock(d, 2, dropout_prob=0.0, attention=attention)
        for parameter in self.parameters():
            if parameter.ndim == 2:
                parameter.data = np.float32(rng.normal(0, 0.1, parameter.shape))

    def forward(self, ids):
        x = self.block(self.token_embedding(ids), mask=causal_mask(ids.shape[1]))
        return self.ln_f(x) @ self.token_embedding.weight.T


class NotMasked(MultiHeadAttention):
    def forward(self, query, key=None, value=None, mask=None):
        return super().forward(query)


class Counted(Module):
    """Letters counted beforehand, as a table that is no parameter."""

    def __init__(self, V, T):
        alphabet = StoryGrammar().alphabet
        text = StoryGrammar().generate(300, seed=8)
        counts = np.full((V, V), 0.01)
        for a, b in pairwise(text):
            counts[alphabet.index(a), alphabet.index(b)] += 1
        self.table = [np.log(counts / counts.sum(axis=1, keepdims=True))]
        self.shift = Linear(1, V)

    def forward(self, ids):
        return self.shift(np.zeros((*ids.shape, 1))) + self.table[0][ids]


def trained_beforehand(V, T):
    alphabet, model = StoryGrammar().alphabet, livelier(V, T)
    text = np.array([alphabet.index(c) for c in StoryGrammar().generate(60, seed=8)])
    optimizer = AdamW(model.parameters(), lr=0.01)
    for start in range(100):
        ids = text[start * 20 + np.arange(16)[:, None] * 50 + np.arange(T + 1)]
        optimizer.zero_grad()
        functional.cross_entropy(model(ids[:, :-1]), ids[:, 1:]).backward()
        optimizer.step()
    return model


RIGHT = {
    "gpt_half": [livelier_and_rotary, untied_and_rotary, OneBlock],
    "gpt_last_logits": [
        lambda logits, n: logits[np.arange(len(logits)), n - 1],
        lambda logits, n: np.take_along_axis(logits, (n - 1)[:, None, None], axis=1)[:, 0],
        lambda logits, n: logits[range(len(n)), n - 1, :],
    ],
    "gpt_tied_gradient": [scatter_add, one_hot, row_by_row],
    "gpt_num_parameters": [count, count_by_formula, count_by_shapes],
    "gpt_is_causal": [
        token_by_token,
        largest_difference,
        every_token_everywhere,
        whole_suffix,
        every_prefix,
    ],
    "gpt_assembled": [OwnGPT, OwnMask, Inlined],
}

WRONG = {
    "gpt_half": {
        "the page's model": lambda V, T: GPT(V, 32, 1, 4, T),
        "narrower": lambda V, T: GPT(V, 20, 1, 4, T),
        "narrower, two blocks": lambda V, T: GPT(V, 12, 2, 2, T),
        "untied": lambda V, T: GPT(V, 20, 1, 2, T, tie_weights=False),
        "no positions": lambda V, T: GPT(V, 20, 1, 2, T, pos_encoding=None),
        "no mask": lambda V, T: livelier(V, T, attention=NotMasked),
        "trained beforehand": trained_beforehand,
        "counted beforehand": Counted,
        "an embedding": lambda V, T: Embedding(V, V),
        "a class": lambda V, T: GPT,
        "no parameters": lambda V, T: Module(),
    },
    "gpt_last_logits": {
        "one too far": lambda logits, n: logits[np.arange(len(logits)), n % logits.shape[1]],
        "always the end": lambda logits, n: logits[:, -1],
        "the first": lambda logits, n: logits[:, 0],
        "every text at every length": lambda logits, n: logits[:, n - 1],
        "the first text": lambda logits, n: logits[0][n - 1],
        "from the end": lambda logits, n: logits[np.arange(len(logits)), -n],
        "in a loop": lambda logits, n: np.stack(
            [row[k - 1] for row, k in zip(logits, n, strict=False)]
        ),
    },
    "gpt_tied_gradient": {
        "the output alone": lambda ids, g_in, x, g: g.T @ x,
        "the lookup alone": lambda ids, g_in, x, g: scatter_add(ids, g_in, x, 0 * g),
        "the mean of both uses": lambda ids, g_in, x, g: scatter_add(ids, g_in, x, g) / 2,
        "the output taken away": lambda ids, g_in, x, g: scatter_add(ids, g_in, x, -g),
        "a repeated token counted once": forgets_repeats,
        "the lookup overwrites": overwrites,
        "as many rows as ids": as_many_rows_as_ids,
        "as many rows as positions": as_many_rows_as_positions,
        "x and the logits' gradient exchanged": lambda ids, g_in, x, g: scatter_add(
            ids, x, g_in, g
        ),
        "the table's transpose": lambda ids, g_in, x, g: scatter_add(ids, g_in, x, g).T,
        "divided by the length": lambda ids, g_in, x, g: scatter_add(
            ids, g_in / len(ids), x, g / len(ids)
        ),
        "by the package's backward pass": by_the_package,
    },
    "gpt_num_parameters": {
        "the rule of thumb": lambda V, d, L, T, r, tied: 12 * L * d * d + V * d,
        "an MLP four times as wide": lambda V, d, L, T, r, tied: count(V, d, L, T, 4, tied),
        "always tied": lambda V, d, L, T, r, tied: count(V, d, L, T, r, True),
        "never tied": lambda V, d, L, T, r, tied: count(V, d, L, T, r, False),
        "an untied output with a bias": lambda V, d, L, T, r, tied: (
            count(V, d, L, T, r, tied) + (0 if tied else V)
        ),
        "no positions": lambda V, d, L, T, r, tied: count(V, d, L, 0, r, tied),
        "no norm at the end": lambda V, d, L, T, r, tied: count(V, d, L, T, r, tied) - 2 * d,
        "no norms": lambda V, d, L, T, r, tied: count(V, d, L, T, r, tied) - (4 * L + 2) * d,
        "one norm in each block": lambda V, d, L, T, r, tied: (
            count(V, d, L, T, r, tied) - 2 * L * d
        ),
        "no biases": lambda V, d, L, T, r, tied: count(V, d, L, T, r, tied) - (5 + r) * L * d,
        "a short bias in the MLP": lambda V, d, L, T, r, tied: (
            count(V, d, L, T, r, tied) - (r - 1) * L * d
        ),
        "one block": lambda V, d, L, T, r, tied: count(V, d, 1, T, r, tied),
        "off by one in millions": lambda V, d, L, T, r, tied: (
            count(V, d, L, T, r, tied) + (V > 10_000)
        ),
        "rounded": lambda V, d, L, T, r, tied: float(f"{count(V, d, L, T, r, tied):.6g}"),
    },
    "gpt_is_causal": {
        "always true": lambda model, ids: True,
        "always false": lambda model, ids: False,
        "the last token alone": lambda model, ids: one_change(model, ids, len(ids) - 1),
        "the second token alone": lambda model, ids: one_change(model, ids, min(1, len(ids) - 1)),
        "only the row before": lambda model, ids: token_by_token(
            model, ids, lambda t: slice(max(t - 1, 0), t)
        ),
        "not the row before": lambda model, ids: token_by_token(
            model, ids, lambda t: slice(0, max(t - 1, 0))
        ),
        "equal to twelve digits": lambda model, ids: token_by_token(
            model, ids, equal=lambda a, b: np.allclose(a, b, rtol=0, atol=1e-12)
        ),
        "only the first row": lambda model, ids: token_by_token(
            model, ids, lambda t: slice(0, min(t, 1))
        ),
        "the first row and the one before": lambda model, ids: token_by_token(
            model, ids, lambda t: sorted({0, t - 1}) if t else []
        ),
        "the changed row too": lambda model, ids: token_by_token(
            model, ids, lambda t: slice(0, t + 1)
        ),
        "exactly equal": lambda model, ids: token_by_token(model, ids, equal=np.array_equal),
        "nearly equal": lambda model, ids: token_by_token(
            model, ids, equal=lambda a, b: np.allclose(a, b, atol=0.1)
        ),
        "the same choice": lambda model, ids: token_by_token(
            model, ids, equal=lambda a, b: np.array_equal(a.argmax(-1), b.argmax(-1))
        ),
        "the same mean": lambda model, ids: token_by_token(
            model, ids, equal=lambda a, b: np.allclose(a.mean(-1), b.mean(-1))
        ),
        "a suffix drawn anew": redrawn_suffix,
        "set to zero": set_to(0),
        "set to one": set_to(1),
        "a token outside the vocabulary": out_of_the_vocabulary,
        "a vocabulary of five": five_tokens,
        "ids changed": changes_ids,
        "two rows against shorter texts": prefixes,
    },
    "gpt_assembled": {
        "one block, shared": own(shared=True),
        "no mask": Unmasked,
        "a mask as long as the batch": MaskOfTheBatch,
        "a mask of five": MaskOfFive,
        "a mask that hides the token itself": StrictMask,
        "a mask for the first block": MaskOnTheFirst,
        "our norm at the end": own(last=LayerNorm),
        "our parts whatever is passed": own(own=False, last=LayerNorm),
        "our parts in the blocks": own(own=False),
        "our attention whatever is passed": lambda *sizes, norm=LayerNorm, **_: OwnGPT(
            *sizes, norm=norm
        ),
        "our norms in the blocks": lambda *sizes, norm=LayerNorm, **parts: OwnGPT(
            *sizes, last=norm, **parts
        ),
        "no norm at the end": NoLastNorm,
        "no positions": NoPositions,
        "no table of positions": own(positions=False),
        "dropout left on": own(dropout=0.1),
        "an output of its own": Untied,
        "probabilities": Probabilities,
        "another name": OthersNames,
        "two heads": lambda V, d, layers, heads, T, **parts: OwnGPT(V, d, layers, 2, T, **parts),
        "two blocks": lambda V, d, layers, heads, T, **parts: OwnGPT(
            V, d, min(layers, 2), heads, T, **parts
        ),
        "nothing passed on": lambda *sizes, **parts: GPT(*sizes),
    },
}

HINTS = {
    "gpt_tied_gradient": {"the table's transpose": "The result is (V, d)"},
    "gpt_is_causal": {"ids changed": "change a copy"},
    "gpt_assembled": {"one block, shared": "how many different blocks"},
}
