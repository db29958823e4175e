"""GPT: causal, sensitive, differentiable in every parameter, counted and initialised by hand."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from own_parts import MINE
from tiny_models import message, stirred, tiny_gpt

from tinytorch import GPT, Module, Parameter, causal_mask, functional, no_grad
from tinytorch.core.quantization import quantize
from tinytorch.models.transformer import GPT2_SHAPES

IDS = np.array([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])
POSITIONS = ["learned", "sinusoidal", "rotary", "alibi", None]
KINDS = [
    *({"pos_encoding": kind} for kind in POSITIONS),
    {"pre_norm": False},
    {"tie_weights": False},
    {"pos_encoding": "rotary", "pre_norm": False, "tie_weights": False},
]


def loss_of(model, ids=IDS):
    """Next-token cross-entropy."""
    logits = model(ids[:, :-1])
    return functional.cross_entropy(logits, ids[:, 1:])


# What it computes --------------------------------------------------------------------------------


def test_logits_are_the_blocks_between_two_uses_of_one_table():
    model = stirred(tiny_gpt())
    table = model.token_embedding.weight
    x = table[IDS] + model.position_embedding.position_embeddings[:5]
    for block in model.blocks:
        x = block(x, mask=causal_mask(5))
    np.testing.assert_allclose(model(IDS).data, (model.ln_f(x) @ table.T).data, rtol=1e-12)


def test_nothing_normalises_the_last_norm_of_a_post_norm_model():
    model, ids = stirred(tiny_gpt(pre_norm=False, num_layers=1)), IDS[:, :1]
    x = model.token_embedding(ids) + model.position_embedding.position_embeddings[:1]
    expected = model.blocks[0](x) @ model.token_embedding.weight.T
    np.testing.assert_allclose(model(ids).data, expected.data, rtol=1e-12)


def test_untied_model_has_an_output_layer_of_its_own_without_bias():
    model = stirred(tiny_gpt(tie_weights=False))
    assert "lm_head.weight" in model.state_dict() and "lm_head.bias" not in model.state_dict()
    before = model(IDS).data
    model.lm_head.weight.data *= 2
    np.testing.assert_allclose(model(IDS).data, 2 * before, rtol=1e-12)


def test_tied_table_is_one_parameter_with_the_gradient_of_both_uses():
    tied, untied = stirred(tiny_gpt()), stirred(tiny_gpt(tie_weights=False))
    assert tied.lm_head is None
    state = tied.state_dict()
    untied.load_state_dict({**state, "lm_head.weight": state["token_embedding.weight"].T})
    np.testing.assert_allclose(tied(IDS).data, untied(IDS).data, rtol=1e-12)
    for model in (tied, untied):
        loss_of(model).backward()
    both = untied.token_embedding.weight.grad + untied.lm_head.weight.grad.T
    np.testing.assert_allclose(tied.token_embedding.weight.grad, both, rtol=1e-10, atol=1e-14)


# Causality and sensitivity -----------------------------------------------------------------------


@pytest.mark.parametrize("options", KINDS)
def test_later_token_does_not_change_earlier_logits(options):
    model = stirred(tiny_gpt(**options))
    changed = IDS.copy()
    changed[:, 3] = [7, 8]  # another row of the table: no shift that a norm would take out
    before, after = model(IDS).data, model(changed).data
    np.testing.assert_allclose(after[:, :3], before[:, :3], rtol=0, atol=1e-13)
    assert (np.abs(after[:, 3:] - before[:, 3:]).max(axis=-1) > 1e-3).all()


@pytest.mark.parametrize("kind", ["learned", "sinusoidal", "rotary", "alibi"])
def test_order_of_earlier_tokens_matters_with_positions(kind):
    swapped = IDS[:, [1, 0, 2, 3, 4]]
    one_layer = stirred(tiny_gpt(num_layers=1, pos_encoding=kind))
    assert np.abs(one_layer(swapped).data[:, -1] - one_layer(IDS).data[:, -1]).max() > 1e-3
    blind = stirred(tiny_gpt(num_layers=1, pos_encoding=None))
    np.testing.assert_allclose(
        blind(swapped).data[:, -1], blind(IDS).data[:, -1], rtol=1e-10, atol=1e-12
    )


# Gradients ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", KINDS)
def test_gradient_of_every_parameter_matches_finite_differences(options):
    """Along a random direction: one number for each parameter, to which all its elements add."""
    model = stirred(tiny_gpt(embed_dim=8, **options))
    loss_of(model).backward()
    rng, step = np.random.default_rng(3), 1e-5
    for name, p in model.named_parameters():
        direction = rng.normal(size=p.shape)
        direction /= np.linalg.norm(direction)
        start, values = p.data.copy(), []
        for sign in (1, -1):
            p.data[...] = start + sign * step * direction
            values.append(loss_of(model).item())
        p.data[...] = start
        numeric = (values[0] - values[1]) / (2 * step)
        # a loss of about 3 has 2e-16 * 3 / 2e-5 = 3e-11 of rounding; the rest is step squared
        assert (p.grad * direction).sum() == pytest.approx(numeric, rel=1e-6, abs=2e-9), name
        if not name.endswith("k_proj.bias"):  # a number for all scores of a query moves nothing
            assert np.abs(p.grad).max() > 1e-5, name


# Dropout -----------------------------------------------------------------------------------------


def test_dropout_applies_only_in_training():
    model = tiny_gpt(dropout=0.5)
    assert np.abs(model(IDS).data - model(IDS).data).max() > 1e-3
    model.eval()
    sure = model(IDS).data
    np.testing.assert_array_equal(model(IDS).data, sure)
    without = tiny_gpt()
    np.testing.assert_array_equal(without(IDS).data, sure)


# Numbers of parameters ---------------------------------------------------------------------------


def parameters_of(vocab_size, embed_dim, num_layers, max_seq_len, tied=True, learned=True):
    """The sum that can be done by hand: tables, 12 d^2 + 13 d a block, the last norm."""
    tables = vocab_size * (1 if tied else 2) + (max_seq_len if learned else 0)
    return tables * embed_dim + num_layers * (12 * embed_dim**2 + 13 * embed_dim) + 2 * embed_dim


@given(
    vocab=st.integers(1, 9),
    heads=st.integers(1, 3),
    layers=st.integers(1, 3),
    length=st.integers(1, 9),
    tied=st.booleans(),
    kind=st.sampled_from(POSITIONS),
)
def test_number_of_parameters_matches_the_formula(vocab, heads, layers, length, tied, kind):
    d = 4 * heads
    model = GPT(vocab, d, layers, heads, length, tie_weights=tied, pos_encoding=kind)
    count = model.num_parameters()
    assert count["total"] == sum(p.size for p in model.parameters())
    assert count["total"] == parameters_of(vocab, d, layers, length, tied, kind == "learned")
    assert quantize(model).num_parameters() == count


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("gpt2-small", 124_439_808),
        ("gpt2-medium", 354_823_168),
        ("gpt2-large", 774_030_080),
        ("gpt2-xl", 1_557_611_200),
    ],
)
def test_presets_have_the_published_numbers_of_parameters(name, count):
    shape = GPT2_SHAPES[name]
    assert parameters_of(50257, shape["embed_dim"], shape["num_layers"], 1024) == count
    assert shape["embed_dim"] == 64 * shape["num_heads"]


def test_preset_sets_the_shape_and_accepts_options():
    small = {"vocab_size": 5, "num_layers": 1, "max_seq_len": 4}
    model = GPT.preset("gpt2-small", **small, rng=0)
    assert model.blocks[0].attention.num_heads == 12 and model.embed_dim == 768
    assert model.num_parameters()["total"] == parameters_of(5, 768, 1, 4)


def test_preset_of_a_subclass_is_one_with_the_vocabulary_of_gpt2():
    class Sized(GPT):
        def __init__(self, **options):
            self.vocab_size = options["vocab_size"]

    assert Sized.preset("gpt2-small").vocab_size == 50257


def test_parts_are_counted_by_name():
    model = GPT(65, 64, 2, 4, max_seq_len=32, tie_weights=False)
    assert model.num_parameters() == {
        "token_embedding": 65 * 64,
        "position_embedding": 32 * 64,
        "attention": 33_280,
        "mlp": 66_176,
        "norms": 2 * 256 + 128,
        "lm_head": 64 * 65,
        "total": 2 * 65 * 64 + 32 * 64 + 99_968 + 128,
    }
    model.blocks[0].scale = Parameter(np.ones(3))
    assert (count := model.num_parameters())["other"] == 3 and count["norms"] == 2 * 256 + 128


# How it begins -----------------------------------------------------------------------------------


def test_initial_weights_follow_gpt2():
    model = GPT(300, 128, 8, 4, max_seq_len=64, tie_weights=False, rng=0)
    for name, p in model.named_parameters():
        if p.ndim == 1:
            assert (p.data == (1 if name.endswith("gamma") else 0)).all(), name
            continue
        smaller = name.endswith(("out_proj.weight", "linear2.weight"))
        deviation = 0.02 / 4 if smaller else 0.02  # sqrt(2 * 8 layers) = 4
        n = p.size
        assert p.data.std() == pytest.approx(deviation, rel=4 / (2 * n) ** 0.5), name
        assert abs(p.data.mean()) < 4 * deviation / n**0.5, name
        fourth = ((p.data / p.data.std()) ** 4).mean()  # 3 for a normal, 1.8 for a uniform
        assert fourth == pytest.approx(3, abs=5 * (24 / n) ** 0.5), name


def test_matrices_of_a_replacement_start_as_ours_and_the_rest_as_it_made_them():
    class Own(Module):
        def __init__(self, *sizes):
            self.matrix, self.vector = Parameter(np.ones((50, 50))), Parameter(np.full(3, 7.0))

    part = tiny_gpt(mlp=Own, init_std=0.5).blocks[0].mlp
    assert part.matrix.data.std() == pytest.approx(0.5, rel=0.1) and (part.vector.data == 7).all()


# Parts, names, saving ----------------------------------------------------------------------------


@pytest.mark.parametrize("options", [*KINDS, {"dropout": 0.5}, *({p: MINE[p]} for p in MINE), MINE])
def test_every_model_can_be_pickled_and_copied(options):
    model = stirred(tiny_gpt(**options)).eval()
    expected, parts = model(IDS).data, len(model.parameters())
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(twin(IDS).data, expected)
        texts = [m.generate(IDS, 20, rng=0).data for m in (model, twin)]
        np.testing.assert_array_equal(*texts)
        for p in twin.parameters():
            p.data = np.zeros_like(p.data)
        assert len(twin.parameters()) == parts
    np.testing.assert_array_equal(model(IDS).data, expected)


# Randomness --------------------------------------------------------------------------------------


def test_initial_weights_of_a_seed_never_change():
    weights = GPT(5, 8, 1, 2, 4, rng=5).state_dict()
    expected = np.random.default_rng(5).normal(0.0, 0.02, size=(5, 8))
    np.testing.assert_array_equal(weights["token_embedding.weight"], expected.astype(np.float32))


# Bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "fails", "said"),
    [
        (ValueError, lambda: tiny_gpt()(np.zeros((0, 3), dtype=int)), "(batch, seq) or (seq,), no"),
        (ValueError, lambda: tiny_gpt()(np.zeros((1, 2, 3), dtype=int)), "got shape (1, 2, 3)"),
        (ValueError, lambda: tiny_gpt()([[1, 2], [3]]), "GPT: the texts of a batch must be"),
        (IndexError, lambda: tiny_gpt()([[0, 11]]), "token id 11 at (0, 1) is outside 0..10; was"),
        (TypeError, lambda: tiny_gpt()([[0.0, 1.0]]), "token ids must be integers, got float64; c"),
        (ValueError, lambda: tiny_gpt(pos_encoding="absolute"), "'rotary', 'alibi' or None, got"),
        (ValueError, lambda: GPT.preset("gpt3"), "no preset 'gpt3'; the presets are gpt2-small,"),
        (ValueError, lambda: tiny_gpt(num_layers=0), "num_layers must be at least 1, got 0"),
        (ValueError, lambda: tiny_gpt(embed_dim=6, pos_encoding="rotary"), "head_dim must be even"),
        (ValueError, lambda: tiny_gpt(rotary_base=100.0), "rotary_base=100.0 goes with "
         "pos_encoding='rotary', got 'learned'"),
        (ValueError, lambda: tiny_gpt(pos_encoding="rotary", rotary_base=0), "above 0, got 0"),
        (ValueError, lambda: tiny_gpt(dropout=1.0), "Dropout: p must be in 0 <= p < 1, got 1.0"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_the_reason(error, fails, said):
    assert said in message(error, fails)


def test_text_beyond_max_seq_len_is_refused_for_every_position_kind():
    for kind in POSITIONS:
        model = tiny_gpt(pos_encoding=kind)
        with no_grad():
            assert model(np.zeros((1, 16), dtype=int)).shape == (1, 16, 11)
        assert message(ValueError, lambda model=model: model(np.zeros((1, 17), dtype=int))) == (
            "length 17 exceeds max_seq_len 16; crop ids[:, -16:]"
        )


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"vocab_size": "11"}, TypeError, "vocab_size must be an integer, got '11'"),
        ({"embed_dim": 8.0}, TypeError, "embed_dim must be an integer, got 8.0"),
        ({"embed_dim": 0}, ValueError, "embed_dim must be at least 1, got 0"),
        ({"num_heads": None}, TypeError, "num_heads must be an integer, got None"),
        ({"max_seq_len": True}, TypeError, "max_seq_len must be an integer, got True"),
        ({"init_std": "0.02"}, TypeError, "init_std must be a number, got '0.02'"),
        ({"init_std": -1}, ValueError, "init_std must be >= 0, got -1"),
        ({"dropout": None}, TypeError, "Dropout: p must be a number, got None"),
        ({"tie_weights": "no"}, TypeError, "tie_weights must be True or False, got 'no'"),
        ({"pre_norm": "no"}, TypeError, "pre_norm must be True or False, got 'no'"),
        ({"norm": None}, TypeError, "norm must be a class or a function that makes it, got None"),
        ({"mlp": 4}, TypeError, "mlp must be a class or a function that makes it, got 4"),
        ({"rotary_base": "1"}, TypeError, "rotary_base must be a number, got '1'"),
        ({"rng": "0"}, TypeError, "rng must be a numpy Generator, a seed or None, got str; "
         "make one with numpy.random.default_rng(seed)"),
    ],
)  # fmt: skip
def test_arguments_of_the_wrong_type_are_refused_by_name(options, error, said):
    assert message(error, lambda: tiny_gpt(**options)) == said
