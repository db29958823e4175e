"""The wheels of JupyterLite's kernel: those that are pinned, whole, and no others."""

import pytest


def pin(kernel, tmp_path, monkeypatch, content=b"wheel"):
    wheel = tmp_path / "a_b-1.2-py3-none-any.whl"
    wheel.write_bytes(content)
    pins = tmp_path / "kernel.txt"
    pins.write_text(f"# why\n\na-b==1.2 \\\n    --hash=sha256:{kernel.sha256(wheel)}\n", "utf-8")
    monkeypatch.setattr(kernel, "PINS", pins)
    return wheel


def test_every_package_is_pinned_by_version_and_hash(kernel):
    lines = kernel.PINS.read_text(encoding="utf-8").splitlines()
    assert len(kernel.pins()) == sum("==" in line for line in lines)
    assert {"ipython", "comm", "micropip", "jedi"} <= kernel.pins().keys()


def test_a_wheel_that_is_right_is_found(kernel, tmp_path, monkeypatch):
    wheel = pin(kernel, tmp_path, monkeypatch)
    assert kernel.wheels(tmp_path) == {"a-b": wheel}
    assert kernel.missing_packages(tmp_path) == []
    assert kernel.main(["--check", "--folder", str(tmp_path)]) == 0


def test_a_wheel_that_is_not_is_missing(kernel, tmp_path, monkeypatch, capsys):
    pin(kernel, tmp_path, monkeypatch).write_bytes(b"whee")
    assert kernel.missing_packages(tmp_path) == ["a-b"]
    assert kernel.main(["--check", "--folder", str(tmp_path)]) == 1
    assert "lacks a-b: say `make live`" in capsys.readouterr().err


def test_nothing_is_fetched_where_nothing_is_missing(kernel, tmp_path, monkeypatch):
    pin(kernel, tmp_path, monkeypatch)
    monkeypatch.setattr(kernel, "fetch", lambda folder: pytest.fail("fetched"))
    assert kernel.main(["--folder", str(tmp_path)]) == 0


def test_what_pip_says_is_passed_on(kernel, tmp_path, monkeypatch, capsys):
    pin(kernel, tmp_path, monkeypatch)
    monkeypatch.setattr(kernel, "fetch", lambda folder: "no such index")
    assert kernel.main(["--folder", str(tmp_path / "empty")]) == 1
    assert "cannot fetch a-b: no such index" in capsys.readouterr().err
