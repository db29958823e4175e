"""The decoder: the model's own logits, wherever it is allowed to stand in for the model."""

import numpy as np
import pytest
from own_parts import MINE, MyNorm
from tiny_models import message, normal, stirred, tiny_gpt

from tinytorch import (
    GPT,
    Embedding,
    Linear,
    Module,
    MultiHeadAttention,
    PositionalEncoding,
    TransformerBlock,
    no_grad,
)
from tinytorch.models.decoding import Decoder
from tinytorch.models.kv_cache import KVCache

IDS = np.random.default_rng(0).integers(0, 11, size=(3, 16))
KINDS = [
    {"pos_encoding": kind, "tie_weights": tied}
    for kind in ("learned", "sinusoidal", None)
    for tied in (True, False)
]
SIZES = [{"num_heads": 1}, {"num_heads": 4}, {"num_layers": 1}, {"embed_dim": 12, "num_heads": 3}]


def primed(model, ids):
    """A cache that has read `ids`."""
    cache = KVCache(len(model.blocks), model.max_seq_len)
    with no_grad():
        model(ids, cache=cache)
    return cache


def last_logits(model, cache, ids):
    with no_grad():
        return model(ids[:, None], cache=cache).data[:, -1]


# The same numbers --------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [*KINDS, *SIZES])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("prompt", [1, 7])
def test_logits_of_every_token_of_a_window_are_those_of_the_model(options, batch, prompt):
    model, ids = stirred(tiny_gpt(**options)), IDS[:batch]
    cache, again = primed(model, ids[:, :prompt]), primed(model, ids[:, :prompt])
    decoder = model.decoder(cache)
    for at in range(prompt, 16):
        found, expected = decoder.read(ids[:, at]), last_logits(model, again, ids[:, at])
        assert found.shape == (batch, 11) and found.dtype == np.float64
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        assert cache.length == again.length == at + 1
    for own, other in zip(cache.arrays, again.arrays, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-12, atol=1e-12)


def test_float32_model_is_decoded_in_float32():
    model = tiny_gpt(init_std=0.3)
    cache, again = primed(model, IDS[:, :4]), primed(model, IDS[:, :4])
    found = model.decoder(cache).read(IDS[:, 4])
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, last_logits(model, again, IDS[:, 4]), rtol=1e-4, atol=1e-5)


def test_model_and_decoder_may_read_in_turns():
    model = stirred(tiny_gpt())
    cache = primed(model, IDS[:, :2])
    decoder = model.decoder(cache)
    for at in range(2, 16):
        step = last_logits(model, cache, IDS[:, at]) if at % 3 else decoder.read(IDS[:, at])
        np.testing.assert_allclose(step, model(IDS[:, : at + 1]).data[:, -1], rtol=1e-12)


def test_eps_of_every_norm_is_its_own():
    model = stirred(tiny_gpt())
    norms = [model.ln_f, *(norm for block in model.blocks for norm in (block.ln1, block.ln2))]
    for i, norm in enumerate(norms):
        norm.eps = 0.5 * (i + 1)
    cache, again = primed(model, IDS[:, :4]), primed(model, IDS[:, :4])
    found, expected = (model.decoder(cache).read(IDS[:, 4]), last_logits(model, again, IDS[:, 4]))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_scores_too_large_for_exp_are_no_trouble():
    model = stirred(tiny_gpt())
    for block in model.blocks:
        block.attention.q_proj.weight.data *= 1e4
    cache, again = primed(model, IDS[:, :4]), primed(model, IDS[:, :4])
    found = model.decoder(cache).read(IDS[:, 4])
    np.testing.assert_allclose(found, last_logits(model, again, IDS[:, 4]), rtol=1e-9)


def test_decoding_changes_no_weight_and_no_logits_that_were_given_before():
    model = stirred(tiny_gpt())
    for p in model.parameters():
        p.data.flags.writeable = False  # writing into one would raise
    cache = primed(model, IDS[:, :4])
    decoder = model.decoder(cache)
    first = decoder.read(IDS[:, 4])
    kept = first.copy()
    second = decoder.read(IDS[:, 5])
    np.testing.assert_array_equal(first, kept)
    assert np.abs(first - second).max() > 1e-3 and not np.shares_memory(first, second)


def test_token_beyond_the_window_is_refused_and_nothing_is_counted():
    model = tiny_gpt()
    cache = primed(model, IDS)
    said = message(ValueError, lambda: model.decoder(cache).read(IDS[:, 0]))
    expected = message(ValueError, lambda: last_logits(model, cache, IDS[:, 0]))
    assert said == expected and cache.length == 16


# Writing -----------------------------------------------------------------------------------------


@pytest.fixture
def tokens_decoded(monkeypatch):
    """How many tokens the decoder reads."""
    read, counted = Decoder.read, []
    monkeypatch.setattr(Decoder, "read", lambda self, ids: counted.append(1) or read(self, ids))
    return counted


@pytest.mark.parametrize("options", KINDS)
@pytest.mark.parametrize("temperature", [0, 1.0])
def test_text_through_sliding_windows_is_that_without_a_cache(options, temperature, tokens_decoded):
    model = stirred(tiny_gpt(**options))
    texts = [
        model.generate(IDS[:, :3], 40, temperature=temperature, rng=4, use_cache=cached).data
        for cached in (True, False)
    ]
    np.testing.assert_array_equal(*texts)
    # 40 reads; the prompt, and what is left at every slide by 8, is read by the model
    assert len(tokens_decoded) == 40 - 1 - 4


def test_weights_changed_between_two_texts_are_seen():
    model = stirred(tiny_gpt())
    model.generate(IDS[:, :3], 10, temperature=0)
    for p in model.parameters():
        p.data = p.data + normal(*p.shape, seed=3)  # another array
        p.data *= 0.7  # and the same one changed
    texts = [model.generate(IDS[:, :3], 10, temperature=0, use_cache=c).data for c in (True, False)]
    np.testing.assert_array_equal(*texts)


def test_model_in_training_is_decoded_without_dropout_and_stays_in_training():
    model, sure = (stirred(tiny_gpt(dropout=share)) for share in (0.5, 0.0))
    texts = [m.generate(IDS[:, :3], 10, temperature=0).data for m in (model, sure)]
    np.testing.assert_array_equal(*texts)
    assert model.training and model.blocks[0].mlp.dropout.training


# Where it must not stand in ----------------------------------------------------------------------


class Doubled(Linear):
    def forward(self, x):
        return super().forward(x) * 2


class DoubledTable(Embedding):
    def forward(self, ids):
        return super().forward(ids) * 2


class Turned(MultiHeadAttention):
    def forward(self, query, key=None, value=None, mask=None, cache=None):
        return -super().forward(query, key, value, mask, cache)


class TurnedBlock(TransformerBlock):
    def forward(self, x, mask=None, cache=None):
        return -super().forward(x, mask, cache)


class Cooler(GPT):
    def forward(self, tokens, cache=None, *, last_only=False):
        return super().forward(tokens, cache, last_only=last_only) * -1


def replaced(path, make):
    """A plain model with one part replaced."""
    model = tiny_gpt()
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
    """The same part, with a `forward` of its own."""
    forward = part.forward
    part.forward = lambda *args, **kwargs: forward(*args, **kwargs) * -1
    return part


def whole_model_patched():
    model = tiny_gpt()
    forward = model.forward

    def turned(tokens, cache=None, *, last_only=False):
        return forward(tokens, cache, last_only=last_only) * -1

    model.forward = turned
    return model


LINEARS = [
    *(f"blocks.1.attention.{name}_proj" for name in ("q", "k", "v", "out")),
    *(f"blocks.1.mlp.linear{i}" for i in (1, 2)),
]
OTHERS = {
    "rotary": lambda: tiny_gpt(pos_encoding="rotary"),
    "alibi": lambda: tiny_gpt(pos_encoding="alibi"),
    "post-norm": lambda: tiny_gpt(pre_norm=False),
    **{f"own {part}": lambda part=part: tiny_gpt(**{part: MINE[part]}) for part in MINE},
    "own last norm": lambda: replaced("ln_f", lambda old: MyNorm(8)),
    "own first norm": lambda: replaced("blocks.1.ln1", lambda old: MyNorm(8)),
    "own second norm": lambda: replaced("blocks.1.ln2", lambda old: MyNorm(8)),
    "own model": lambda: Cooler(11, 8, 2, 2, 16, rng=0),
    "own table": lambda: replaced("token_embedding", lambda old: DoubledTable(11, 8)),
    "own kind of attention": lambda: tiny_gpt(attention=Turned),
    "own block": lambda: replaced("blocks.1", lambda old: TurnedBlock(8, 2)),
    **{
        f"own {path}": lambda path=path: replaced(path, lambda old: Doubled(*old.weight.shape))
        for path in LINEARS
    },
    **{
        f"{path} without a bias": lambda path=path: replaced(
            path, lambda old: Linear(*old.weight.shape, bias=False)
        )
        for path in LINEARS
    },
    **{
        f"patched {path}": lambda path=path: replaced(path, patched)
        for path in ("ln_f", "token_embedding", "blocks.1.attention", "blocks.0.mlp.linear1")
    },
    "patched model": whole_model_patched,
}


@pytest.mark.parametrize("options", [*KINDS, *SIZES])
def test_plain_model_has_a_decoder(options):
    model = tiny_gpt(**options)
    assert isinstance(model.decoder(KVCache(len(model.blocks), 16)), Decoder)


@pytest.mark.parametrize("kind", OTHERS)
def test_model_with_a_part_of_another_kind_has_none_and_writes_all_the_same(kind, tokens_decoded):
    model = stirred(OTHERS[kind]())
    assert model.decoder(KVCache(2, 16)) is None
    texts = [model.generate(IDS[:, :3], 20, temperature=0, use_cache=c).data for c in (True, False)]
    np.testing.assert_array_equal(*texts)
    assert texts[0].shape == (3, 23) and not tokens_decoded


def test_positions_of_another_kind_have_no_decoder():
    assert replaced("position_embedding", lambda old: object()).decoder(KVCache(2, 16)) is None
    same = replaced("position_embedding", lambda old: PositionalEncoding(16, 8))
    assert same.decoder(KVCache(2, 16)) is not None


# Parts that only look like ours ------------------------------------------------------------------


def same_text(model):
    """With and without a cache the model writes the same."""
    first, second = (
        model.generate([[1, 2, 3]], 8, temperature=0, use_cache=use).data for use in (True, False)
    )
    np.testing.assert_array_equal(first, second)


def test_an_output_layer_with_a_bias_is_read_with_it():
    model = tiny_gpt(tie_weights=False)
    model.lm_head = Linear(8, 11, rng=0)
    model.lm_head.bias.data[...] = np.arange(11) * 10.0
    same_text(stirred(model))


def test_a_replaced_output_layer_is_honoured():
    class Turned(Linear):
        def forward(self, x):
            return super().forward(x) * -1

    model = tiny_gpt(tie_weights=False)
    model.lm_head = Turned(8, 11, bias=False, rng=0)
    same_text(stirred(model))


def test_a_kind_of_position_table_is_honoured():
    class Doubled(PositionalEncoding):
        def forward(self, x, start=0):
            return super().forward(x, start) * 2

    model = tiny_gpt()
    model.position_embedding = Doubled(16, 8)
    same_text(stirred(model))


def test_a_replaced_dropout_is_honoured():
    class Turned(Module):
        def forward(self, x):
            return x * -2

    model = tiny_gpt()
    model.blocks[0].dropout = Turned()
    same_text(stirred(model))


def test_blocks_may_have_different_numbers_of_heads():
    model = tiny_gpt()
    model.blocks[1].attention = MultiHeadAttention(8, 4)
    same_text(stirred(model))
