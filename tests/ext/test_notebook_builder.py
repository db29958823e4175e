"""Notebooks from the resolved tree: what becomes of each construct, and what is refused."""

import io
import json
import os
import sys
from datetime import date
from types import SimpleNamespace

import nbformat
import pytest
from _ext.addresses import ROOT
from _ext.execution import cached_runs
from _ext.notebooks import builder
from _ext.notebooks.plain_markdown import CannotShow, PlainMarkdown, plain, prose
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

FRONT = """\
---
jupytext: {text_representation: {extension: .md, format_name: myst}}
kernelspec: {display_name: Python 3, language: python, name: python3}
---

"""
SITE = "https://someone.github.io/a-book/"
FIRST = """\
(start)=
# The first

```{chapter-card}
:question: what: is it?
:build: "a `table`: yes"
:needs: one/second, nothing else
:difficulty: 2
- say it
```

A *vector* of $d_{k}$ numbers, `x`, see {doc}`second` \\$1 and {ref}`there`, as {cite:t}`k` said
in snake_case, 2 * 3 < 4 and {term}`many heads <head, a>` {cite:p}`k`. "Isn't" it [on](second.md)?

```{code-cell} ipython3
---
tags: [hide-input]
mystnb: {image: {alt: A falling  line.}, figure: {caption: The *loss*., name: fig-loss}}
---
print("drawn")
```

$$
y
$$ (eq-y)

By {eq}`eq-y` and {eq}`eq-x`, and in {numref}`fig-loss`.

```{note}
See {doc}`second`.
```

```{margin}
Not `needed`.
```

```{admonition} What you may believe for now
:class: believe
It is `1`.
```

:::{admonition} Hint $d$
:class: dropdown
Add `1`.
:::

```{exercise} Add
:label: ex-add
:kind: debug
Add {kbd}`1`.
```

Then {ref}`ex-add`.

```{code-cell} ipython3
:tags: [exercise-stub]
1
```

```{reflect}
How many?

- [x] `3`, or $n$

  One each.
- [ ] none

  None is too few.
```

```{literalinclude} ../../package/code.py
:language: python
:pyobject: one
```

```{prediction} letters
How many letters has `a`?

- none
- [x] **one**, or $1$

  Count it.
```

| a | b |
|--:|:-:|
| 1 | x \\| y |

- one

  ```{tip}
  two
  ```
- three

1. first
2. second

```{drawing} block
:caption: Its *two* orders.
```
"""
SECOND = "# The second\n\n$$\nx\n$$ (eq-x)\n\n(there)=\n## There\n\nWords.\n"
END = """\
# The end

```{glossary}
Head, a
  One of many.
```

```{bibliography}
```
"""
FILES = {
    "index.md": "# Hello\n\n```{toctree}\none/first\none/second\nend\n```\n",
    "one/first.md": FRONT + FIRST,
    "one/second.md": FRONT + SECOND,
    "end.md": END,
    "references.bib": "@misc{k, title={T}, author={Ada Bee and Cy Dee and Eve Eff}, year={1999}}\n",
    "../package/code.py": 'def one():\n    """Give 1."""\n    return 1\n\n\ndef two(): ...\n',
}
# Sphinx and its extensions may warn of their own deprecations
pytestmark = pytest.mark.filterwarnings("default")


def execute(notebook, timeout):
    """Stands in for a run: every cell prints 1, and one draws."""
    picture = {"image/svg+xml": "<svg/>", "text/plain": "<Figure>"}
    for cell in (c for c in notebook.cells if c.cell_type == "code"):
        printed = nbformat.v4.new_output("stream", text="1\n")
        cell.outputs = [nbformat.v4.new_output("display_data", data=picture)]
        cell.outputs = [printed] if "mystnb" not in cell.metadata else cell.outputs
    return SimpleNamespace(err=None, time=1.0)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder into which a book of two chapters and an appendix was built."""
    root = tmp_path_factory.mktemp("book")
    for name, text in FILES.items():
        path = root / "book" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    extensions = [
        "myst_nb",
        "_ext.execution.cached_runs",
        "_ext.launch_links",
        "_ext.directives.chapter_card",
        "_ext.directives.questions",
        "_ext.directives.folds_and_predictions",
        "_ext.directives.citations",
        "_ext.notebooks.builder",
    ]
    extensions.append("sphinx_book_theme")
    settings = {
        "extensions": [*extensions, "_ext.directives.exercises", "sphinxcontrib.bibtex"],
        "root_doc": "book/index",
        "exclude_patterns": ["package"],
        "nb_execution_mode": "cache",
        "nb_mime_priority_overrides": [["notebooks", "image/svg+xml", 1]],
        "numfig": True,
        "numfig_format": {"figure": "Fig. %s", "table": "Table %s", "exercise": "Exercise %s"},
        "math_numfig": True,
        "myst_enable_extensions": ["dollarmath", "colon_fence"],
        "html_theme_options": {"repository_url": "https://github.com/someone/a-book"},
        "bibtex_bibfiles": ["book/references.bib"],
        "bibtex_reference_style": "author_year_round",
    }
    warnings = io.StringIO()
    with docutils_namespace(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(cached_runs, "execute", execute)
        app = Sphinx(
            *(root, None, root / "out", root / "trees", "notebooks", settings),
            status=None,
            warning=warnings,
            freshenv=True,
        )
        app.build()
    assert warnings.getvalue() == ""
    return root / "out"


@pytest.fixture(scope="module")
def cells(built):
    """The cells of the first chapter."""
    return json.loads((built / "first.ipynb").read_text(encoding="utf-8"))["cells"]


@pytest.fixture(scope="module")
def text(cells):
    """The chapter's Markdown."""
    return "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


def test_cells_stand_in_the_order_of_the_page_with_fixed_ids(cells):
    assert [cell["id"] for cell in cells] == [f"first-{n:03d}" for n in range(len(cells))]
    kinds = "".join(cell["cell_type"][0] for cell in cells)
    assert kinds == "mccmmcm", "text, Colab, figure, its caption, text, stub, text"


def test_the_first_cell_has_the_title(cells):
    assert "# The first\n" in "".join(cells[0]["source"])


@pytest.mark.parametrize(("set_before", "threads"), [({}, 1), ({"OPENBLAS_NUM_THREADS": "4"}, 4)])
def test_the_cell_below_the_title_sets_one_thread_and_installs_what_is_missing(
    cells, monkeypatch, set_before, threads
):
    source = "".join(cells[1]["source"])
    asked, limits = [], []
    shell = SimpleNamespace(run_line_magic=lambda *words: asked.append(words))
    control = SimpleNamespace(threadpool_limits=limits.append)
    monkeypatch.setattr(os, "environ", {**set_before})
    exec(source, {"get_ipython": lambda: shell})
    assert os.environ == {"OPENBLAS_NUM_THREADS": str(threads)} and asked == limits == []
    monkeypatch.setitem(sys.modules, "tinytorch", None)  # as where nothing is installed
    monkeypatch.setitem(sys.modules, "threadpoolctl", control)
    exec(source, {"get_ipython": lambda: shell})
    repository = "git+https://github.com/someone/a-book"
    assert asked == [("pip", f"install -q 'tinytorch-book @ {repository}' threadpoolctl")]
    assert limits == [threads], "NumPy may have been loaded before this cell"
    assert cells[1]["metadata"]["tags"] == ["remove-cell"]


def test_a_drawing_is_the_file_of_the_site_with_its_words_and_caption(text):
    file = "https://someone.github.io/a-book/_static/drawings/block.svg"
    assert "![A block in its two orders. Pre-norm: the stream" in text
    assert f"goes through it.]({file})\n\nIts *two* orders." in text


def test_code_keeps_its_tags_and_the_outputs_of_the_run(cells):
    figure, stub = cells[2], cells[5]
    assert figure["metadata"] == {"jupyter": {"source_hidden": True}, "tags": ["hide-input"]}
    assert stub["metadata"] == {"tags": ["exercise-stub"]}
    assert [cell["execution_count"] for cell in (cells[1], figure, stub)] == [1, 2, 3]
    assert "".join(stub["outputs"][0]["text"]) == "1\n"


def test_a_figure_has_its_number_caption_and_description(cells):
    note = "".join(cells[3]["source"])
    assert note == "**Fig. 1:** The *loss*.\n\n*What it shows:* A falling line."


def test_a_side_note_is_a_quotation(text):
    assert "\n\n> Not `needed`.\n\n" in text


def test_a_card_needs_no_script(text):
    assert '<a id="start"></a>\n\n# The first\n\n| | |\n|---|---|' in text
    assert "| **The question** | what: is it? |" in text
    assert "| **You build** | a `table`: yes |" in text
    assert f"| **You need** | [The second]({SITE}book/one/second.html), nothing else |" in text
    assert "| **Difficulty** | 2 of 5 |" in text
    assert f"| **On the site** | [The first]({SITE}book/one/first.html) |" in text
    assert "At the end you can\n\n- say it" in text


def test_links_lead_to_the_site_with_sphinxs_own_words(text):
    assert f"see [The second]({SITE}book/one/second.html) \\$1" in text
    assert f"[There]({SITE}book/one/second.html#there)" in text
    assert f"[many heads]({SITE}book/end.html#term-Head-a)" in text
    assert f"[on]({SITE}book/one/second.html)" in text


def test_citations_lead_to_the_bibliography(text):
    assert f"Bee *et al.* ([1999]({SITE}book/end.html)) said" in text
    assert f"([Bee *et al.*, 1999]({SITE}book/end.html))" in text


def test_what_markdown_would_take_for_markup_is_escaped(text):
    assert "in snake_case, 2 \\* 3 < 4 and" in text


def test_equations_keep_their_number(text):
    assert '<a id="equation-eq-y"></a>\n\n$$\ny \\tag{1}\n$$' in text
    assert f"By [(1)]({SITE}book/one/first.html#equation-eq-y)" in text
    assert f"[(2)]({SITE}book/one/second.html#equation-eq-x)" in text


def test_a_note_is_quoted_and_a_hint_folds(text):
    assert f"> **Note**\n>\n> See [The second]({SITE}book/one/second.html)." in text
    assert "<details>\n<summary>Hint $d$</summary>\n\nAdd `1`.\n\n</details>" in text


def test_what_may_be_believed_is_quoted_and_mentioned_below_the_card(text):
    assert "> **What you may believe for now**\n>\n> It is `1`.\n" in text
    said = "\n\nNo maths? A box *What you may believe for now* lets you skip a derivation.\n"
    assert text.index(" |\n") < text.index(said) < text.index("At the end you can")


def test_an_exercise_has_its_number_and_place(text):
    heading = '<a id="ex-add"></a>\n\n### Exercise 1: Add (debug it)\n\nAdd <kbd>1</kbd>.'
    assert heading in text
    assert f"Then [Exercise 1]({SITE}book/one/first.html#ex-add)." in text


def test_a_question_unfolds_choice_by_choice(text):
    assert "How many?\n\n<details>\n<summary><code>3</code>, or $n$</summary>" in text
    assert "**Right.** One each." in text and "**Not quite.** None is too few." in text


def test_a_prediction_is_a_question_with_choices_that_do_not_tell_which_is_right(text):
    question = "How many letters has `a`?\n\n- none\n- **one**, or $1$\n\n"
    reasons = "<details>\n<summary>Choice by choice</summary>\n\n- **one**, or $1$: Count it.\n"
    assert f"{question}{reasons}\n</details>\n\n| a | b |" in text


def test_source_is_included_as_it_stands_in_the_file(text):
    assert '```python\ndef one():\n    """Give 1."""\n    return 1\n```' in text
    url = "https://github.com/someone/a-book/blob/main/package/code.py"
    assert f"*From [package/code.py, `one`]({url}).*" in text
    assert "two()" not in text


def test_a_table_keeps_its_sides_and_bars(text):
    assert "| a | b |\n|--:|:-:|\n| 1 | x \\| y |" in text


def test_lists_keep_what_stands_in_them(text):
    assert "- one\n\n  > **Tip**\n  >\n  > two\n- three\n\n1. first\n2. second" in text


def test_prose_is_paragraphs_without_markup(built):
    lines = (built / "book_prose.txt").read_text(encoding="utf-8").splitlines()
    assert lines[0] == (
        "A vector of d_k numbers, x, see The second $1 and There, as Bee et al. (1999) said "
        'in snake_case, 2 * 3 < 4 and many heads (Bee et al., 1999). "Isn\'t" it on?'
    )
    assert lines[1:] == ["By (1) and (2), and in Fig. 1.", "Then Exercise 1.", "", "Words."]


# What is refused ------------------------------------------------------------------------------


@pytest.fixture
def writer(tmp_path):
    """A writer of a page, without Sphinx."""
    config = SimpleNamespace(book_repository="https://github.com/a/b", book_branch="main")
    builder = SimpleNamespace(env=None, srcdir=tmp_path, config=config, get_target_uri=str)
    return PlainMarkdown(builder, "page")


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (nodes.topic(), "a topic node cannot be shown"),
        (nodes.paragraph("", "", nodes.footnote_reference()), "a footnote_reference node"),
        (nodes.container(nb_element="cell_code"), "a code cell inside something"),
        (nodes.compound(), "a compound node"),
        (nodes.comment("", "x"), "a line that begins with % is one"),
        (nodes.figure("", nodes.image(uri="a.svg")), "needs :alt: text"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nodes.Node) else "",
)
def test_what_cannot_be_shown_is_an_error_that_says_where(writer, node, message):
    node.source, node.line = "chapter.md", 7
    with pytest.raises(CannotShow, match=message) as error:
        writer.block(node)
    assert str(error.value).startswith("chapter.md:7: ") or node.children


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"tags": ["hide-imput"]}, r"unknown cell tags \['hide-imput'\]; allowed: .*hide-input"),
        ({"name": "x"}, r"unknown cell options \['name'\]; allowed: compare, live, mystnb, tags"),
    ],
)
def test_a_mistyped_cell_option_is_an_error(metadata, message):
    cell = nbformat.v4.new_code_cell("1", metadata=metadata)
    with pytest.raises(CannotShow, match=message):
        builder.allowed_tags(cell, nodes.container())


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("stdout", "<object at 0x7f00aabbccdd>"),
        ("stdout", "Generator(PCG64) at 0x7F99AB"),
        ("stderr", "Warning: old"),
    ],
)
def test_a_memory_address_or_a_warning_is_refused(name, said):
    output = nbformat.v4.new_output("stream", name=name, text=said)
    cell = nbformat.v4.new_code_cell("1", outputs=[output], id="x-000")
    with pytest.raises(CannotShow, match="x-000"):
        builder.plain_outputs(cell)


def test_pictures_are_left_out_of_the_outputs_and_streams_merged():
    picture = {"image/svg+xml": "<svg/>", "text/plain": "<Figure>"}
    outputs = [
        nbformat.v4.new_output("stream", text="a\n"),
        nbformat.v4.new_output("stream", text="b\n"),
        nbformat.v4.new_output("display_data", data=picture, metadata={"needs": "light"}),
        nbformat.v4.new_output("error", ename="E", evalue="no", traceback=["/home/me/x.py"]),
    ]
    cell = nbformat.v4.new_code_cell("1", outputs=outputs)
    stream, figure, error = builder.plain_outputs(cell)
    assert stream.text == "a\nb\n"
    assert figure.data == {"text/plain": "<Figure>"} and figure.metadata == {}
    assert error.traceback == ["E: no"]


@pytest.mark.parametrize(
    ("line", "escaped"),
    [("- 1", "\\- 1"), ("# 1", "\\# 1"), ("1. x", "1\\. x"), ("2.5", "2.5"), ("-1", "-1")],
)
def test_the_start_of_a_line_is_never_a_list_or_a_heading(writer, line, escaped):
    assert writer.block(nodes.paragraph("", line)) == escaped


def test_formulas_in_prose_become_plain_text():
    formula = nodes.math("", r"\frac{Q K^\top}{\sqrt d} \le \mathbf{x}_i")
    assert plain(formula) == "QK^top/√d ≤ x_i" or plain(formula) == "Q K^top/√d ≤ x_i"
    assert prose(nodes.section("", nodes.title("", "x"), nodes.bullet_list())) == []


# The committed notebooks ----------------------------------------------------------------------


def stored(root, folder, source, output, *, tags=(), name="one"):
    """Write a notebook of one cell."""
    return store(root, folder, (source, output, tags), name=name)


def store(root, folder, *cells, name="one"):
    """Write a notebook of cells: source, what is printed, tags."""
    made = []
    for number, (source, output, tags) in enumerate(cells):
        outputs = [nbformat.v4.new_output("stream", text=output)]
        cell = nbformat.v4.new_code_cell(source, outputs=outputs, metadata={"tags": list(tags)})
        cell.id, cell.execution_count = f"{name}-{number:03d}", number + 1
        made.append(cell)
    path = root / folder / f"{name}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(builder.dumps(nbformat.v4.new_notebook(cells=made)), encoding="utf-8")
    return path


@pytest.fixture
def tree(tmp_path, request):
    """A tree whose committed notebook is that of the last build."""
    for folder in (builder.FRESH, builder.NOTEBOOKS):
        stored(tmp_path, folder, "f()", "1\n")
    for path, first in (
        (builder.FRESH / "book_prose.txt", ""),
        (builder.PROSE, "Version 9, 2026\n"),
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"{first}Words.\n", encoding="utf-8")
    rules = tmp_path / builder.VARYING
    rules.parent.mkdir(parents=True)
    rules.write_bytes((request.config.rootpath / builder.VARYING).read_bytes())
    assert builder.check(tmp_path) == []
    return tmp_path


def test_a_changed_output_is_out_of_step_until_it_is_written(tree):
    stored(tree, builder.FRESH, "f()", "2\n")
    (problem,) = builder.check(tree)
    assert "one.ipynb is out of step with the book (first: one-000): run `make" in problem
    builder.write(tree)
    assert builder.check(tree) == []


def test_a_missing_and_an_orphaned_notebook_are_named(tree):
    stored(tree, builder.FRESH, "g()", "2\n", name="two")
    stored(tree, builder.NOTEBOOKS, "h()", "2\n", name="old")
    problems = "\n".join(builder.check(tree))
    assert "two.ipynb is missing" in problems
    assert "old.ipynb is orphaned" in problems
    builder.write(tree)
    assert builder.check(tree) == []


@pytest.mark.parametrize(
    ("was", "now", "tags"),
    [("took 0.2 s\n", "took 3 s\n", []), ("0.2\n", "0.3\n", ["nbval-ignore-output"])],
    ids=["a time", "an ignored output"],
)
def test_what_two_runs_may_print_differently_stays_as_it_is_committed(tree, was, now, tags):
    committed = stored(tree, builder.NOTEBOOKS, "f()", was, tags=tags)
    before = committed.read_bytes()
    stored(tree, builder.FRESH, "f()", now, tags=tags)
    assert builder.check(tree) == []
    builder.write(tree)
    assert committed.read_bytes() == before
    stored(tree, builder.FRESH, "g()", now, tags=tags)
    builder.write(tree)
    assert now.strip() in committed.read_text(encoding="utf-8"), "other code, other output"


@pytest.mark.parametrize(
    ("code", "output"), [("f()", "2\n"), ("g()", "1\n")], ids=["another number", "other code"]
)
def test_all_outputs_of_a_notebook_are_of_the_same_run(tree, code, output):
    """Also those that are not compared, and times."""
    times = ("clock()", "0.2\n", ["nbval-ignore-output"]), ("f()", "took 0.2 s\n", [])
    later = ("clock()", "0.3\n", ["nbval-ignore-output"]), ("f()", "took 3 s\n", [])
    committed = store(tree, builder.NOTEBOOKS, ("f()", "1\n", []), *times)
    store(tree, builder.FRESH, ("f()", "1\n", []), *later)
    assert builder.check(tree) == []
    fresh = store(tree, builder.FRESH, (code, output, []), *later)
    assert "(first: one-000)" in builder.check(tree)[0]
    builder.write(tree)
    assert committed.read_bytes() == fresh.read_bytes()


@pytest.mark.parametrize(
    ("now", "same"),
    [("loss\n3.1\ntook 3 s\n", True), ("loss\n3.3\ntook 3 s\n", False)],
    ids=["within the tolerance", "beyond it"],
)
def test_numbers_and_times_at_the_start_of_a_line_are_compared_as_such(now, same):
    def run(text):
        output = nbformat.v4.new_output("stream", text=text)
        metadata = {"compare": {"within": "5%"}}
        cell = nbformat.v4.new_code_cell("f()", outputs=[output], metadata=metadata)
        return nbformat.v4.new_notebook(cells=[cell])

    rules = builder.varying(ROOT)
    assert builder.agrees(run(now), run("loss\n3.0\ntook 0.2 s\n"), rules) is same


def test_a_sentence_changes_the_corpus_only_at_a_release(tree):
    def corpus():
        return (tree / builder.PROSE).read_text(encoding="utf-8")

    before = corpus()
    builder.write_corpus(tree, date(2026, 12, 1))
    assert corpus() == before, "the same prose stays the same version"
    (tree / builder.FRESH / "book_prose.txt").write_text("Other words.\n", encoding="utf-8")
    builder.write(tree)
    assert corpus() == before and builder.check(tree) == []
    builder.write_corpus(tree, date(2026, 12, 1))
    assert corpus() == "Version 10, 2026-12-01\nOther words.\n"


def test_without_a_build_there_is_nothing_to_compare(tmp_path, capsys):
    assert builder.main(["--check", "--root", str(tmp_path)]) == 1
    assert "holds no notebooks: run `make notebooks`" in capsys.readouterr().err
