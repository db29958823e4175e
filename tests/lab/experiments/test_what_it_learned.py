"""The stories of the study, what is known in them, and what a probe reads."""

import numpy as np
import pytest

from tinytorch.inside.probes import LinearProbe, r_squared
from tinytorch_book.experiments.story_gpt import story_tokenizer
from tinytorch_book.experiments.what_it_learned import (
    NEEDED,
    asked,
    readable,
    story_beliefs,
    story_truth,
    study_stories,
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


def test_probes_are_asked_before_the_word_and_one_token_earlier(studied):
    for hidden, (kind, again) in NEEDED.items():
        rows, at = asked(studied, hidden, "needed")
        assert (studied.kinds[rows, at] == kind).all() and (studied.again[rows, at] == again).all()
        np.testing.assert_array_equal(asked(studied, hidden, "before")[1], at - 1)


def test_what_is_readable_is_measured_on_rows_that_were_not_fitted():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(90, 8)), rng.dirichlet(np.ones(3), 90)
    probe = LinearProbe(x[:60], y[:60], ridge=0.03)
    assert readable(x, y) == pytest.approx(r_squared(y[60:], probe(x[60:])))
