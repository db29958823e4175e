"""Every chapter's page keeps the rules of a page."""

import page_rules
import pytest
from bs4 import BeautifulSoup
from page_rules import RULES, TIME, clocked

CODE = """---
kernelspec: {name: python3}
---

```{code-cell} ipython3
:tags: [nbval-ignore-output]

%s
```
"""


@pytest.mark.parametrize("rule", RULES)
def test_a_page_keeps_the_rule(chapter, rule):
    assert RULES[rule](chapter) == [], RULES[rule].__doc__


@pytest.fixture
def page(tmp_path, monkeypatch):
    """A function that makes a page which breaks no rule, or this one; gives its name."""

    def make(
        kinds="write predict debug",
        more="",
        code="from time import time as now\nnow()",
        figure='<figure class="tt-drawing"></figure>',
        answer="tt-answer",
        **counts,
    ):
        known = {"core-words": 1500, "core-code": 150, "core-source": 30, "folded-source": 10}
        known |= {"folded-words": 9000, "folded-code": 900}
        data = "".join(f' data-{k}="{v}"' for k, v in (known | counts).items())
        marks = "".join(f'<span class="tt-kind">{kind} it</span>' for kind in kinds.split())
        html = (
            f'<article><div class="tt-card"><p>about 5 min</p><figure class="tt-drawing"></figure>'
            f'<span class="tt-card__reading"{data}>about 9 min</span></div>{figure}<p>{more}</p>'
            f'<div class="tt-prediction"></div><div class="{answer}"></div>'
            f'<div class="exercise">{marks}</div></article>'
        )
        (tmp_path / "part").mkdir(exist_ok=True)
        (tmp_path / "part/made.md").write_text(CODE % code, encoding="utf-8")
        monkeypatch.setattr(page_rules, "soup", lambda _: BeautifulSoup(html, "html.parser"))
        monkeypatch.setattr(page_rules, "ROOT", tmp_path)
        monkeypatch.setattr(page_rules, "CHAPTERS", ["part/made"])
        page_rules.texts.cache_clear()
        return "part/made"

    yield make
    page_rules.texts.cache_clear()


def test_a_page_at_its_limits_keeps_every_rule(page):
    made = page()
    assert {rule: broken(made) for rule, broken in RULES.items() if broken(made)} == {}


@pytest.mark.parametrize(
    ("rule", "change", "said"),
    [
        ("words", {"core-words": 1501}, "1501 of words, at most 1500"),
        ("code", {"core-code": 151}, "151 of code, at most 150"),
        ("source", {"folded-source": 11}, "41 of source, at most 40"),
        ("times", {"more": "It took 3 s here."}, "'3 s' in 'It took 3 s here.'"),
        ("outputs", {"code": "print(1)"}, "no time is printed by 'print(1)'"),
        (
            "outputs",
            {"code": "import time\nx = [1]\nprint(f'{len(x)} in {time.perf_counter()}')"},
            "'len(x)' is no time, and not compared",
        ),
        ("kinds", {"kinds": "write predict"}, "no exercise to debug"),
        ("prediction", {"answer": ""}, "no prediction"),
        ("drawing", {"figure": ""}, "no drawing"),
    ],
)
def test_the_page_that_breaks_a_rule_is_named(page, capsys, rule, change, said):
    made = page(**change)
    assert {name: broken(made) for name, broken in RULES.items() if broken(made)} == {rule: [said]}
    page_rules.main()
    table = capsys.readouterr().out
    assert f"\n{rule}: {RULES[rule].__doc__}\n  made: {said}\n" in table
    assert table.count("  made: ") == 1


@pytest.mark.parametrize(
    "text",
    ["took 13 s", "30 seconds", "0.5 ms", "a 20-minute run", "two minutes", "half a minute",
     "a tenth of a second", "some seconds", "1,200 µs", "within an hour", "about 5 min"],
)  # fmt: skip
def test_a_measured_time_is_detected(text):
    assert TIME.search(text)


@pytest.mark.parametrize(
    "text",
    ["the second token", "two second-hand books", "a second line", "in the 1950s", "7 sentences",
     "5 samples", "tokens a second", "at that minute detail", "12 steps"],
)  # fmt: skip
def test_text_that_only_looks_like_a_time_is_not_detected(text):
    assert not TIME.search(text)


def test_values_computed_from_a_clock_are_detected():
    cells = ["from time import perf_counter as now", "def took(f):\n    return now() - f()",
             "seconds = took(len)", "print(seconds, other)", "found.append(seconds)",
             "for one in found:\n    share = one / 2"]  # fmt: skip
    assert {"now", "took", "seconds", "found", "one", "share"} <= clocked(cells)
    assert "other" not in clocked(cells)
