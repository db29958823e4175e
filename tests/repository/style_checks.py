"""Check the style of the tree with every tool; all of them run, and those that failed are named.

python tests/repository/style_checks.py            what `make check` runs
python tests/repository/style_checks.py --quick    what each commit should pass, `make style`
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = " ".join(map(str, sorted(ROOT.glob(".github/workflows/*.yml"))))
QUICK = ["ruff format --check .", "ruff check .", "mypy", "codespell", "oxlint --quiet"]
SLOW = [
    "python -m _ext.directives.names",
    "mypy tests/models/typed.py",
    "lint-imports --no-cache --no-logo",
    "zizmor --offline --quiet --no-progress .",
    f"check-jsonschema --builtin-schema vendor.github-workflows {WORKFLOWS}",
    f"check-jsonschema --builtin-schema custom.github-workflows-require-timeout {WORKFLOWS}",
    "check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml",
    "check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff",
]


def main(*arguments: str) -> str | None:
    """Run the checks; returns the names of those that failed, if any did."""
    commands = QUICK if arguments == ("--quick",) else QUICK + SLOW
    failed = [command for command in commands if not passes(command)]
    return "\n".join(["", "These failed:", *failed]) if failed else None


def passes(command: str) -> bool:
    """Run a tool from beside this Python, in the root of the tree."""
    name, *arguments = command.split()
    print(f"==> {' '.join([name, *arguments[:2]])}", flush=True)
    tool = str(Path(sys.executable).with_name(name))
    variables = {**os.environ, "PYTHONPATH": "book"}  # lint-imports reads `_ext` there
    return subprocess.run([tool, *arguments], cwd=ROOT, env=variables).returncode == 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
