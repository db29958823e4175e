"""What all tests share: the same examples and the same random numbers on every run."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tinytorch import manual_seed
from tinytorch.stories import StoryGrammar

ROOT = Path(__file__).resolve().parents[1]
os.environ["TINYTORCH_PARTS"] = ""  # what a test solves is no reader's

# doctests are looked for in every module, but two modules cannot both be imported as conftest
collect_ignore_glob = ["*conftest.py"]

settings.register_profile(
    "book",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=15,
    suppress_health_check=[HealthCheck.too_slow],  # that is the machine, not the test
)
settings.load_profile("book")


@pytest.fixture(autouse=True)
def the_default_generator_starts_at_zero():
    manual_seed(0)


@pytest.fixture(scope="session")
def stories():
    return StoryGrammar()


@pytest.fixture(scope="session")
def tracked():
    """The names of all files under version control."""
    if not (ROOT / ".git").exists():
        pytest.skip(
            "this is a downloaded archive: without .git nothing tells its files from others"
        )
    listed = ["git", "ls-files"]
    done = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()
