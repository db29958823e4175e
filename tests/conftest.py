"""What all tests share: the same examples and the same random numbers on every run."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as `make` does, before NumPy is loaded

import pytest
from hypothesis import HealthCheck, settings

from tinytorch import manual_seed
from tinytorch_book.stories import StoryGrammar

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
