"""New tokens change the forecast of the old ones by no more than their number allows."""

import numpy as np
import pytest

from tinytorch import GPT, functional
from tinytorch.models.new_tokens import add_tokens

SIZES = {"vocab_size": 11, "embed_dim": 8, "num_layers": 2, "num_heads": 2, "max_seq_len": 6}


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("count", [1, 4])
def test_the_surprise_rises_by_at_most_the_bound(tied, count):
    ids = np.random.default_rng(1).integers(0, 11, size=(3, 6))
    model = GPT(**SIZES, tie_weights=tied, init_std=1.0, rng=0)
    before = functional.log_softmax(model(ids)).data
    after = functional.log_softmax(add_tokens(model, count)(ids)).data
    rise = before - after[..., :11]  # of every old token
    assert after.shape[-1] == 11 + count and model.vocab_size == 11 + count
    assert model.trainable_parameters() == model.parameters()  # the new rows among them
    assert (rise > -1e-5).all() and (rise <= np.log(1 + count / 11) + 1e-5).all()
    assert rise == pytest.approx(np.broadcast_to(rise[..., :1], rise.shape), abs=1e-5)


def test_where_all_tokens_are_alike_the_bound_is_reached():
    model = GPT(**SIZES, rng=0)
    model.token_embedding.weight.data[:] = model.token_embedding.weight.data[0]
    after = functional.log_softmax(add_tokens(model, 4)([1, 2])).data
    assert after == pytest.approx(np.full((2, 15), -np.log(15)), abs=1e-5)
