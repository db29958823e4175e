"""Every chapter's page keeps the rules of a page."""

import pytest
from page_rules import RULES, TIME, clocked


@pytest.mark.parametrize("rule", RULES)
def test_a_page_keeps_the_rule(chapter, rule):
    assert RULES[rule](chapter) == [], RULES[rule].__doc__


@pytest.mark.parametrize(
    "text",
    ["took 13 s", "30 seconds", "0.5 ms", "a 20-minute run", "two minutes", "half a minute",
     "a tenth of a second", "some seconds", "1,200 µs", "within an hour", "about 5 min"],
)  # fmt: skip
def test_a_measured_time_is_seen(text):
    assert TIME.search(text)


@pytest.mark.parametrize(
    "text",
    ["the second token", "two second-hand books", "a second line", "in the 1950s", "7 sentences",
     "5 samples", "tokens a second", "at that minute detail", "12 steps"],
)  # fmt: skip
def test_what_only_looks_like_a_time_is_not(text):
    assert not TIME.search(text)


def test_what_is_computed_from_a_clock_is_known():
    cells = ["from time import perf_counter as now", "def took(f):\n    return now() - f()",
             "seconds = took(len)", "print(seconds, other)"]  # fmt: skip
    assert {"now", "took", "seconds"} <= clocked(cells)
    assert "other" not in clocked(cells)
