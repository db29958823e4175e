"""Citations with the author and the year in round brackets, on the pages as in the notebooks."""

from dataclasses import dataclass, field

from sphinx.application import Sphinx
from sphinxcontrib.bibtex.plugin import register_plugin
from sphinxcontrib.bibtex.style.referencing import BracketStyle
from sphinxcontrib.bibtex.style.referencing.author_year import AuthorYearReferenceStyle


def round_brackets() -> BracketStyle:
    """Round brackets, and a semicolon between two sources."""
    return BracketStyle(left="(", right=")", sep="; ")


@dataclass
class RoundAuthorYear(AuthorYearReferenceStyle):
    """`(Vaswani et al., 2017)`, and `Vaswani et al. (2017)` as a part of a sentence."""

    bracket_textual: BracketStyle = field(default_factory=round_brackets)
    bracket_parenthetical: BracketStyle = field(default_factory=round_brackets)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    register_plugin("sphinxcontrib.bibtex.style.referencing", "author_year_round", RoundAuthorYear)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
