"""Questions about stories have true answers and exact posteriors; the stored model is measured."""

import numpy as np
import pytest

from tinytorch.training.abstention import best_score
from tinytorch_book.experiments import answering
from tinytorch_book.experiments.answering import (
    PENALTIES,
    answering_results,
    believed,
    load_answering_gpt,
    measured,
    new_answering_gpt,
    scores,
    tune_to_answers,
    tune_to_score,
)
from tinytorch_book.experiments.fine_tuning import excess
from tinytorch_book.experiments.story_gpt import load_story_gpt
from tinytorch_book.experiments.story_questions import (
    QUESTIONS,
    UNSURE,
    StoryQuestion,
    answers_to,
    question_chats,
    question_tokenizer,
    story_questions,
)
from tinytorch_book.stories import StoryGrammar, beliefs

KINDS = ("untuned", "answers", "all tokens", "and stories")


def test_the_answer_stands_in_the_whole_story_and_a_text_is_its_beginning():
    stories = StoryGrammar().generate(200, seed=4).splitlines()
    for story, question in zip(stories, story_questions(200, seed=4), strict=True):
        assert story.startswith(question.text) and story[len(question.text) :][:1] in ("", " ")
        assert question.answer in story.replace(".", " ").replace(",", " ").split()
        if question.stated:
            assert answers_to(question.about)[question.posterior.argmax()] == question.answer


def test_the_posterior_is_that_of_the_oracle_once_the_word_has_ended():
    grammar = StoryGrammar()
    for question in [each for each in story_questions(60, seed=4) if not each.stated]:
        truth = beliefs(grammar, question.text + " ", question.about)[-1]
        assert question.posterior == pytest.approx(truth)


@pytest.mark.slow
def test_asking_for_what_a_story_names_gives_nothing_away():
    """True answers are as frequent as the posteriors say: these are right for these questions."""
    asked = [each for each in story_questions(3000, seed=5) if not each.stated]
    for about in QUESTIONS:
        some = [each for each in asked if each.about == about]
        probs = np.array([each.posterior for each in some])
        came = np.array([[a == each.answer for a in answers_to(about)] for each in some])
        deviation = np.sqrt((probs * (1 - probs)).sum(axis=0))
        off = np.abs((came - probs).sum(axis=0))[deviation > 1] / deviation[deviation > 1]
        assert len(some) >= 50 and off.max() < 3.5


@pytest.mark.slow
def test_a_row_fits_the_model_and_says_what_was_asked():
    prompt, answer = question_chats(story_questions(1, seed=4), [UNSURE])[0]
    text = question_tokenizer().decode(prompt + answer)
    assert text.startswith("\n") and text.endswith(f"<|assistant|> {UNSURE}<|end|>")
    rows = question_chats(story_questions(2000, seed=6))
    assert max(len(p) + len(a) for p, a in rows) <= answering.SEQ_LEN


def test_the_new_model_tells_stories_as_before():
    assert excess(new_answering_gpt(), num_stories=20) == pytest.approx(
        excess(load_story_gpt(), num_stories=20), abs=0.05
    )


@pytest.mark.slow
def test_a_few_steps_make_answers_likelier_and_a_score_higher():
    questions, model = story_questions(64, seed=7), new_answering_gpt()
    losses = tune_to_answers(model, questions, steps=12, stories=1)
    assert np.mean(losses[-3:]) < np.mean(losses[:3]) - 1
    model = load_answering_gpt()
    losses = tune_to_score(model, questions, penalty=3, steps=12)
    assert np.mean(losses[-3:]) < np.mean(losses[:3])


def test_the_score_of_the_likeliest_text():
    posterior = np.array([0.7, 0.3])
    question = StoryQuestion("", "", "", posterior)
    said = [np.array(belief) for belief in ([0.2, 0.5, 0.1], [0.6, 0.2, 0.1], [0.2, 0.3, 0.4])]
    assert scores(said, [question] * 3, penalty=1) == pytest.approx([-0.4, 0.4, 0.0])


@pytest.mark.slow
def test_the_stored_model_is_the_one_that_was_measured():
    [stored] = [
        run for run in answering_results()["tuned"]
        if (run["kind"], run["seed"]) == ("and stories", 1)
    ]  # fmt: skip
    found = measured(load_answering_gpt())
    assert found["right"] == pytest.approx(stored["right"], abs=0.02)
    assert found["distance"] == pytest.approx(stored["distance"], abs=0.005)
    assert found["lost"] == pytest.approx(stored["lost"], abs=0.05)
    for belief in believed(load_answering_gpt(), story_questions(5, seed=8)):
        assert (belief > 0).all() and belief.sum() < 1 + 1e-5


def test_no_stored_score_is_above_the_best():
    questions = answering.unread_questions()
    for run in answering_results()["scored"]:
        best = np.mean([best_score(each.posterior, run["penalty"]) for each in questions])
        assert best - 0.1 < run["score"] <= best + 1e-4


def test_all_runs_of_the_recipe_are_stored():
    results = answering_results()
    runs = {(run["kind"], run["seed"]) for run in results["tuned"]}
    assert runs == {("untuned", 0), *((kind, seed) for kind in KINDS[1:] for seed in (1, 2, 3))}
    assert {(run["penalty"], run["seed"]) for run in results["scored"]} == {
        (penalty, seed) for penalty in PENALTIES for seed in (1, 2, 3)
    }
    assert all(run["date"] and run["machine"] for group in results.values() for run in group)
