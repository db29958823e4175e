"""The kind of an exercise stands in its title line."""

import pytest
from small_site import build
from test_folds import article, words

EXERCISE = """# A

```{exercise} Seen twice
:label: ex-twice
:kind: debug

Find it.
```
"""
pytestmark = pytest.mark.filterwarnings("default")


@pytest.mark.parametrize(
    ("option", "label"),
    [(":kind: debug\n", "debug it"), (":kind: puzzle\n", "puzzle"), ("", "write it")],
    ids=["debug", "puzzle", "none"],
)
def test_a_title_names_the_kind_of_the_exercise(tmp_path, option, label):
    page = article(tmp_path, EXERCISE.replace(":kind: debug\n", option))
    assert words(page.select_one(".exercise .admonition-title .tt-kind")) == label


def test_an_unknown_kind_is_an_error_that_names_the_known_ones(tmp_path):
    _, warnings = build(tmp_path, index=EXERCISE.replace("debug", "guess"))
    assert '"guess" unknown; choose from "write", "predict", "debug"' in warnings
