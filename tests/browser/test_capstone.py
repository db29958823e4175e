"""The capstone in a browser: it takes a reader's parts, and gives a file and a page to keep."""

import subprocess
import sys

import pytest
from test_live import cell, ended, opened, press, rewrite  # noqa: F401
from test_solving import solve

from tinytorch_book.exercises.capstone.parts import Part, section
from tinytorch_book.stories import StoryGrammar

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.usefixtures("python_inside")]
CHAPTER = "book/capstone/your-gpt"
STRAIGHT = """
from tinytorch import Linear, Module

class MyMLP(Module):
    def __init__(self, embed_dim, hidden_dim, dropout_prob=0.0):
        self.linear1 = Linear(embed_dim, hidden_dim)
        self.linear2 = Linear(hidden_dim, embed_dim)

    def forward(self, x):
        return self.linear2(self.linear1(x))
"""


def numbered(visit, words):
    """The number of the first cell whose code has these words."""
    find = "(words) => tinytorchLive.cells.find((cell) => cell.original.includes(words)).number"
    return visit.page.evaluate(find, words)


def run_to(visit, last):
    """Run the cells of the chapter in their order, up to one; what they print."""
    run = """async (last) => {
        const told = [];
        for (const cell of tinytorchLive.cells.slice(0, last).filter((cell) => cell.runnable))
            told.push((await cell.press(), cell.output.text));
        return told.join('\\n');
    }"""
    return visit.page.evaluate(run, last)


def download(visit, number):
    """Press the button with which a cell offers a file; the file, under its own name."""
    with visit.page.expect_download() as given:
        cell(visit, number).locator(".tt-live__file").click()
    return given.value.suggested_filename, given.value.path().read_text(encoding="utf-8")


def test_solved_parts_become_a_file_that_runs_and_a_page_to_keep(opened, tmp_path):  # noqa: F811
    visit = opened("book/embeddings/token-embeddings")
    number = solve(visit, "ex-tok-lookup")
    greeted = cell(visit, number).locator(".tt-report__kept").inner_text()
    assert greeted.startswith(
        "The lookup is yours now: 1 of 22 parts for your GPT. Next open part: lookup gradient"
    )
    visit = opened(CHAPTER)
    assert visit.page.locator(".tt-parts").inner_text().endswith("1 of 22 parts are yours")
    assert visit.page.locator("#your-parts .tt-live__solved").count() == 1
    assert visit.page.locator("#part-lookup .tt-live__solved").inner_text() == "yours"
    training, last = numbered(visit, "steps = 600"), numbered(visit, "page = Keepsake(")
    code = visit.page.evaluate("(n) => tinytorchLive.cells[n - 1].original", training)
    rewrite(visit, training, code.replace("steps = 600", "steps = 2"))
    told = run_to(visit, last)
    assert "\nyours    lookup " in told and told.count("\nyours  ") == 1
    assert "1 of 22 parts yours" in told
    name, source = download(visit, numbered(visit, "(yours|an example)"))
    assert name == "your_gpt.py" and "def my_lookup(table, ids):" in source
    name, page = download(visit, last)
    assert name == "your-gpt.html" and "My own parts: 1 of 22." in page
    assert visit.problems == []

    (tmp_path / "your_gpt.py").write_text(source, encoding="utf-8")
    (tmp_path / "stories.txt").write_text(StoryGrammar().generate(100, seed=0), encoding="utf-8")
    sizes = ["--steps", "2", "--width", "16", "--layers", "1", "--window", "16"]
    command = [sys.executable, "-I", "your_gpt.py", "stories.txt", *sizes]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "nats a character on text held out" in done.stdout


def test_a_part_changed_to_wrong_code_is_named_and_left_out(opened):  # noqa: F811
    visit = opened("book/embeddings/token-embeddings")
    solve(visit, "ex-tok-lookup")
    keep = """(text) => {
        const key = Object.keys(localStorage).find((key) => key.endsWith(':parts lookup'));
        localStorage.setItem(key.replace('lookup', 'mlp'), JSON.stringify(text));
    }"""
    visit.page.evaluate(keep, section(Part("mlp", "MyMLP", STRAIGHT)))
    visit = opened(CHAPTER)
    told = run_to(visit, numbered(visit, "file = your_gpt(parts)"))
    assert "\nmlp is at fault: it changes the file's logits" in told
    assert "1 of 22 parts yours" in told
    number = numbered(visit, "(yours|an example)")
    press(visit, number)
    printed = ended(visit, number)
    assert "left out, mlp: it changes the file's logits" in printed
    assert visit.problems == []
