"""What a screen reader hears of a page stands in its HTML, in names that are short."""

from _ext.directives import citations
from test_folds import article, pytestmark, words  # noqa: F401

QUESTION = "\n```{reflect}\nIs it?\n\n- [x] yes\n\n  It is.\n```\n"
PAGE = f"""# A

## Which *way*?

```{{prediction}} way
Left or right?

- left
- [x] right
```

| part | here |
|---|---|
| norm | one |
| MLP | none |

| found | times |
|---|---|
| it | 1 |
| it | 2 |

```{{exercise}} Find it
:label: ex-find

Look.
```

## Reflect
{QUESTION}{QUESTION}"""


def test_rows_exercises_questions_and_answers_have_names(tmp_path):
    page = article(tmp_path, PAGE)
    heads = {scope: page.select(f"th[scope={scope}]") for scope in ("row", "col")}
    assert [words(th) for th in heads["row"]] == ["norm", "MLP"], "of the first table alone"
    assert [words(th) for th in heads["col"]] == ["part", "here", "found", "times"]
    [title] = page.select(".exercise .admonition-title")
    assert (title["role"], title["aria-level"]) == ("heading", "3")
    groups = [box["aria-label"] for box in page.select(".tt-reflect")]
    assert groups == ["Question 1 of 2", "Question 2 of 2"]
    shown, hidden, where = page.select_one(".tt-answer summary").find_all("span", recursive=False)
    assert words(shown) == "Show me the answer" and words(hidden) == "Hide the answer"
    assert words(where) == "(Which way?)"


def test_a_citation_is_read_as_author_and_year():
    link = '<a class="reference internal" href="../bibliography.html#id5" {}="A. B. C. 2023">'
    context = {"body": link.format("title") + "B, 2023</a>"}
    citations.shorten(None, "a", "page.html", context, None)
    assert context["body"].startswith(link.format("data-reference"))
