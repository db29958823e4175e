"""A Llama in the reader's parts: the solutions of the book, wrong ones, and ones that fail."""

import shutil

import numpy as np
import pytest
from solutions import solve

from tinytorch import no_grad
from tinytorch.models.llama import stream_answer
from tinytorch_book.exercises.capstone.parts import PUBLISHED_PARTS, Part, forget_part, kept_parts
from tinytorch_book.exercises.capstone.published_parts import in_parts, small_llama

pytestmark = pytest.mark.slow  # it solves the exercises
ASKED = [{"role": "user", "content": "the low dog?"}]
WRONG = {
    "encode": "def wrong(piece, ranks):\n    return [ranks[bytes([byte])] for byte in piece]\n",
    "RMS norm": "def wrong(x, *, eps):\n    return x\n",
    "rotation": "def wrong(x, positions):\n    return x\n",
    "attention": "def wrong(q, k, v, mask):\n    return v\n",
    "cached step": "def wrong(q, k, v, keys, values):\n    return v, keys, values\n",
    "gate": "def wrong(x):\n    return x.clip(0)\n",
    "block": "def wrong(x, norm1, attend, norm2, mlp, pre_norm):\n    return x + mlp(norm2(x))\n",
    "draw": "def wrong(probs, u):\n    return probs.argmin(axis=1)\n",
}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """What is kept when all exercises are solved that build a part of the published model."""
    with pytest.MonkeyPatch.context() as patch:
        path = tmp_path_factory.mktemp("reader") / "my_parts.py"
        patch.setenv("TINYTORCH_PARTS", str(path))
        reports, _ = solve(path, PUBLISHED_PARTS)
    assert [name for name, report in reports.items() if not report.kept.startswith("kept")] == []
    gate, draw = (reports[name].kept for name in ("gate", "draw"))
    assert " of 8 for the published model)" in gate and "your GPT" not in gate
    assert " of 22 for your GPT, " in draw and " of 8 for the published model)" in draw
    return str(path)


@pytest.fixture(scope="module")
def solved(path):
    return kept_parts(path, PUBLISHED_PARTS)


@pytest.mark.parametrize("which", ["all", "none", "some"])
def test_the_model_is_the_same_in_the_parts_of_a_reader(which, solved):
    parts = {"all": solved, "none": {}, "some": dict(list(solved.items())[::2])}[which]
    model, tokenizer = small_llama()
    made = in_parts(model, tokenizer, parts)
    assert made.reasons == {} and made.yours == tuple(parts)
    mine = f"{len(parts)} of the published model's 8 parts are yours"
    assert repr(made).splitlines()[0] == mine
    ids = tokenizer.encode("the lower dog saw the lowest")
    assert made.tokenizer.encode("the lower dog saw the lowest") == ids
    with no_grad():
        assert np.allclose(made.logits(ids), model([ids]).data[0], atol=1e-4)
    right = "".join(stream_answer(model, tokenizer, ASKED, None, 12, temperature=0))
    assert made.answer(ASKED, most=12) == right


def test_every_exercise_of_a_part_can_be_solved_and_is_kept(solved):
    assert list(solved) == list(PUBLISHED_PARTS) == list(WRONG)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_part_is_left_out_and_the_reason_given(name, solved):
    made = in_parts(*small_llama(), {**solved, name: Part(name, "wrong", WRONG[name])})
    assert list(made.reasons) == [name] and name not in made.yours
    assert f"\n  [ ] yours is left out, {name}: it changes the model's " in repr(made)


def test_a_part_that_fails_is_left_out_with_its_error():
    broken = Part("gate", "broken", "def broken(x):\n    return 1 / 0\n")
    made = in_parts(*small_llama(), {"gate": broken})
    assert made.reasons == {"gate": "it fails (ZeroDivisionError: division by zero)"}


def test_parts_of_the_published_model_stand_beside_those_of_the_file(path, tmp_path):
    copied = shutil.copy(path, tmp_path)
    assert set(kept_parts(copied)) == {"encode", "attention", "block", "draw"}
    forget_part("gate", copied)
    assert set(kept_parts(copied, PUBLISHED_PARTS)) == set(PUBLISHED_PARTS) - {"gate"}
