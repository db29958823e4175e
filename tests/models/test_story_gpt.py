"""The model of the book, and the loss that no model can have: the entropy of its text."""

import math

import numpy as np
import pytest
from tiny_models import tiny_gpt

from tinytorch import CosineSchedule, Trainer
from tinytorch.models.story_gpt import (
    load_story_gpt,
    new_story_gpt,
    story_batches,
    story_gpt_run,
    story_tokenizer,
    story_windows,
)
from tinytorch.models.evaluation import evaluate, surprise
from tinytorch.text.corpus import StoryGrammar


@pytest.fixture(scope="module")
def grammar():
    return StoryGrammar()


@pytest.fixture(scope="module")
def tokenizer():
    return story_tokenizer()


@pytest.fixture(scope="module")
def held_out():
    return story_windows()


# Windows of stories ------------------------------------------------------------------------------


def test_every_window_begins_with_the_newline_before_a_story(tokenizer, grammar):
    inputs, targets, _ = story_windows(num_windows=5, seq_len=300, seed=3)
    stories = [story for story, _ in zip(grammar.stories(3), range(8), strict=False)]
    for row in range(5):
        text = "\n" + "".join(stories[row:])
        assert tokenizer.decode(inputs[row]) == text[:300]
        assert tokenizer.decode(targets[row]) == text[1:301]


@pytest.mark.parametrize(("num_windows", "seq_len"), [(1, 1), (1, 1500), (3, 160), (40, 256)])
def test_there_are_as_many_windows_as_asked_for(num_windows, seq_len):
    for array in story_windows(num_windows, seq_len, seed=2):
        assert array.shape == (num_windows, seq_len)


def test_batches_to_train_on_begin_at_stories_too(tokenizer, grammar):
    inputs, targets = story_batches(batch_size=6, seq_len=150, num_stories=30, seed=4)[0]
    stories = {story for story, _ in zip(grammar.stories(4), range(30), strict=False)}
    beginnings = {("\n" + story)[:150] for story in stories}
    assert {tokenizer.decode(row) for row in inputs} <= beginnings
    np.testing.assert_array_equal(inputs[:, 1:], targets[:, :-1])


def test_held_out_stories_are_not_among_those_to_train_on(grammar):
    read = {story for story, _ in zip(grammar.stories(0), range(20_000), strict=False)}
    held_out = [story for story, _ in zip(grammar.stories(1), range(64), strict=False)]
    assert not read & set(held_out)


# The floor ---------------------------------------------------------------------------------------


def test_floor_is_the_oracles_surprise_at_each_target_in_the_windows_own_text(tokenizer, grammar):
    _, targets, floor = story_windows(num_windows=6, seq_len=270, seed=9)
    for row in range(6):
        text = tokenizer.decode(targets[row])  # from the first character of a story on
        np.testing.assert_allclose(floor[row], -grammar.log_probs(text), atol=1e-9)


def test_floor_is_the_log_of_one_characters_share_by_brute_force(tokenizer, grammar):
    _, targets, floor = story_windows(num_windows=2, seq_len=230, seed=11)
    for row in range(2):
        text = tokenizer.decode(targets[row])
        for at in range(0, 230, 5):
            share = grammar.next_character_probs(text[:at])[text[at]]
            assert floor[row, at] == pytest.approx(-math.log(share), abs=1e-9)


def test_floors_of_many_stories_have_the_known_entropy(tokenizer, grammar):
    longest = 300
    _, targets, floor = story_windows(num_windows=1500, seq_len=longest, seed=21)
    (newline,) = tokenizer.encode("\n")
    ends = (targets == newline).argmax(axis=1)  # of the first story of each window
    inside = np.arange(longest) <= ends[:, None]
    assert (targets[np.arange(1500), ends] == newline).all()
    nats = (floor * inside).sum(axis=1)
    characters = ends + 1
    for sample, expected in (
        (nats, grammar.entropy.nats_per_story),
        (characters, grammar.entropy.characters_per_story),
    ):
        assert abs(sample.mean() - expected) < 4 * sample.std() / math.sqrt(1500)
    rate = nats.sum() / characters.sum()
    assert rate == pytest.approx(grammar.entropy.nats_per_character, rel=0.01)


class Oracle:
    """The grammar itself as a model: ids in, the log of the true probabilities out."""

    def __init__(self, grammar, tokenizer):
        self.grammar, self.tokenizer = grammar, tokenizer

    def __call__(self, ids):
        logits = np.full((*ids.shape, self.tokenizer.vocab_size), -np.inf)
        for row, text in enumerate(map(self.tokenizer.decode, ids)):
            for at in range(len(text)):  # the newline before the story says where it begins
                for char, p in self.grammar.next_character_probs(text[1 : at + 1]).items():
                    logits[row, at, self.tokenizer.encode(char)[0]] = math.log(p)
        return logits


def test_the_grammar_as_a_model_has_exactly_the_floor(tokenizer, grammar):
    inputs, targets, floor = story_windows(num_windows=3, seq_len=200, seed=5)
    result = surprise(Oracle(grammar, tokenizer), inputs, targets)
    np.testing.assert_allclose(result, floor, atol=1e-9)


def test_model_that_knows_nothing_has_the_log_of_the_alphabet(held_out, grammar):
    guess = evaluate(lambda ids: np.zeros((*ids.shape, 38)), held_out.inputs, held_out.targets)
    assert guess == pytest.approx(math.log(38)) == grammar.entropy.uniform_nats_per_character


def test_new_model_guesses(held_out):
    loss = evaluate(new_story_gpt(), held_out.inputs[:4], held_out.targets[:4])
    assert loss == pytest.approx(math.log(38), abs=0.1)


def test_new_model_is_the_same_every_time():
    one, other = new_story_gpt(), new_story_gpt()
    for (name, p), (_, q) in zip(one.named_parameters(), other.named_parameters(), strict=True):
        np.testing.assert_array_equal(p.data, q.data, err_msg=name)


def test_a_few_seconds_of_training_go_below_what_counting_characters_can_reach(grammar):
    model = tiny_gpt(38, 32, 1, 2, max_seq_len=64, pos_encoding="rotary")
    validation = story_windows(num_windows=32, seq_len=64)
    trainer = Trainer(
        model,
        story_batches(batch_size=8, seq_len=64, num_stories=500),
        schedule=CosineSchedule(0.01, warmup_steps=10, total_steps=150),
        validation=(validation.inputs, validation.targets),
        progress=False,
    )
    loss = trainer.run(150)[-1]["validation"]
    assert validation.floor.mean() < loss < 0.7 * grammar.entropy.unigram_nats_per_character


# The trained model -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained_loss(held_out):
    return evaluate(load_story_gpt(), held_out.inputs, held_out.targets)


def test_trained_model_comes_close_to_the_floor_and_not_below_it(trained_loss, held_out):
    floor = held_out.floor.mean()
    assert floor * 0.99 < trained_loss < floor * 1.05


def test_trained_model_is_the_one_that_the_record_is_of(trained_loss):
    record, _ = story_gpt_run()
    measured = record["validation"][~np.isnan(record["validation"])]
    assert trained_loss == pytest.approx(measured[-1], abs=1e-3)  # kept in half precision


def test_record_is_that_of_a_whole_run(held_out):
    record, facts = story_gpt_run()
    assert {*record} == {"loss", "lr", "grad_norm", "validation"}
    assert len({len(column) for column in record.values()}) == 1
    for name in ("loss", "lr", "grad_norm"):
        assert np.isfinite(record[name]).all()
    assert record["loss"][0] == pytest.approx(math.log(38), abs=0.1)
    assert record["loss"][-100:].mean() < 0.1 * record["loss"][0]
    assert float(facts["floor"]) == pytest.approx(held_out.floor.mean(), abs=1e-5)


def test_trained_model_is_in_evaluation_mode_and_everyones_own():
    one, other = load_story_gpt(), load_story_gpt()
    assert not any(part.training for _, part in one.named_modules())
    one.token_embedding.weight.data[:] = 0
    assert other.token_embedding.weight.data.any()


def test_trained_model_writes_stories(tokenizer, grammar):
    (newline,) = tokenizer.encode("\n")
    texts = load_story_gpt().generate([[newline]] * 8, 280, stop_tokens=[newline], rng=0)
    stories = [tokenizer.decode(ids)[1:].split("\n")[0] + "\n" for ids in texts.data]
    assert sum(grammar.is_story(story) for story in stories) >= 4
