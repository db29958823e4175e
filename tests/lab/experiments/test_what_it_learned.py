"""The stories of the study, what is known in them, and the stored results."""

import numpy as np
import pytest

from tinytorch_book.experiments import what_it_learned
from tinytorch_book.experiments.story_gpt import load_story_gpt, new_story_gpt, story_tokenizer
from tinytorch_book.experiments.what_it_learned import (
    NEEDED,
    asked,
    held,
    learned_when,
    readable,
    readable_controls,
    story_beliefs,
    story_truth,
    study_stories,
    study_stream,
)
from tinytorch_book.stories import StoryGrammar, hidden_values, next_token_probs


@pytest.fixture(scope="module")
def studied():
    return study_stories(40)


def test_every_row_is_one_story(studied):
    tokenizer, texts = story_tokenizer(), StoryGrammar().generate(40, seed=5).splitlines()
    for row, length, text in zip(studied.ids, studied.lengths, texts, strict=True):
        assert tokenizer.decode(row[:length]) == "\n" + text
        assert tokenizer.decode(row[length:]).strip() == ""


def test_before_a_kind_is_the_last_token_before_its_first_word(studied):
    tokenizer, names = story_tokenizer(), StoryGrammar().kinds["animals"]
    rows, at = studied.before("animals")
    assert rows.tolist() == list(range(40))
    for row, position in zip(rows, at, strict=True):
        before = tokenizer.decode(studied.ids[row, : position + 1])
        after = tokenizer.decode(studied.ids[row, position + 1 :])
        assert after.strip().startswith(names)
        assert not set(names) & set(StoryGrammar.words(before))
    rows, at = studied.before("animals", again=True)
    for row, position in zip(rows, at, strict=True):
        before = StoryGrammar.words(tokenizer.decode(studied.ids[row, : position + 1]))
        assert len(set(names) & set(before)) == 1


def test_tokens_within_a_word_of_a_kind_spell_it(studied):
    tokenizer, names = story_tokenizer(), StoryGrammar().kinds["names"]
    for ids, within in zip(studied.ids, studied.within, strict=True):
        spelled = tokenizer.decode(ids[within == "names"]).replace(" ", "")
        assert any(spelled == name * (len(spelled) // len(name)) for name in names)


def test_beliefs_match_the_oracle_at_every_token(studied):
    grammar, tokenizer = StoryGrammar(), story_tokenizer()
    two = type(studied)(*(field[:2] for field in studied))
    truth, posterior = story_truth(two), story_beliefs(two, "place")
    assert np.isnan(truth[0, two.lengths[0] :]).all()
    for at in (0, 9, 30):
        exact = next_token_probs(grammar, tokenizer, two.ids[1, 1 : at + 1])
        found = {int(i): truth[1, at, i] for i in np.flatnonzero(truth[1, at])}
        assert found == pytest.approx(exact)
    _, at = two.before("places")
    first, last = posterior[1, at[1]], posterior[1, two.lengths[1] - 1]
    assert first.max() == pytest.approx(6 / 28) and last.max() == pytest.approx(1)
    assert posterior.shape[-1] == len(hidden_values(grammar, "place"))


def test_probes_are_asked_before_the_word_one_token_earlier_and_at_the_end(studied):
    for hidden, (kind, again) in NEEDED.items():
        rows, at = asked(studied, hidden, "needed")
        assert (studied.kinds[rows, at] == kind).all() and (studied.again[rows, at] == again).all()
        np.testing.assert_array_equal(asked(studied, hidden, "before")[1], at - 1)
    rows, at = asked(studied, "ending", "end")
    assert rows.tolist() == list(range(40))
    assert all(story_tokenizer().decode([i])[-1] in '."' for i in studied.ids[rows, at])


def test_the_command_writes_its_own_file(monkeypatch, tmp_path):
    written = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(what_it_learned, "_make", written.append)
    monkeypatch.setattr(what_it_learned, "_FILE", tmp_path / "package" / "what_it_learned.json")
    assert what_it_learned.main([]) == what_it_learned.main(["--output=other"]) == 0
    assert what_it_learned.main(["--in-package"]) == 0
    assert [str(path) for path in written[:2]] == ["what_it_learned.json", "other"]
    assert written[2] == what_it_learned._FILE


@pytest.mark.slow
def test_stored_runs_begin_and_end_with_the_packaged_models():
    runs = learned_when()
    studied = study_stories(1500)
    rows, at = asked(studied, "animal", "needed")
    few = story_beliefs(study_stories(150), "animal")  # the belief depends on the place alone
    texts = [story_tokenizer().decode(ids) for ids in studied.ids]
    names = hidden_values(StoryGrammar(), "place")
    places = [next(name for name in names if f" {name}" in text) for text in texts]
    known = {place: few[row, at[row]] for row, place in enumerate(places[:150])}
    posterior = np.zeros((1500, studied.ids.shape[1], few.shape[-1]))
    for back in (0, 1):
        posterior[rows, at - back] = [known[place] for place in places]
    for model, step in ((new_story_gpt(), 0), (load_story_gpt(), 4000)):
        stream = study_stream(model, studied)
        for where in ("needed", "before"):
            (kept,) = (
                run
                for run in runs
                if (run["seed"], run["step"]) == (0, step)
                and (run["hidden"], run["where"]) == ("animal", where)
            )
            found = held(stream, studied, posterior, "animal", where)
            np.testing.assert_allclose([r2 for r2, _ in found], kept["r2"], atol=0.05)
            np.testing.assert_allclose([off for _, off in found], kept["off"], atol=0.01)
    assert {run["hidden"] for run in runs} == {*NEEDED, "ending"}
    for stage, lowest in ((1, 0.75), (2, 0.97)):  # of the trained model: the probe reads places
        x, known_there = stream[stage][rows, at], posterior[rows, at]
        for r2 in readable_controls(x, known_there).values():
            assert lowest < r2.min() and readable(x, known_there)[0] < r2.max() + 0.01


def test_a_control_is_a_probe_fitted_to_a_target_of_each_type():
    rng = np.random.default_rng(0)
    types, known = rng.integers(0, 4, 240), rng.dirichlet(np.ones(5), 4)
    x = np.eye(4)[types] @ rng.normal(size=(4, 8)) + rng.normal(size=(240, 8))
    controls = readable_controls(x, known[types], draws=3, rng=7)
    generator, posteriors = np.random.default_rng(7), np.unique(known.round(9), axis=0)
    place = [int(np.abs(posteriors - row).sum(axis=1).argmin()) for row in known[types]]
    for i in range(3):
        cycle, another = generator.permutation(4), np.empty((4, 5))
        for one, next_one in zip(cycle, np.roll(cycle, 1), strict=True):
            another[one] = posteriors[next_one]
        random = generator.dirichlet(np.ones(5), 4)
        for name, target in (("another", another), ("random", random)):
            assert controls[name][i] == pytest.approx(readable(x, target[place])[0], abs=1e-8)
        assert (np.abs(another - posteriors).max(axis=1) > 0.01).all(), "none keeps its own"


def test_targets_that_depend_on_context_beat_the_controls():
    rng = np.random.default_rng(0)
    p = np.linspace(0.1, 0.9, 9)
    known, types = np.column_stack([p, 1 - p]), rng.integers(0, 9, 300)
    x = known[types] + 0.02 * rng.normal(size=(300, 2))  # a line: no target but its own fits
    real, controls = readable(x, known[types])[0], readable_controls(x, known[types])
    assert real > 0.98 and controls["random"].shape == (20,)
    assert max(controls["another"].max(), controls["random"].max()) < real - 0.1


def test_the_probes_of_the_stored_runs_are_not_selective_for_animals():
    """What the chapter concludes: at the end of both trainings, any target is read as well."""
    ends = [run for run in learned_when() if run["step"] == 4000]
    asked_for = [run for run in ends if (run["hidden"], run["where"]) == ("animal", "needed")]
    assert [run["seed"] for run in asked_for] == [0, 1]
    for run in asked_for:
        for name in ("another", "random"):
            for r2, (low, high) in list(zip(run["r2"], run[name], strict=True))[1:]:
                assert low - 0.01 <= r2 <= high + 0.01
