"""The progress line: in a terminal, in a notebook, in a file."""

import io
import re
import sys
import types

import pytest
from training_runs import new_trainer

from tinytorch.core import blas_threads
from tinytorch.training import progress as module
from tinytorch.training.progress import Progress, duration


class Stream(io.StringIO):
    """A stream that says whether it is a terminal."""

    def __init__(self, terminal=False):
        super().__init__()
        self.isatty = lambda: terminal


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets, and a terminal of 120 columns."""
    now = types.SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(module.time, "monotonic", lambda: now.seconds)
    monkeypatch.setenv("COLUMNS", "120")
    return now


def written(total, steps=None, floor=None, validation=None, **stream):
    stream = Stream(**stream)
    progress = Progress(total, floor, stream)
    for step in steps or range(1, total + 1):
        progress.update(step, 1 / step, 64 * step, 0.5 * step, validation)
    progress.close()
    return stream.getvalue()


# A file or a pipe --------------------------------------------------------------------------------


@pytest.mark.parametrize("total", [10, 100, 137, 1000])
def test_a_file_gets_a_line_for_every_tenth_of_the_run(total):
    lines = written(total).splitlines()
    assert len(lines) == 10
    shown = [int(re.match(r"step ([\d,]+)/", line)[1].replace(",", "")) for line in lines]
    assert shown == [-(-total * tenth // 10) for tenth in range(1, 11)]


def test_format_of_a_line_in_a_file():
    assert written(1200, steps=[600, 1200], floor=0.25, validation=1.5).splitlines() == [
        "step 600/1,200 | loss 0.002, validation 1.500, floor 0.250 | 128 tokens/s | "
        "5 min 0 s left",
        "step 1,200/1,200 | loss 0.001, validation 1.500, floor 0.250 | 128 tokens/s | "
        "took 10 min 0 s",
    ]


# A terminal --------------------------------------------------------------------------------------


def screen(text):
    """What a terminal shows in the end: one line that was rewritten."""
    line = []
    for part in text.split("\r"):
        line[: len(part)] = part
    return "".join(line)


def test_terminal_rewrites_one_line_and_ends_it(clock):
    stream = Stream(terminal=True)
    progress = Progress(3, 0.5, stream)
    for step, loss in ((1, 1000.0), (2, 100.0), (3, 1.0)):
        progress.update(step, loss, 10_000 * 4 ** (3 - step), 1.0 * step)
        clock.seconds += 1
    progress.close()
    progress.close()  # harmless
    text = stream.getvalue()
    assert text.count("\r") == 3 and text.count("\n") == 1 and text.endswith("\n")
    assert screen(text[:-1]).rstrip() == (  # nothing of the longer lines before is left
        "step 3/3 | loss 1.000, floor 0.500 | 3,333 tokens/s | took 3 s"
    )


def test_terminal_is_not_redrawn_more_than_five_times_a_second(clock):
    stream = Stream(terminal=True)
    progress = Progress(1000, stream=stream)
    for step in range(1, 1000):
        clock.seconds += 0.01
        progress.update(step, 1.0, step, 1.0)
    assert 40 <= stream.getvalue().count("\r") <= 50  # in ten seconds
    progress.update(1000, 1.0, 1000, 1.0)
    assert screen(stream.getvalue()).startswith("step 1,000/1,000 ")  # but the end is


@pytest.mark.parametrize("columns", [120, 100, 80, 60, 30])
def test_a_line_never_wraps(clock, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    text = written(30_000, [12_345], floor=0.128, validation=10.123, terminal=True)
    line = text.rstrip("\n").lstrip("\r")
    assert len(line) < columns
    assert line.startswith("step 12,345/30,000 ")
    assert (" left" in line) == (columns >= 100)


def test_line_is_ended_when_a_run_fails(monkeypatch, clock):
    stream = Stream(terminal=True)
    monkeypatch.setattr(sys, "stdout", stream)
    trainer = new_trainer(progress=True)
    schedule = trainer.schedule
    trainer.schedule = lambda step: schedule(step) if step < 2 else 1 / 0
    with pytest.raises(ZeroDivisionError):
        trainer.run(5)
    assert stream.getvalue().endswith("\n")


# What slows it down ------------------------------------------------------------------------------


@pytest.fixture
def competing(monkeypatch):
    """Two threads of NumPy beside other programs: six seconds a step, one on a processor."""
    times = iter([(6.0 * i, 2.0 * i, 1.0 * i) for i in range(99)])
    monkeypatch.setattr(blas_threads, "clocks", lambda: next(times))


def test_a_run_whose_threads_compete_says_once_what_to_set(competing, clock):
    first, *rest = written(40, [4, 8]).splitlines()
    assert first == blas_threads.HINT and "set OPENBLAS_NUM_THREADS=1 before" in first
    assert [line.partition(" |")[0] for line in rest] == ["step 4/40", "step 8/40"]
    shown = written(5, terminal=True).split("\n")[0]  # above the line that is rewritten
    assert screen(shown) == blas_threads.HINT


def test_notebook_shows_the_hint_below_the_state(competing, outputs):
    Progress(1).update(1, 1.0, 64, 1.0)
    assert outputs[0][-1]["text/plain"].splitlines()[4:] == [blas_threads.HINT]


# A notebook --------------------------------------------------------------------------------------


@pytest.fixture
def outputs(monkeypatch):
    """The outputs of a cell in a pretended notebook, as lists of what each has shown."""
    outputs = []

    class Handle:
        def __init__(self, bundle):
            self.shown = [bundle]
            outputs.append(self.shown)

        def update(self, bundle, raw):
            assert raw
            self.shown.append(bundle)

    def display(bundle, raw, display_id):
        assert raw and display_id
        return Handle(bundle)

    ipython, parts = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    parts.display = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", parts)
    return outputs


def test_notebook_has_one_output_that_is_updated(outputs, clock, capsys):
    progress = Progress(2000, floor=0.5)
    for step in (1, 1000, 2000):
        progress.update(step, 1.0, 64 * step, 0.5 * step, validation=1.25)
        clock.seconds += 1
    progress.close()
    (shown,) = outputs
    assert [*shown[-1]] == ["text/plain"] and shown[0] == {"text/plain": "0 of 2,000 steps"}
    assert len(shown) == 4
    assert shown[-1]["text/plain"].splitlines() == [
        "step 2,000 of 2,000",
        "━" * 40,
        "loss 1.000, validation 1.250, floor 0.500",
        "128 tokens/s, took 16 min 40 s",
    ]
    assert capsys.readouterr().out == ""


def test_ipython_in_a_terminal_is_not_a_notebook(outputs, monkeypatch, capsys):
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: types.SimpleNamespace())
    Progress(1).update(1, 1.0, 64, 1.0)
    assert outputs == [] and capsys.readouterr().out.startswith("step 1/1")


CELL = """
import numpy as np
from tinytorch import GPT, Batches, Trainer
trainer = Trainer(GPT(5, 8, 1, 2, max_seq_len=8), Batches(np.arange(99) % 5, 2, 8), floor=0.0)
history = trainer.run(40)
"""


@pytest.mark.filterwarnings("ignore")  # of the machinery around the kernel
def test_saved_notebook_holds_only_the_last_state(monkeypatch):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    patience = dict.fromkeys(("timeout", "startup_timeout", "iopub_timeout"), 600)
    nbclient.NotebookClient(notebook, kernel_name="python3", **patience).execute()
    (output,) = notebook.cells[0].outputs
    assert output.output_type == "display_data" and [*output.data] == ["text/plain"]
    count, bar, losses, speed = output.data["text/plain"].splitlines()
    assert (count, bar) == ("step 40 of 40", "━" * 40)
    assert re.fullmatch(r"loss \d\.\d{3}, floor 0\.000", losses)
    assert re.fullmatch(r"[\d,]+ tokens/s, took \d+ s", speed)


# Times -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (61, "1 min 1 s"),
        (3599, "59 min 59 s"),
        (3600, "1 h 0 min"),
        (100_000, "27 h 46 min"),
    ],
)
def test_times_in_words(seconds, words):
    assert duration(seconds) == words


# The trainer's line ------------------------------------------------------------------------------


def test_trainer_shows_its_numbers(capsys):
    trainer = new_trainer(progress=True, floor=0.693)
    trainer.run(2)
    last = capsys.readouterr().out.splitlines()[-1]
    loss = trainer.history[-1]["loss"]
    assert last.startswith(f"step 2/2 | loss {loss:.3f}, floor 0.693 | ")


def test_a_resumed_run_counts_earlier_steps(capsys):
    trainer = new_trainer(progress=True)
    trainer.run(2)
    trainer.run(3)
    counts = [line.partition(" |")[0] for line in capsys.readouterr().out.splitlines()]
    assert counts == ["step 1/2", "step 2/2", "step 3/5", "step 4/5", "step 5/5"]


def test_the_time_left_counts_only_remaining_steps():
    stream = Stream(terminal=False)
    progress = Progress(total=30, stream=stream, begun=10)
    progress.update(20, 1.0, 64, seconds=5.0)  # ten steps took it, ten are to come
    assert stream.getvalue().endswith(" | 5 s left\n")
