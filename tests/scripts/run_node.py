"""Run the tests of the scripts under Node, beside what the package computes."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))  # hub_folders

import known  # noqa: E402
from _ext.live.snapshot import node  # noqa: E402


def main(names: list[str]) -> int:
    """Run the named files of tests, or all."""
    files = [HERE / f"{name}.test.mjs" for name in names] or sorted(HERE.glob("*.test.mjs"))
    with tempfile.TemporaryDirectory() as folder:
        known.write(Path(folder))
        command = [str(node()), "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON"]
        command += ["--test", "--test-timeout=120000", "--test-reporter=dot", *map(str, files)]
        return subprocess.run(command, env={**os.environ, "KNOWN": folder}).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
