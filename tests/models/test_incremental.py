"""Which models read piece by piece, and that they read the same either way."""

from functools import wraps

import numpy as np
import pytest
from own_parts import MINE, MyAttention
from tiny_models import LLAMA, assert_both_forms_agree, stirred, tiny_gpt

from tinytorch import (
    GPT,
    Embedding,
    Linear,
    Module,
    MultiHeadAttention,
    PositionalEncoding,
    TransformerBlock,
)
from tinytorch.core.incremental import incremental, is_incremental
from tinytorch.core.positions import Rotary
from tinytorch.models.transformer import PostNormBlock

# The mark ----------------------------------------------------------------------------------------


def test_mark_is_not_inherited_by_an_overriding_forward():
    class Marked(Module):
        @incremental
        def forward(self, x, start=0):
            return x + start

    class Kept(Marked):
        pass

    class Replaced(Marked):
        def forward(self, x):
            return x

    assert [is_incremental(kind()) for kind in (Marked, Kept, Replaced)] == [True, True, False]
    patched = Marked()
    patched.forward = lambda x: x
    assert not is_incremental(patched)


def test_functions_and_callable_objects_carry_the_mark_too():
    assert is_incremental(incremental(lambda x, start=0: x))
    assert is_incremental(Rotary(4, 2))
    for part in (lambda x, start=0: x, len, None, 3, object()):
        assert not is_incremental(part)


def test_parts_of_the_package_are_marked_as_incremental():
    model = tiny_gpt()
    marked = [model, model.position_embedding, *model.blocks, model.blocks[0].attention]
    assert all(map(is_incremental, [*marked, PostNormBlock(8, 2)]))
    assert not any(map(is_incremental, [model.ln_f, model.blocks[0].mlp, model.dropout]))


def test_wrapped_forward_keeps_its_mark():
    model = tiny_gpt()
    forward = model.forward

    @wraps(forward)
    def doubled(*args, **options):
        return forward(*args, **options) * 2

    model.forward = doubled
    assert model.new_cache() is not None
    assert_both_forms_agree(stirred(model))


# Models with a cache -----------------------------------------------------------------------------


class Doubled(Linear):
    def forward(self, x):
        return super().forward(x) * 2


class DoubledTable(Embedding):
    def forward(self, ids):
        return super().forward(ids) * 2


class Views(Embedding):
    """A table that returns a row itself, not a copy, where it is asked for one."""

    def forward(self, ids):
        row, shape = np.ravel(ids)[0], np.shape(ids)
        whole = super().forward(ids)
        return self.weight[row : row + 1].reshape(*shape, -1) if np.size(ids) == 1 else whole


class DoubledPositions(PositionalEncoding):
    @incremental
    def forward(self, x, start=0):
        return super().forward(x, start) * 2


class Negated(Module):
    def forward(self, x):
        return x * -2


class NegatedAttention(MultiHeadAttention):
    @incremental
    def forward(self, query, key=None, value=None, mask=None, cache=None):
        return -super().forward(query, key, value, mask, cache)


class NegatedBlock(TransformerBlock):
    @incremental
    def forward(self, x, mask=None, **cache):
        return -super().forward(x, mask, **cache)


class Colder(GPT):
    @incremental
    def forward(self, tokens, cache=None, *, last_only=False):
        return super().forward(tokens, cache, last_only=last_only) * -1


def replaced(path, make, **options):
    """A plain model with one part replaced."""
    model = tiny_gpt(**options)
    *parents, name = path.split(".")
    part = model
    for parent in parents:
        part = part[int(parent)] if parent.isdigit() else getattr(part, parent)
    if name.isdigit():
        part[int(name)] = make(part[int(name)])
    else:
        setattr(part, name, make(getattr(part, name)))
    return model


def patched(part):
    """The same part, with a `forward` of its own, which has promised nothing."""
    forward = part.forward
    part.forward = lambda *args, **kwargs: forward(*args, **kwargs) * -1
    return part


CACHED = {
    "own model": lambda: Colder(11, 8, 2, 2, 16, rng=0),
    "own table of views": lambda: replaced(
        "token_embedding", lambda old: Views(11, 8), pos_encoding=None
    ),
    "own table": lambda: replaced("token_embedding", lambda old: DoubledTable(11, 8)),
    "own attention": lambda: tiny_gpt(attention=NegatedAttention),
    "own block": lambda: replaced("blocks.1", lambda old: NegatedBlock(8, 2)),
    "own positions": lambda: replaced("position_embedding", lambda old: DoubledPositions(16, 8)),
    **{
        f"own {path}{kind}": lambda path=path, options=options: replaced(
            path, lambda old: Negated(), **options
        )
        for path in ("dropout", "blocks.0.dropout", "blocks.1.mlp.dropout")
        for kind, options in (("", {}), (", llama, post-norm", {**LLAMA, "pre_norm": False}))
    },
    "other heads": lambda: replaced("blocks.1.attention", lambda old: MultiHeadAttention(8, 4)),
    "output layer with a bias": lambda: replaced(
        "lm_head", lambda old: Linear(8, 11, rng=0), tie_weights=False
    ),
    "own output layer": lambda: replaced(
        "lm_head", lambda old: Doubled(8, 11, bias=False), tie_weights=False
    ),
    **{
        f"patched {path}": lambda path=path: replaced(path, patched)
        for path in ("ln_f", "token_embedding", "blocks.0.mlp.linear1")
    },
}


@pytest.mark.parametrize("kind", CACHED)
def test_logits_of_a_model_with_custom_parts_are_those_without_a_cache(kind):
    model = stirred(CACHED[kind]())
    assert model.new_cache() is not None
    assert_both_forms_agree(model)


# Models without ----------------------------------------------------------------------------------


class Unmarked(MultiHeadAttention):
    """Takes a cache and says so in its signature alone."""

    def forward(self, query, key=None, value=None, mask=None, cache=None):
        return super().forward(query, key, value, mask, cache)


class UnmarkedBlock(TransformerBlock):
    def forward(self, x, mask=None):
        return super().forward(x, mask=mask)


class UnmarkedModel(GPT):
    def forward(self, tokens):
        return super().forward(tokens)


class UnmarkedPositions(PositionalEncoding):
    def forward(self, x):
        return super().forward(x)


def backwards(x):
    return x[..., ::-1] + x[..., :1]


def with_rotation(rotate):
    model = tiny_gpt(pos_encoding=None)
    for block in model.blocks:
        block.attention.rotate = rotate
    return model


UNCACHED = {
    "attention": lambda: tiny_gpt(attention=MyAttention),
    "all parts": lambda: tiny_gpt(**MINE),
    "attention that has promised nothing": lambda: tiny_gpt(attention=Unmarked),
    "one attention of two": lambda: replaced(
        "blocks.1.attention", lambda old: MyAttention(8, 2, 0)
    ),
    "rotation": lambda: with_rotation(backwards),
    "block": lambda: replaced("blocks.1", lambda old: UnmarkedBlock(8, 2)),
    "positions": lambda: replaced("position_embedding", lambda old: UnmarkedPositions(16, 8)),
    "model": lambda: UnmarkedModel(11, 8, 2, 2, 16, rng=0),
    "patched attention": lambda: replaced("blocks.1.attention", patched),
    "patched block": lambda: replaced("blocks.1", patched),
    "patched model": lambda: patched(tiny_gpt()),
}


@pytest.mark.parametrize("kind", UNCACHED)
def test_model_with_a_non_incremental_part_runs_without_a_cache(kind):
    model = stirred(UNCACHED[kind]())
    assert model.new_cache() is None
    assert_both_forms_agree(model)
