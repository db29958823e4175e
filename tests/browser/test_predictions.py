"""Predictions that are made, and what a page folds away, in a real browser.

How a prediction is judged and kept is tested without one (tests/scripts/live_kept.test.mjs).
"""

import pytest
from visit import READY, Visit

CHOICES = "book/foundations/tensors"
NUMBER = "book/transformer/normalisation-and-mlp"
ANSWER = ".tt-prediction + .tt-answer"
FOLDED = "book/embeddings/token-embeddings"
DEEPER = "deeper-how-does-the-gradient-follow-from-a-matrix-product"  # of FOLDED
IN_THE_ANSWER = "A perfect model has a loss of 1.333"  # of CHOICES
pytestmark = [pytest.mark.browser, pytest.mark.slow]


def answer(page):
    """The fold; that it is open says `[open]`."""
    return page.locator(ANSWER).first


def seen(page):
    return page.get_by_text(IN_THE_ANSWER).is_visible()


def choice(page, name):
    return page.locator(".tt-prediction__press", has_text=name)


def test_the_answer_waits_for_a_choice_by_key_and_survives_a_reload(visit):
    page = visit.open_live(CHOICES)
    assert not seen(page)
    assert page.locator(".tt-prediction__mark:visible").count() == 0
    choice(page, "none, because Python").focus()
    page.keyboard.press("Enter")
    assert seen(page)
    assert page.locator(".tt-prediction__mine:visible").inner_text() == "Your prediction"
    right = page.locator(".tt-prediction__choice", has_text="This one is right")
    assert right.inner_text().startswith("more than 0")
    assert page.evaluate("document.activeElement.textContent").startswith("none")
    page.reload()
    page.wait_for_function(READY)
    assert seen(page)
    assert choice(page, "none, because Python").get_attribute("aria-pressed") == "true"
    assert visit.problems == []


def test_a_number_counts_as_a_prediction_and_an_empty_field_does_not(visit):
    page = visit.open_live(NUMBER)
    press = page.get_by_role("button", name="That is my prediction")
    press.click()
    assert answer(page).get_attribute("open") is None
    page.get_by_label("Your number").fill("200")
    press.click()
    assert page.locator(".tt-prediction__verdict").inner_text().endswith("close enough.")
    assert page.get_by_text("The answer: 237 times.", exact=True).is_visible()


def test_a_link_opens_the_fold_that_it_leads_into(visit):
    page = visit.open(FOLDED)
    fold = page.locator(f"#{DEEPER} > .tt-deeper")
    assert fold.get_attribute("open") is None
    page.evaluate(f"location.hash = '{DEEPER}'")
    fold.and_(page.locator("[open]")).wait_for()
    assert answer(page).get_attribute("open") is None
    page.goto(f"{visit.site}{FOLDED}.html#{DEEPER}")
    page.reload()
    fold.and_(page.locator("[open]")).wait_for()
    page.goto(f"{visit.site}{NUMBER}.html#a-small-error-thirty-layers-deep")
    assert answer(page).get_attribute("open") is None, "the question is no part of the answer"


@pytest.mark.parametrize(("word", "opened"), [("overwrites", False), ("respect", True)])
def test_a_search_opens_the_fold_that_alone_contains_its_words(visit, word, opened):
    page = visit.open(FOLDED)
    page.evaluate(f"localStorage.setItem('sphinx_highlight_terms', '{word}')")
    page.reload()
    page.locator("article span.highlighted").first.wait_for(state="attached")
    page.evaluate("new Promise((done) => setTimeout(done, 20))")  # timers end in their order
    assert (page.locator(f"#{DEEPER} > .tt-deeper[open]").count() == 1) == opened


def test_print_shows_everything_and_the_screen_what_it_showed_before(visit):
    page = visit.open(FOLDED)
    closed = page.locator(".tt-fold:not([open])")
    count = closed.count()
    assert count >= 2
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert closed.count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert closed.count() == count


def test_without_scripts_predictions_and_deeper_sections_are_plain_folds(browser, site):
    context = browser.new_context(java_script_enabled=False)
    page = Visit(context, site).page
    page.goto(f"{site}{CHOICES}.html")
    assert not seen(page)
    answer(page).locator("summary").click()
    assert seen(page)
    assert page.get_by_text("This one is right").is_visible()
    page.goto(f"{site}{FOLDED}.html")
    fold = page.locator(f"#{DEEPER}")
    fold.locator("summary").click()
    assert fold.get_by_text("for the one-hot rows of all tokens").is_visible()
    context.close()
