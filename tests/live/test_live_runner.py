"""What runs a cell in the page, here in plain Python: it needs no browser."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

STATIC = Path(__file__).resolve().parents[2] / "book" / "_static" / "live"


@pytest.fixture(autouse=True)
def no_figure_is_open():
    """A runner shows every open figure, and doctests leave theirs open."""
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


@pytest.fixture
def runner_module(monkeypatch):
    monkeypatch.syspath_prepend(str(STATIC))
    import live_runner

    return live_runner


@pytest.fixture
def page(runner_module):
    """A runner and the messages it has sent."""
    sent = []
    runner = runner_module.Runner(sent.append)
    runner.sent = sent
    return runner


def run(page, source):
    page.sent.clear()
    ok = page.run(textwrap.dedent(source).strip(), "Cell 1")
    return ok, page.sent


def texts(sent, kind):
    return [message["text"] for message in sent if message["kind"] == kind]


def test_lines_are_sent_as_printed_and_the_last_value_is_shown(page):
    ok, sent = run(
        page,
        """
        x = 3
        print("one")
        print("two", end="")
        x + 1
        """,
    )
    assert ok
    assert [m["kind"] for m in sent] == ["stream", "stream", "display"]
    assert "".join(texts(sent, "stream")) == "one\ntwo"
    assert texts(sent, "display") == ["4"]


def test_a_semicolon_and_none_show_nothing(page):
    assert run(page, "3;") == (True, [])
    assert run(page, "None") == (True, [])
    assert run(page, "") == (True, [])


def test_standard_error_is_sent_separately(page):
    _, sent = run(page, "import sys\nprint('careful', file=sys.stderr)")
    assert [(m["name"], m["text"]) for m in sent] == [("stderr", "careful\n")]


def test_a_progress_line_is_sent_at_its_carriage_return(page):
    _, sent = run(page, "print('10 %', end='\\r')\nprint('20 %', end='\\r', flush=True)")
    assert texts(sent, "stream") == ["10 %\r", "20 %\r"]


def test_long_containers_are_shown_one_item_a_line(page):
    _, sent = run(page, "{f'name {i}': 'x' * 30 for i in range(3)}")
    assert sent[0]["text"].count("\n") == 2
    _, sent = run(page, "['a' * 10] * 3")
    assert "\n" not in sent[0]["text"]


def test_a_traceback_begins_at_the_cell_and_quotes_its_lines(page):
    ok, sent = run(
        page,
        """
        def half(x):
            return x / 0

        half(1)
        """,
    )
    assert not ok
    (error,) = sent
    assert error["name"] == "ZeroDivisionError"
    assert "live_runner" not in error["text"]
    assert "return x / 0" in error["text"] and "Cell 1" in error["text"]
    assert error["text"].splitlines()[-1] == "ZeroDivisionError: division by zero"


def test_the_traceback_of_an_error_from_another_has_no_frames_of_the_runner(page):
    _, sent = run(
        page, "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError() from e"
    )
    assert "live_runner" not in sent[0]["text"]
    assert "direct cause" in sent[0]["text"]


def test_frames_of_packages_are_folded_and_the_readers_last_line_is_marked(page):
    run(page, "import numpy as np\nfrom tinytorch import Tensor\nx = Tensor(np.ones((3, 4)))")
    _, (error,) = run(page, "def f():\n    try:\n        x @ x\n    except ValueError:\n"
                            "        np.stack([x.data, x.data.T])\nf()")  # fmt: skip
    assert all("Cell 1" in place for place in re.findall('File "(.*)"', error["text"]))
    assert re.search("in f\n.*tinytorch.*in f\n.*numpy", error["whole"], re.DOTALL)
    assert error["marked"] in error["text"] and "line 5, in f\n" in error["marked"]
    assert error["marked"].split("\n")[1] == "    np.stack([x.data, x.data.T])"
    assert run(page, "1 / 0")[1][0]["whole"] == ""
    assert run(page, "def f(): g()\ndef g(): f()\nf()")[1][0]["text"].count("File") == 3


def test_a_syntax_error_points_at_its_position(page):
    ok, sent = run(page, "x = (1,\ny = 2")
    assert not ok
    assert sent[0]["name"] == "SyntaxError"
    assert "Traceback" not in sent[0]["text"] and "line " in sent[0]["text"]


def test_a_missing_name_is_named(page):
    _, sent = run(page, "print(vectors)")
    assert (sent[0]["name"], sent[0]["missing"]) == ("NameError", "vectors")


def test_exiting_python_is_only_an_error_of_the_cell(page):
    ok, sent = run(page, "raise SystemExit(3)")
    assert not ok and "SystemExit: 3" in sent[0]["text"]
    assert run(page, "1 + 1")[0]


def test_an_interrupt_says_stopped(page):
    ok, sent = run(page, "raise KeyboardInterrupt")
    assert not ok and sent[0]["text"] == "Stopped."


def test_skipped_magic_is_reported_and_lines_keep_their_numbers(page):
    _, sent = run(page, "%matplotlib inline\n!ls -l\n%timeit f()\n1 / 0")
    shell, magic, error = sent
    assert shell["text"] == "Line 2 was left out (!ls -l): a page has no shell."
    assert "Line 3" in magic["text"] and "JupyterLite" in magic["where"]
    assert "line 4" in error["text"]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import torch", "torch cannot be installed in this page"),
        ("from sklearn.svm import SVC", "sklearn cannot be installed in this page"),
        ("%pip install torch\n1 / 0", "packages cannot be installed in this page"),
        ("name = input('Who? ')", "A page cannot wait for an answer."),
        ('raise RuntimeError("can\'t start new thread")', "A page has one thread"),
    ],
)
def test_unsupported_features_are_named_with_where_they_work(page, source, said, monkeypatch):
    for name in ("torch", "sklearn"):  # this machine may have them, a page has not
        monkeypatch.setitem(sys.modules, name, None)
    ok, sent = run(page, source)
    assert not ok
    (limit,) = [message for message in sent if message["kind"] == "limit"]
    assert said in limit["text"] and "Colab" in limit["where"]


@pytest.mark.parametrize(
    "source",
    [
        "import tinytorch.nothing",
        "import tinytorch_book.nothing",
        "1 / 0",
        "raise NotImplementedError",
    ],
)
def test_an_error_of_the_cell_is_not_reported_as_a_limit_of_the_page(page, source):
    assert [message["kind"] for message in run(page, source)[1]] == ["error"]


FACE = """import sys, live_runner
runner = live_runner.Runner(lambda message: None)
for cell in sys.argv[1:]:
    runner.run(cell)
import matplotlib
print(matplotlib.rcParams["axes.facecolor"])
"""


@pytest.mark.parametrize(
    ("cells", "face"),
    [
        (["import matplotlib.pyplot as plt"], "#fffdf9"),
        (["def draw():\n    from matplotlib import cm"], "#fffdf9"),
        (["x = 1"], "white"),
        (
            ["import matplotlib as m", "m.rcParams['axes.facecolor'] = 'red'", "import matplotlib"],
            "red",
        ),
    ],
)
def test_a_cell_that_imports_matplotlib_begins_in_the_style_of_the_book(cells, face):
    path = os.pathsep.join([str(STATIC), *sys.path])
    command = [sys.executable, "-c", FACE, *cells]
    came = subprocess.check_output(command, text=True, env={**os.environ, "PYTHONPATH": path})
    assert came.strip() == face


def test_a_smaller_run_skips_the_assertions_of_the_full_one(page):
    source = "steps = 3\nif steps:\n    assert steps > 100\nprint(steps)\nassert steps > 100"
    assert not page.run(source)
    page.sent.clear()
    assert page.run(source, asserts=False)
    assert texts(page.sent, "stream") == ["3\n"]


def test_cells_that_depend_on_a_smaller_run_skip_their_assertions(page):
    page.run("import math\nsteps = 3", asserts=False)
    assert page.follows_smaller("curve = [steps]") and not page.follows_smaller("math.pi")
    assert page.run("curve = [steps]\nassert steps > 100")
    assert page.follows_smaller("print(curve)")
    page.run("steps = 600")
    assert not page.follows_smaller("print(steps)") and page.follows_smaller("print(curve)")


def test_a_model_that_a_smaller_run_has_trained_gives_other_numbers_too(page):
    page.run("from tinytorch import Linear\nmodel = Linear(2, 2)")
    page.run("steps = 3\nfor p in model.parameters(): p.data *= steps", asserts=False)
    assert page.follows_smaller("model([1, 2])") and not page.follows_smaller("Linear(2, 2)")


def test_the_source_of_a_function_of_a_cell_can_be_read(page):
    _, sent = run(page, "import inspect\ndef f():\n    return 7\nprint(inspect.getsource(f))")
    assert "return 7" in sent[0]["text"]


def test_display_updates_replace_their_output(page):
    ok, sent = run(page, "h = display('a', display_id=True)\nh.update('b')\ndisplay('c')")
    assert ok
    slots = [m["slot"] for m in sent]
    assert slots[0] == slots[1] != slots[2]
    assert texts(sent, "display") == ["'a'", "'b'", "'c'"]


def test_a_report_says_whether_the_exercise_is_solved(page):
    source = "from tinytorch_book.exercises.cases import case\n"
    source += "from tinytorch_book.exercises.exercise import exercise\n@exercise(points=2)\n"
    source += "def double(answer):\n    yield case('doubles', answer, 3, expected=6)\n"
    source += "    yield case('doubles two', answer, 2, expected=4)\n"
    run(page, source)
    _, (early, late) = run(page, "double(lambda x: x * x)")
    states = [[check["state"] for check in told["checks"]] for told in (early, late)]
    assert states == [["not yet", "not reached"], ["not yet", "passed"]]
    assert (late["kind"], late["passed"], late["slot"]) == ("report", False, early["slot"])
    assert late["checks"][0]["got"] == "9" and late["text"].startswith("double: not yet")
    _, (told,) = run(page, "double(lambda x: 2 * x)")
    assert told["passed"] and [check["state"] for check in told["checks"]] == ["passed", "passed"]


def test_what_the_capstone_makes_is_handed_on_as_a_file_and_the_readers_own_class_is_not(page):
    source = "class Made:\n    file = 'your_gpt.py', 'x = 1'\nMade()"
    assert [message["kind"] for message in run(page, source)[1]] == ["display"]
    _, (file, _) = run(
        page, "Made.__module__ = 'tinytorch_book.exercises.capstone.your_gpt'\nMade()"
    )
    assert file == {"kind": "file", "name": "your_gpt.py", "text": "x = 1"}


def test_a_report_names_the_cells_that_its_answer_needs(page):
    run(page, "from tinytorch_book import check")
    run(page, "unrelated = 1")
    run(page, "def half(x):\n    return x")
    run(page, "def half(x):\n    return x / 2")
    _, (told, *_) = run(page, "def f(x):\n    return half(x)\ncheck.token_cost(f)")
    assert [cell.splitlines()[-1] for cell in told["cells"]] == [
        "from tinytorch_book import check",
        "    return x / 2",
        "check.token_cost(f)",
    ]


def test_an_object_that_imitates_a_report_solves_nothing(page):
    _, sent = run(page, "class Report:\n    points = 1\n    name = 'double'\nReport()")
    assert [m["kind"] for m in sent] == ["display"]


def test_installed_runner_is_main_and_draws_figures(runner_module, monkeypatch):
    for name in ("__main__", "IPython", "IPython.display"):
        if name in sys.modules:
            monkeypatch.setitem(sys.modules, name, sys.modules[name])
        else:
            monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib_inline.config", None)  # a page has none
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setattr(runner_module, "page", None)
    import matplotlib as mpl
    import matplotlib.pyplot as plt
    from _ext.directives.inline_svg import inline_svg

    backend = mpl.get_backend()
    sent = []
    runner = runner_module.Runner(sent.append, inline_svg)
    try:
        runner.install()
        plt.switch_backend("module://page_backend")
        source = "from tinytorch import plots\nimport matplotlib.pyplot as plt\n"
        source += (
            "ax = plots.bars(['a'], [1])\nplt.show()\nprint('after')\nax = plots.bars(['b'], [2])"
        )
        assert runner.run(source, "Cell 2", "One bar.", "tt-live-2")
    finally:
        plt.switch_backend(backend)
        for name in ("IPython", "IPython.display", "page_backend"):
            sys.modules.pop(name, None)
    assert [m["kind"] for m in sent] == ["figure", "stream", "figure"]
    assert 'aria-label="One bar."' in sent[0]["svg"] and "var(--tt-ink" in sent[0]["svg"]
    assert 'id="tt-live-2-1"' in sent[0]["svg"] and 'id="tt-live-2-2"' in sent[2]["svg"]
    assert plt.get_fignums() == []
