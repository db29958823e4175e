"""The scripts of `book/_live`, loaded from their files: they belong to no package."""

import importlib.util
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "book" / "_live"


def load(name):
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def kernel():
    return load("kernel")


@pytest.fixture
def runtime():
    return load("runtime")
