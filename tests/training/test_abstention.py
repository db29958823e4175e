"""The best answerer, against every policy that there is; and scores, against every text."""

from itertools import product

import numpy as np
import pytest

from tinytorch import GPT, Tensor
from tinytorch.training.abstention import answer_probs, best_score


@pytest.mark.parametrize("penalty", [0, 0.25, 1, 3])
def test_no_policy_expects_more_than_the_best_score(penalty):
    rng = np.random.default_rng(0)
    beliefs = rng.dirichlet(np.full(4, 0.5), size=3)  # three questions with four answers each
    values = np.c_[beliefs - penalty * (1 - beliefs), np.zeros(3)]  # the last is "I do not know"
    every = [values[range(3), choice].mean() for choice in product(range(5), repeat=3)]
    assert max(every) == pytest.approx(best_score(beliefs, penalty).mean())


def test_the_probabilities_of_all_texts_sum_to_one():
    model = GPT(vocab_size=3, embed_dim=8, num_layers=1, num_heads=2, max_seq_len=4, rng=0)
    texts = np.array(list(product(range(3), repeat=2)))  # all of two tokens, after token 1
    inputs = np.c_[np.ones(9, int), texts][:, :-1]
    probs = answer_probs(model(inputs), texts, ignored=-100).data
    assert probs.sum() == pytest.approx(1, abs=1e-6) and (probs < 1).all()
    first = answer_probs(model(inputs), np.c_[texts[:, 0], np.full(9, -100)], ignored=-100).data
    assert first[:3] == pytest.approx(np.full(3, probs[:3].sum()), abs=1e-6)


def test_the_gradient_of_a_score_is_exact():
    logits = np.random.default_rng(2).normal(size=(2, 3, 5))
    targets = np.array([[-100, 1, 2], [4, 0, -100]])

    def score(array):
        return answer_probs(Tensor(array, requires_grad=True, dtype=np.float64), targets, -100)

    x = Tensor(logits, requires_grad=True, dtype=np.float64)
    answer_probs(x, targets, -100).sum().backward()
    for at in [(0, 1, 1), (0, 2, 0), (1, 0, 4), (1, 1, 3), (0, 0, 0), (1, 2, 1)]:
        step = np.zeros_like(logits)
        step[at] = 1e-5
        slope = (score(logits + step).sum().item() - score(logits - step).sum().item()) / 2e-5
        assert x.grad[at] == pytest.approx(slope, abs=1e-8)
