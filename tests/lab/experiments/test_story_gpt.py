"""The model of the book, and the loss that no model can have: the entropy of its text."""

import math

import numpy as np
import pytest
from tiny_models import tiny_gpt

from tinytorch import Batches, CharTokenizer, CosineSchedule, Tensor, Trainer
from tinytorch.training.evaluation import character_surprise, evaluate, surprise
from tinytorch.training.weight_files import load_weights
from tinytorch_book.experiments.story_gpt import (
    STEPS,
    load_story_gpt,
    new_story_gpt,
    story_batches,
    story_gpt_run,
    story_tokenizer,
    story_windows,
)
from tinytorch_book.stories import StoryGrammar


def stories_of(grammar, seed, count):
    return [story for story, _ in zip(grammar.stories(seed), range(count), strict=False)]


@pytest.fixture(scope="module")
def grammar():
    return StoryGrammar()


@pytest.fixture(scope="module")
def tokenizer():
    return story_tokenizer()


@pytest.fixture(scope="module")
def held_out():
    return story_windows()


def test_the_command_writes_its_own_file(monkeypatch, tmp_path):
    from tinytorch_book.experiments import story_gpt

    def trained(steps):
        model = new_story_gpt(rng=steps)
        given = {"floor": 0.5, "progress": False}
        return Trainer(model, Batches(np.arange(300) % 512, 1, 8), **given)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(story_gpt, "train_story_gpt", trained)
    stored = story_gpt._FILE.read_bytes()
    assert story_gpt.main(["--steps", "60"]) == 0 and story_gpt.main(["--output=other"]) == 0
    assert story_gpt._FILE.read_bytes() == stored
    monkeypatch.setattr(story_gpt, "_FILE", tmp_path / "package" / "stored")
    assert story_gpt.main(["--steps", "70", "--in-package"]) == 0
    begun = {"story_gpt.safetensors": 60, "other": STEPS, "package/stored": 70}
    for name, seed in begun.items():
        other = new_story_gpt()
        assert load_weights(name, other, prefix="model.")["floor"] == "0.500000"
        (first, *_), (expected, *_) = other.parameters(), new_story_gpt(rng=seed).parameters()
        np.testing.assert_allclose(first.data, expected.data, atol=1e-3)


# Windows of stories ------------------------------------------------------------------------------


def test_every_window_begins_with_the_newline_before_a_story(tokenizer, grammar):
    inputs, targets, _, _ = story_windows(num_windows=5, seq_len=150, seed=3)
    stories = stories_of(grammar, 3, 10)
    for row in range(5):
        ids = tokenizer.encode("\n" + "".join(stories[row:]))
        assert inputs[row].tolist() == ids[:150]
        assert targets[row].tolist() == ids[1:151]


def test_tokenizer_is_small_and_restores_the_stories(tokenizer, grammar):
    text = grammar.generate(100, seed=13)
    assert tokenizer.vocab_size == 512 and story_tokenizer() is tokenizer
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert len(tokenizer.encode("\n")) == 1


def test_training_batches_begin_at_stories(tokenizer, grammar):
    inputs, targets = story_batches(batch_size=6, seq_len=40, num_stories=30, seed=4)[0]
    stories = stories_of(grammar, 4, 30)
    beginnings = {tuple(tokenizer.encode("\n" + story)[:40]) for story in stories}
    assert {tuple(row) for row in inputs.tolist()} <= beginnings
    np.testing.assert_array_equal(inputs[:, 1:], targets[:, :-1])


def test_held_out_stories_are_not_trained_on(grammar):
    assert not {*stories_of(grammar, 0, 20_000)} & {*stories_of(grammar, 1, 64)}


# The floor ---------------------------------------------------------------------------------------


def test_floor_is_the_log_of_its_characters_shares_by_brute_force(tokenizer, grammar):
    _, targets, floor, _ = story_windows(num_windows=2, seed=11)
    for row in range(2):
        for at in range(0, 112, 7):
            text, token = tokenizer.decode(targets[row, :at]), tokenizer.decode([targets[row, at]])
            share = math.prod(
                grammar.next_character_probs(text + token[:i])[token[i]] for i in range(len(token))
            )
            assert floor[row, at] == pytest.approx(-math.log(share), abs=1e-9)


class Oracle:
    """The grammar itself as a model of characters: ids in, the log of the true shares out."""

    def __init__(self, grammar, alphabet):
        self.grammar, self.alphabet = grammar, alphabet

    def __call__(self, ids):
        logits = np.full((*ids.shape, self.alphabet.vocab_size), -np.inf)
        for row, text in enumerate(map(self.alphabet.decode, ids)):
            for at in range(len(text)):  # the newline before the story says where it begins
                for char, p in self.grammar.next_character_probs(text[1 : at + 1]).items():
                    logits[row, at, self.alphabet.encode(char)[0]] = math.log(p)
        return Tensor(logits, dtype=np.float64)


def test_the_grammar_as_a_model_of_characters_has_exactly_the_floor(tokenizer, grammar):
    # As a model of tokens it would not: that "lo" comes also says that "low" does not.
    _, targets, floor, characters = story_windows(num_windows=2, seq_len=60, seed=5)
    alphabet = CharTokenizer(grammar.alphabet)
    for row in range(2):
        ids = np.array(alphabet.encode("\n" + tokenizer.decode(targets[row])))
        nats = surprise(Oracle(grammar, alphabet), ids[None, :-1], ids[None, 1:])[0]
        ends = characters[row].cumsum()
        np.testing.assert_allclose(nats.cumsum()[ends - 1], floor[row].cumsum(), atol=1e-9)


# New models --------------------------------------------------------------------------------------


def test_new_model_predicts_uniformly(held_out):
    loss = evaluate(new_story_gpt(), held_out.inputs[:4], held_out.targets[:4])
    assert loss == pytest.approx(math.log(512), abs=0.5)  # its weights are lively: init_std=0.1


def test_a_second_of_training_goes_below_what_counting_characters_can_reach(grammar):
    model = tiny_gpt(512, 32, 1, 2, max_seq_len=32, pos_encoding="rotary", init_std=0.1)
    inputs, targets, floor, characters = story_windows(num_windows=32, seq_len=32)
    trainer = Trainer(
        model,
        story_batches(batch_size=8, seq_len=32, num_stories=500),
        schedule=CosineSchedule(0.02, warmup_steps=10, total_steps=100),
        progress=False,
    )
    trainer.run(100)
    rate = surprise(model, inputs, targets).sum() / characters.sum()
    known = floor.sum() / characters.sum()
    assert known < rate < 0.25 * grammar.entropy.unigram_nats_per_character


# The trained model -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained_loss(held_out):
    return evaluate(load_story_gpt(), held_out.inputs, held_out.targets)


def test_trained_model_comes_close_to_the_floor_and_not_below_it(trained_loss, held_out):
    floor = held_out.floor.mean()
    assert floor * 0.99 < trained_loss < floor * 1.05


def test_trained_model_matches_its_record(trained_loss):
    record, _ = story_gpt_run()
    measured = record["validation"][~np.isnan(record["validation"])]
    assert trained_loss == pytest.approx(measured[-1], abs=1e-3)  # kept in half precision


def test_trained_model_divides_a_storys_surprise_among_its_characters(tokenizer, grammar):
    model, stories = load_story_gpt(), stories_of(grammar, 15, 20)
    totals, known = [], []
    for story in stories:
        ids = np.array([tokenizer.encode("\n" + story)])
        nats = character_surprise(model, tokenizer, story)
        assert nats.shape == (len(story),) and (nats >= 0).all()
        assert nats.sum() == pytest.approx(surprise(model, ids[:, :-1], ids[:, 1:]).sum())
        totals.append(nats)
        known.append(-grammar.log_probs(story))
    nats, known = np.concatenate(totals), np.concatenate(known)
    assert np.abs(nats - known).mean() < 0.25 * known.mean()  # it wonders where the oracle does


def test_record_covers_the_whole_run(held_out):
    record, facts = story_gpt_run()
    assert {*record} == {"loss", "lr", "grad_norm", "validation"}
    assert {len(column) for column in record.values()} == {STEPS}
    for name in ("loss", "lr", "grad_norm"):
        assert np.isfinite(record[name]).all()
    assert record["loss"][0] == pytest.approx(math.log(512), abs=0.5)
    assert record["loss"][-100:].mean() < 0.1 * record["loss"][0]
    assert float(facts["floor"]) == pytest.approx(held_out.floor.mean(), abs=1e-5)


def test_trained_model_writes_stories(tokenizer, grammar):
    (newline,) = tokenizer.encode("\n")
    texts = load_story_gpt().generate([[newline]] * 40, 111, stop_tokens=[newline], rng=0)
    stories = [tokenizer.decode(ids)[1:].split("\n")[0] + "\n" for ids in texts.data]
    assert len({*stories}) == 40
    assert sum(grammar.is_story(story) for story in stories) >= 20
