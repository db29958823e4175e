"""Every module that `python -m` can run, found by itself: what holds for all commands.

The name of a value in the help says of which kind it is; each kind is tried with what it is not.
"""

import importlib
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from tinytorch_book.__main__ import main

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (ROOT / "book" / "lab" / "tinytorch_book", ROOT / "tinytorch")
NEEDED = {"tinytorch.models.gpt2": ["Once"], "tinytorch.models.llama": ["Hello"]}
PATH = os.pathsep.join(str(package.parent) for package in PACKAGES)
FOLDERS = tuple(map(str, PACKAGES))
WRONG = {  # by the name of a value in the help
    "N": ["", "-1", "1.5", "many", "²", "9" * 5000],
    "X": ["", "-1", "nan", "inf", "many"],
    "FILE": ["", ".", f"{__file__}/file"],
    "FOLDER": ["", __file__],
    "NAME": [""],
    "TEXT": [""],
    "A,B": ["", "a,,b"],
}


def commands():
    """Every module that does something when it is run."""
    for package in PACKAGES:
        for path in sorted(package.rglob("*.py")):
            if re.search(r"^if __name__ == .__main__.:", path.read_text(encoding="utf-8"), re.M):
                yield ".".join(path.relative_to(package.parent).with_suffix("").parts)


def test_the_overview_names_every_command(capsys):
    main([])
    named = re.findall(r"^  python -m (\S+)$", capsys.readouterr().out, re.M)
    known = {module.removesuffix(".__main__") for module in commands()}
    assert {"tinytorch_book", *named} == known


def times():
    """When each file of the packages was changed."""
    return {path: path.stat().st_mtime_ns for package in PACKAGES for path in package.rglob("*.*")}


def helped(folder, module, *words):
    """What `--help` prints, after looking that it does nothing else."""
    before = times()
    done = subprocess.run(
        [sys.executable, "-B", "-m", module, *words, "--help"], cwd=folder, timeout=100,
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": PATH},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    usage = f"usage: {' '.join(['python -m', module, *words])} [-h]"
    assert " ".join(done.stdout.split()).startswith(usage)  # it may take two lines
    assert times() == before
    assert [*folder.iterdir()] == []
    return done.stdout


@pytest.fixture(scope="module", params=commands())
def command(request, tmp_path_factory):
    """The `main` of a module, and for itself and each command inside it the words and the help."""
    module, folder = request.param.removesuffix(".__main__"), tmp_path_factory.mktemp("command")
    helps = {(): helped(folder, module)}
    if inside := re.search(r"^  \{([\w,]+)\}", helps[()], re.M):
        helps |= {(word,): helped(folder, module, word) for word in inside[1].split(",")}
    return importlib.import_module(request.param).main, helps, NEEDED.get(module, [])


def refusal(capsys, main, arguments):
    """What a command line is refused with, before any work has begun."""
    with pytest.raises(SystemExit) as end, stopped_when_it_begins():
        main(arguments)
    out, err = capsys.readouterr()
    assert (end.value.code, out) == (2, "")
    return err.splitlines()[-1]


@contextmanager
def stopped_when_it_begins():
    """A context in which Ctrl-C comes when the first function after the parser is called."""
    parsed, before = [], sys.getprofile()

    def watch(frame, event, _):
        code = frame.f_code
        if event == "return" and code.co_name == "parse_args" and "argparse" in code.co_filename:
            parsed.append(True)
        elif parsed and event == "call" and code.co_filename.startswith(FOLDERS):
            if code.co_name not in ("_options", "run_command", "<lambda>"):
                sys.setprofile(before)
                raise KeyboardInterrupt

    sys.setprofile(watch)
    try:
        yield
    finally:
        sys.setprofile(before)


def test_help_lists_the_options_and_does_nothing(command):
    _, helps, _ = command
    assert all("\noptions:\n" in said for said in helps.values())


def test_a_wrong_option_is_named(command, capsys):
    main, helps, needed = command
    for words in helps:
        told = refusal(capsys, main, [*words, *needed, "--no-such-option"])
        assert told.endswith("error: unrecognized arguments: --no-such-option")


def test_a_wrong_value_names_its_option(command, capsys):
    main, helps, needed = command
    for words, said in helps.items():
        for option, kind in re.findall(r"^  (--[\w-]+) (\S+)", said, re.M):
            wrong = ["no such word"] if kind.startswith("{") else WRONG[kind]
            for value in wrong:
                told = refusal(capsys, main, [*words, *needed, f"{option}={value}"])
                assert f"error: argument {option}: " in told and len(told) < 500, (option, value)


def test_ctrl_c_ends_with_a_message(command, capsys, tmp_path, monkeypatch):
    main, helps, needed = command
    monkeypatch.chdir(tmp_path)
    for words in helps:
        with stopped_when_it_begins():
            assert main([*words, *needed]) == 130
        out, err = capsys.readouterr()
        assert out == "" and re.fullmatch(r"[Ss]topped.*\n", err)
    assert [*tmp_path.iterdir()] == []
