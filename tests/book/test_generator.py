"""What becomes of each construct of a chapter; nothing that is not understood gets through."""

import textwrap

import notebooks
import pytest
from book_index import BookIndex, MystError
from notebook_markdown import Converter, raw_myst

FRONT = """\
---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {display_name: Python 3, name: python3}
---

"""
SITE = "https://someone.github.io/a-book/"


@pytest.fixture
def book(tmp_path):
    """A book of two chapters and an appendix; returns a function that converts a text in it."""
    files = {
        "_config.yml": "repository: {url: https://github.com/someone/a-book, branch: main}\n",
        "_toc.yml": (
            "root: book/intro\nparts:\n- chapters:\n  - file: book/one/first\n"
            "  - file: book/one/second\n  - file: book/end\n"
        ),
        "book/intro.md": "# Hello\n",
        "book/one/second.md": FRONT + "# The second\n\n$$\nx\n$$ (eq-x)\n\n(there)=\n## There\n",
        "book/end.md": "# The end\n\n```{glossary}\nHead, a\n  One of many.\n```\n"
        "\n```{bibliography}\n```\n",
        "book/references.bib": "@book{k, author={Ada Bee and Cy Dee and Eve Eff}, year={1999}}\n",
        "package/code.py": 'def one():\n    """Give 1."""\n    return 1\n\n\ndef two(): ...\n',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")

    def write(text):
        (tmp_path / "book/one/first.md").write_text(FRONT + "# The first\n\n" + text, "utf-8")
        return BookIndex.read(tmp_path)

    def convert(text):
        text = textwrap.dedent(text)
        return Converter(write(text), "book/one/first").blocks(text)

    convert.root, convert.write = tmp_path, write
    return convert


def test_a_note_becomes_a_quotation(book):
    assert book("```{note}\nSee {doc}`second`.\n```") == (
        f"> **Note**\n>\n> See [The second]({SITE}book/one/second.html)."
    )


def test_a_hint_folds(book):
    text = book(":::{admonition} Hint $d$\n:class: dropdown\nAdd `1`.\n:::")
    assert text == "<details>\n<summary>Hint $d$</summary>\n\nAdd `1`.\n\n</details>"


def test_an_exercise_has_its_number_and_place(book):
    text = book("```{exercise} Add\n:label: ex-add\nAdd.\n```\n\nSee {ref}`ex-add`.")
    assert '<a id="ex-add"></a>\n\n### Exercise 1: Add\n\nAdd.' in text
    assert f"See [Exercise 1]({SITE}book/one/first.html#ex-add)." in text


def test_a_reflect_question_unfolds_choice_by_choice(book):
    text = book(
        """\
        ```{reflect}
        How many?

        - [x] `3`, or $n$

          One each.
        - [ ] none

          None is too few.
        ```
        """
    )
    assert text.startswith("How many?\n\n<details>\n<summary><code>3</code>, or $n$</summary>")
    assert "**Right.** One each." in text and "**Not quite.** None is too few." in text


def test_source_is_included_as_it_stands_in_the_file(book):
    text = book("```{literalinclude} ../../package/code.py\n:pyobject: one\n```")
    assert text.startswith('```python\ndef one():\n    """Give 1."""\n    return 1\n```')
    assert "blob/main/package/code.py" in text and "two" not in text


def test_labelled_equations_keep_their_number(book):
    text = book("$$\ny\n$$ (eq-y)\n\nBy {eq}`eq-y` and {eq}`eq-x`.")
    assert '<a id="equation-eq-y"></a>\n\n$$\ny \\tag{1}\n$$' in text
    assert f"[(2)]({SITE}book/one/second.html#equation-eq-x)" in text


def test_roles_become_links(book):
    text = book("{ref}`there`, {term}`many heads <head, a>`, {cite:p}`k`, {cite:t}`k`, {math}`x`")
    assert text == (
        f"[There]({SITE}book/one/second.html#there), "
        f"[many heads]({SITE}book/end.html#term-Head-a), "
        f"([Bee et al., 1999]({SITE}book/end.html)), [Bee et al. (1999)]({SITE}book/end.html), $x$"
    )


def test_links_between_chapters_lead_to_the_site(book):
    assert book("[on](second.md#there) [](second.md)") == (
        f"[on]({SITE}book/one/second.html#there) [The second]({SITE}book/one/second.html)"
    )


def test_a_figure_needs_a_description(book):
    (book.root / "book/one/a.svg").write_text("<svg/>")
    text = book("```{figure} a.svg\n:alt: A dot.\n:name: fig-a\nOne dot.\n```")
    raw = "https://raw.githubusercontent.com/someone/a-book/main/book/one/a.svg"
    assert text == f"![A dot.]({raw})\n\n**Fig. 1:** One dot."
    with pytest.raises(MystError, match=":alt:"):
        book("```{figure} a.svg\nOne dot.\n```")


def test_a_list_table_becomes_a_table(book):
    text = book("```{list-table} Sizes\n:header-rows: 1\n* - a\n  - b | c\n* - 1\n  - 2\n```")
    assert text == "*Sizes*\n\n| a | b \\| c |\n| --- | --- |\n| 1 | 2 |"


def test_a_directive_inside_a_list_stays_in_it(book):
    text = book("- one\n\n  ```{tip}\n  two\n  ```\n- three")
    assert text == "- one\n\n  > **Tip**\n  >\n  > two\n- three"


def test_code_and_maths_are_left_alone(book):
    text = "````\n```{note}\n{ref}`x`\n```\n````\n\n``{ref}`x` `` and $\\{a\\}`b`$"
    assert book(text) == text


def test_a_card_needs_no_script(book):
    text = book(
        '```{chapter-card}\n:question: what: is it?\n:build: "a `table`: yes"\n'
        ":needs: one/second, nothing else\n:difficulty: 2\n- say it\n```"
    )
    assert "| **The question** | what: is it? |" in text
    assert "| **You build** | a `table`: yes |" in text
    assert f"[The second]({SITE}book/one/second.html), nothing else" in text
    assert f"[The first]({SITE}book/one/first.html)" in text
    assert text.endswith("At the end you can\n\n- say it")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```{sidebar} x\n```", r"first.md:1: unknown directive \{sidebar\}; allowed: admonition"),
        ("a\n\n{guilabel}`x`", r"first.md:3: unknown role \{guilabel\}; allowed: abbr"),
        ("{ref}`nowhere`", r"\{ref\}`nowhere`: nothing in the book is called 'nowhere'"),
        ("{doc}`nowhere`", r"nothing in the book is called 'nowhere'"),
        ("{cite:p}`nobody`", r"nothing in the book is called 'nobody'"),
        ("[x](nowhere.md)", r"the link 'nowhere.md' leads to nothing"),
        ("{{ name }}", "is not allowed"),
        ("note[^1]\n\n[^1]: x", "is not allowed"),
        ("- a\n\n  ```{code-cell}\n  1\n  ```", "must not stand inside anything"),
        ("```{literalinclude} no.py\n```", "there is no file"),
        ("```{literalinclude} ../../package/code.py\n:pyobject: three\n```", "three"),
        ("```{reflect}\nWhat?\n```", "bullet list of choices"),
        ("```{reflect}\nWhat?\n\n- a\n```", r"must begin with \[x\] or \[ \]"),
    ],
)
def test_what_is_not_understood_is_an_error_that_says_so(book, text, message):
    with pytest.raises(MystError, match=message):
        book(text)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("```{code-cell}\n:tags: [hide-imput]\n1\n```", "unknown tags.*hide-imput.*hide-input"),
        ("```{code-cell}\n:name: x\n1\n```", "unknown cell options.*name"),
    ],
)
def test_a_mistyped_cell_option_is_an_error(book, cell, message):
    index = book.write(cell)
    with pytest.raises(MystError, match=message):
        notebooks.build(index, "book/one/first")


@pytest.mark.parametrize(
    "text",
    ["```{note}\nx", ":::{note}", "a {doc}`b`", "(a)=", "+++", ":::", "$$\nx\n$$ (a)", "{{ a }}"],
)
def test_raw_myst_is_seen(text):
    assert raw_myst(text)


@pytest.mark.parametrize("text", ["`{doc}`", "```python\n:::\n```", "$\\{a\\}`$", "a: b", "{a}"])
def test_code_and_maths_are_not_taken_for_raw_myst(text):
    assert raw_myst(text) == []


def test_check_names_what_is_missing_changed_and_orphaned(book):
    root, index = book.root, book.write("Text.\n\n```{code-cell}\n1\n```")
    assert any("first.ipynb is missing" in problem for problem in notebooks.check(index))

    notebooks.write(index, set(), execute=False)
    assert any("was never run" in problem for problem in notebooks.check(index))

    for path in (root / "book/notebooks").glob("*.ipynb"):
        notebook = notebooks.nbformat.read(path, as_version=4)
        for count, cell in enumerate((c for c in notebook.cells if c.cell_type == "code"), 1):
            cell.execution_count = count
        path.write_text(notebooks.dumps(notebook), encoding="utf-8")
    assert notebooks.check(index) == []

    (root / "book/notebooks/old.ipynb").write_text("{}")
    problems = "\n".join(notebooks.check(book.write("Other text.")))
    assert "first.ipynb is out of step with book/one/first.md" in problems
    assert "old.ipynb is orphaned" in problems
    assert "book_prose.txt is out of step" in problems


def test_prose_is_paragraphs_without_code_tables_and_markup(book):
    index = book.write(
        "A *vector* of $d_{k}$ numbers, `x`,\nsee {doc}`second` \\$1.\n\n```{note}\nNo.\n```\n\n"
        "| a |\n|---|\n| b |\n\n$$\ny\n$$\n\n## No heading\n\n```{code-cell}\n1\n```\n"
    )
    assert notebooks.prose(index) == "A vector of d_k numbers, x, see The second $1.\n"


def test_two_chapters_with_one_name_are_refused(book):
    book.write("x")
    (book.root / "_toc.yml").write_text(
        "root: book/intro\nparts:\n- chapters: [{file: book/one/first}, {file: book/two/first}]\n"
    )
    (book.root / "book/two").mkdir()
    (book.root / "book/two/first.md").write_text(FRONT + "# B\n", "utf-8")
    with pytest.raises(MystError, match=r"would both become first\.ipynb"):
        notebooks.chapter_files(BookIndex.read(book.root))
