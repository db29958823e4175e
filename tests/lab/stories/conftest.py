"""The grammars that all tests of stories share."""

import pytest
from brute_force import TINY_CAST, TINY_RULES

from tinytorch_book.stories import StoryGrammar


@pytest.fixture(scope="session")
def tiny():
    return StoryGrammar(TINY_RULES, TINY_CAST)
