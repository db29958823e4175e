"""Files of saved work are marked by what their code does, whatever else they say or try."""

import csv
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest
from _ext.teaching.nbgrader_course import chapters

from tinytorch.exercises import apart, handed_in
from tinytorch.exercises.__main__ import main
from tinytorch.exercises.handed_in import LARGEST, Marks, as_csv, marks_of, marks_of_all

RIGHT = """\
def my_cost(vocab_size, embed_dim, rest, tied):
    tables = vocab_size * embed_dim * (1 if tied else 2)
    return tables / (tables + rest), 16 * tables
"""
WRONG = RIGHT.replace("16", "4")
CALL = "check.token_cost(my_cost)"


def saved(path, sources, **other):
    kept = {"solved": {"ex-tok-cost": True}, "sources": sources}
    path.write_text(json.dumps({"book": "tinytorch", "version": 1, "kept": kept, **other}))
    return path


def verdict(code, seconds=30):
    """What a process of its own says of an answer to one exercise."""
    cells = ["import numpy as np\nfrom tinytorch import check", code]
    return handed_in._told("token_cost", cells, seconds)


# Answers -------------------------------------------------------------------------------------


def test_the_solutions_of_the_book_are_all_solved(tmp_path):
    sources = {
        e.check: [*chapter.needed, f"{e.stub}\n\n{e.solution}\n{e.call}"]
        for chapter in chapters()
        for e in chapter.exercises
    }
    marks = marks_of("anna", [saved(tmp_path / "all.json", sources)])
    assert (marks.problem, marks.notes) == ("", {})
    worth = {name: check.points for name, check in apart.checks().items()}
    assert marks.points == worth and len(worth) > 120


def test_right_wrong_and_empty_answers_get_what_they_are_worth():
    assert verdict(f"{RIGHT}\n{CALL}") == {"verdict": "solved", "note": ""}
    told = verdict(f"{WRONG}\n{CALL}")
    assert told["verdict"] == "not yet" and told["note"].startswith("the bytes of")
    assert verdict(f"def my_cost(*given):\n    ...\n{CALL}")["note"] == "nothing written yet"
    assert verdict(RIGHT) == {"verdict": "not yet", "note": "it does not call check.token_cost"}
    assert "SyntaxError" in verdict("def")["note"]
    assert "my_cost" in verdict(CALL)["note"]


def test_what_fails_beside_an_answer_costs_nothing():
    beside = "import matplotlib.pyplot as plt\nplt.plot([1])\nprint(1 / 0)"
    assert verdict(f"{beside}\n{RIGHT}\n{CALL}\nprint('done')")["verdict"] == "solved"


def test_a_module_that_cannot_be_imported_is_named():
    body = RIGHT.replace("    tables", "    sys.maxsize\n    tables", 1)
    told = verdict(f"import sys\n{body}\n{CALL}")
    assert told["verdict"] != "solved" and "sys" in told["note"]
    told = verdict(f"from decimal import Decimal\n{WRONG}\n{CALL}")
    assert told["verdict"] == "not yet" and told["note"].startswith("the bytes of")
    assert told["note"].endswith("; an answer cannot import decimal")


def test_the_special_methods_that_an_answer_may_write_are_python_s():
    kinds = (int, str, list, dict, np.ndarray, type, type(iter(())), tempfile.TemporaryDirectory)
    known = {name for kind in kinds for name in dir(kind)} | {"__post_init__"}
    assert {f"__{name}__" for name in apart._DUNDERS} <= known


# Cheats --------------------------------------------------------------------------------------

TRY = "\ntry:\n    {}\nexcept Exception:\n    pass\n"
ANYTHING = "(lambda *a, **k: True)"
CHEATS = {
    "says so": "print('solved')\nprint('{\"verdict\": \"solved\"}')",
    "another check": f"check.token_cost = {ANYTHING}",
    "another check by import": f"import tinytorch\ntinytorch.exercises.token_cost = {ANYTHING}",
    "its own check": f"class check:\n    token_cost = {ANYTHING}",
    "a comparison that agrees": f"import tinytorch.exercises.values as v\nv.same = {ANYTHING}",
    "a report that is true": "from tinytorch.exercises.report import Report\n"
    "Report.__bool__ = lambda self: True",
    "a report that is true, by its class": f"type({CALL}).__bool__ = lambda self: True",
    "a report without cases that fail": f"type({CALL}).cases = []",
    "NumPy that agrees": "np.allclose = np.array_equal = np.isclose = np.all = "
    + ANYTHING,
    "builtins that agree": f"setattr(__builtins__, 'all', {ANYTHING})",
    "an exit": "raise SystemExit(0)",
    "an exit by its name": "exit(0)",
    "the system's exit": "import os\nos._exit(0)",
    "the modules of Python": "import sys\nsys.modules.clear()",
    "the modules through a library": "import statistics\nstatistics.sys.modules.clear()",
    "all classes": "().__class__.__base__.__subclasses__()",
    "all classes by getattr": "getattr((), '__cl' + 'ass__')",
    "globals of a function": "np.sum.__wrapped__.__globals__",
    "frames": "g = (i for i in '')\ng.gi_frame.f_back",
    "an attribute by its name": "import operator\noperator.attrgetter('__globals__')(np.sum)",
    "a format": "import string\nstring.Formatter().get_field('0.__class__', [3], {})",
    "compiled text": "eval('1')",
    "text that is timed": "import timeit\ntimeit.timeit('1')",
    "C": "import ctypes\nctypes.string_at(0)",
    "C through NumPy": "np.ctypeslib.ctypes.string_at(0)",
}  # fmt: skip


@pytest.mark.parametrize("cheat", CHEATS)
def test_a_cheat_does_not_turn_a_wrong_answer_into_a_right_one(cheat):
    assert verdict(f"{WRONG}\n{CHEATS[cheat]}\n{CALL}")["verdict"] in ("not yet", "refused")


@pytest.mark.parametrize("cheat", ["a report that is true, by its class", "NumPy that agrees"])
def test_what_an_answer_has_replaced_is_named_even_if_it_is_right(cheat):
    told = verdict(f"{RIGHT}\n{CHEATS[cheat]}\n{CALL}")
    assert told["verdict"] == "refused" and told["note"].startswith("it has replaced ")


def test_a_check_that_has_come_to_accept_anything_is_noticed(monkeypatch):
    """Where what was replaced is not seen: here by looking at nothing."""
    monkeypatch.setattr(apart, "_callables", lambda: iter(()))
    monkeypatch.setattr("tinytorch.exercises.values.same", lambda *given: True)
    told = apart.judged("token_cost", [f"{WRONG}\n{CALL}"])
    assert told == {"verdict": "refused", "note": "after it, its check accepts anything"}


FRAMES = """\
def my_cost(*given):
    try:
        raise ValueError
    except ValueError as error:
        frame = {first}
    while "posed" not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals["posed"].reference(*given)
"""
REFERENCES = {
    "frames": FRAMES.format(first="error.__traceback__.tb_frame"),
    "frames by getattr": FRAMES.format(first="getattr(error, '__trace' + 'back__').tb_frame"),
    "an import": "from tinytorch.exercises.token_embeddings import _costs as my_cost",
    "an import of the room": "from tinytorch.exercises import token_embeddings\n"
    "my_cost = token_embeddings._costs",
    "the check": "import tinytorch.exercises.token_embeddings as t\nmy_cost = t._costs",
}


@pytest.mark.parametrize("way", REFERENCES)
def test_an_answer_cannot_be_the_reference_itself(way):
    assert verdict(f"{REFERENCES[way]}\n{CALL}")["verdict"] in ("not yet", "refused")


REACHES = {
    "reads": "np.fromfile({path!r})",
    "reads as NumPy does": "np.genfromtxt({path!r})",
    "reads what a path climbs to": "np.fromfile({prefix!r} + '/../../../../../../..' + {path!r})",
    "writes": "np.ones(3).tofile({path!r})",
    "asks the network": "np.lib.npyio.DataSource(None).open('http://127.0.0.1:{port}/a.gz')",
}


@pytest.mark.parametrize("how", REACHES)
def test_files_and_the_network_are_closed_to_an_answer(tmp_path, how):
    path = tmp_path / "secret.bin"
    path.write_bytes(b"12345678")  # a number, and a text
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        facts = {"path": str(path), "prefix": sys.prefix, "port": server.getsockname()[1]}
        reach = REACHES[how].format(**facts)
        body = f"def my_cost(*given):\n    {reach}\n    return right(*given)"
        told = verdict(f"{RIGHT.replace('my_cost', 'right')}\n{body}\n{CALL}")
        with pytest.raises(TimeoutError):
            server.accept()
    assert told["verdict"] != "solved"
    assert path.read_bytes() == b"12345678"


def test_an_answer_that_does_not_end_or_takes_all_memory_is_ended():
    assert verdict(f"while True:\n    pass\n{CALL}", seconds=3)["verdict"] == "too long"
    waits = "while True:\n    try:\n        while True: pass\n    except BaseException: pass\n"
    assert verdict(waits + CALL, seconds=3)["verdict"] == "too long"
    body = "def my_cost(*given):\n    return np.ones((1 << 20, 1 << 20))"
    assert verdict(f"{body}\n{CALL}")["verdict"] == "not yet"


def test_a_file_that_uses_up_its_patience_is_not_run_to_its_end(tmp_path, monkeypatch):
    names = [*apart.checks()][:6]
    monkeypatch.setattr(handed_in, "_told", lambda *given: {"verdict": "too long", "note": "why"})
    marks = marks_of("a", [saved(tmp_path / "a.json", {name: ["pass"] for name in names})])
    assert [*marks.notes.values()] == ["too long: why"] * 3 + ["not run"] * 3


def test_nonsense_from_a_process_is_no_verdict():
    assert handed_in._read(b'{"verdict": "solved", "note": "\\u001b[2J"}')["note"] == " [2J"
    for answer in (b"3", b'{"verdict": "passed"}', b'{"verdict": ["solved"]}'):
        assert handed_in._read(answer)["verdict"] == "not yet"


# Files ---------------------------------------------------------------------------------------

BROKEN = {
    "nothing": (b"", "not JSON"),
    "no JSON": (b"PK\3\4", "not JSON"),
    "another encoding": ("{}".encode("utf-16"), "it is not text"),
    "nested": (b"[" * 200_000, "nested too deeply"),
    "named twice": (b'{"book": "a", "book": "tinytorch"}', "twice"),
    "a list": (b"[]", "not saved by this book"),
    "another edition": (b'{"book": "tinytorch", "version": 2}', "another edition"),
    "nothing kept": (b'{"book": "tinytorch", "version": 1}', "damaged"),
    "too large": (b" " * (LARGEST + 1), "larger than 4,000,000 bytes"),
}
for what, sources in {
    "an unknown exercise": {"../../x": ["pass"]},
    "code that is none": {"token_cost": "pass"},
    "a cell that is none": {"token_cost": [1]},
    "no cells": {"token_cost": []},
    "many cells": {"token_cost": ["pass"] * 51},
    "long cells": {"token_cost": ["#" * 200_001]},
    "a list of sources": [],
}.items():
    text = json.dumps({"book": "tinytorch", "version": 1, "kept": {"sources": sources}})
    BROKEN[what] = text.encode(), "has not" if "unknown" in what else "damaged"


@pytest.mark.parametrize("what", BROKEN)
def test_a_file_that_is_none_is_named_and_nothing_of_it_is_run(tmp_path, what):
    content, words = BROKEN[what]
    path = tmp_path / "a.json"
    path.write_bytes(content)
    marks = marks_of("a", [path])
    assert words in marks.problem and not marks.points


def test_the_command_prints_a_table_and_writes_one(tmp_path):
    saved(
        tmp_path / "=anna.json", {"token_cost": [f"from tinytorch import check\n{RIGHT}\n{CALL}"]}
    )
    saved(tmp_path / "ben.json", {"token_cost": [f"from tinytorch import check\n{WRONG}\n{CALL}"]})
    (tmp_path / "no.json").write_text("{}")
    command = [sys.executable, "-m", "tinytorch.check", "=anna.json", "ben.json", "no.json"]
    options = ["--csv", "marks.csv", "--chapters", "token-embeddings", "--jobs", "2"]
    ran = subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (1, "")
    first, second, why, third = ran.stdout.splitlines()
    assert first == "'=anna: 2 of 11 points, 1 of 6 exercises"
    assert second == "ben: 0 of 11 points, 0 of 6 exercises"
    assert why.startswith("  token_cost: not yet: the bytes of")
    assert third == "no: no.json: it was not saved by this book"
    with (tmp_path / "marks.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = [*csv.DictReader(file)]
    assert [row["student"] for row in rows] == ["'=anna", "ben", "no"]
    assert [row["token-embeddings"] for row in rows] == ["2", "0", ""]
    assert [row["points"] for row in rows] == ["2", "0", "0"]


def test_a_class_has_a_row_for_each_and_several_files_of_one_count_together(tmp_path, capsys):
    (tmp_path / "4711").mkdir()
    answer = "from tinytorch import check\n{}\n" + CALL
    saved(tmp_path / "4711" / "first.json", {"token_cost": [answer.format(WRONG)]})
    saved(tmp_path / "4711" / "second.json", {"token_cost": [answer.format(RIGHT)]})
    saved(tmp_path / "guest.json", {})
    (tmp_path / "class.csv").write_text("student,name\n4711,Anna B.\n4712,Ben C.\n")
    table = tmp_path / "marks.csv"
    files = [str(tmp_path / name) for name in ("4711", "guest.json")]
    options = ["--class", str(tmp_path / "class.csv"), "--csv", str(table), "--exercises"]
    assert main([*files, *options, "--chapters", "token-embeddings"]) == 1
    assert "4712: nothing was handed in" in capsys.readouterr().out
    with table.open(encoding="utf-8-sig", newline="") as file:
        rows = [*csv.DictReader(file)]
    told = [(row["student"], row["name"], row["points"], row["token_cost"]) for row in rows]
    assert told == [("4711", "Anna B.", "2", "2"), ("4712", "Ben C.", "0", ""),
                    ("guest", "not in the class", "0", "")]  # fmt: skip


@pytest.mark.parametrize("text", ["", "name\nAnna\n", "student\n1\n1\n"])
def test_a_class_that_cannot_be_read_is_named(tmp_path, text, capsys):
    (tmp_path / "class.csv").write_text(text)
    with pytest.raises(SystemExit):
        main(["a.json", "--class", str(tmp_path / "class.csv")])
    assert "class.csv' n" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends Ctrl-C to the whole console")
def test_ctrl_c_ends_what_is_under_way_and_begins_no_more(tmp_path, monkeypatch):
    saved(tmp_path / "a.json", {"token_cost": [CALL], "token_lookup": [CALL]})
    ended = []

    def told(*_):
        process = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
        process.start()
        os.kill(os.getpid(), signal.SIGINT)
        process.join()
        ended.append(process.exitcode)
        return {"verdict": "too long"}

    monkeypatch.setattr(handed_in, "_told", told)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            list(marks_of_all({"a": [tmp_path / "a.json"]}))
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended == [-signal.SIGKILL]


def test_a_table_has_nothing_that_a_spreadsheet_takes_for_a_formula():
    marks = Marks("+1", {}, {}, "@SUM(1)\n\0")
    assert as_csv([marks], []).splitlines()[1] == "'+1,0,0,'@SUM(1)��"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a.json", "--seconds", "0"], "argument --seconds: '0' is not an integer from 1 to 99999"),
        (["a.json", "--chapters", "none"], "there is no chapter 'none'; there are autograd"),
    ],
)
def test_the_command_says_what_it_allows(arguments, words, capsys):
    with pytest.raises(SystemExit):
        main(arguments)
    assert words in capsys.readouterr().err
