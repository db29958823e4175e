"""Citations with the author and the year, in the chapters as in the bibliography."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pybtex.database import Entry
from pybtex.plugin import register_plugin as register_style
from pybtex.richtext import Text
from pybtex.style.formatting.unsrt import Style as UnsrtStyle
from pybtex.style.labels import BaseLabelStyle
from sphinx.application import Sphinx
from sphinxcontrib.bibtex.plugin import register_plugin
from sphinxcontrib.bibtex.style.referencing import BracketStyle
from sphinxcontrib.bibtex.style.referencing.author_year import AuthorYearReferenceStyle

TITLE = re.compile(r'(<a class="reference internal" href="[^"]*bibliography\.html#[^"]*") title=')


def round_brackets() -> BracketStyle:
    """Round brackets, and a semicolon between two sources."""
    return BracketStyle(left="(", right=")", sep="; ")


@dataclass
class RoundAuthorYear(AuthorYearReferenceStyle):
    """`(Vaswani et al., 2017)`, and `Vaswani et al. (2017)` as a part of a sentence."""

    bracket_textual: BracketStyle = field(default_factory=round_brackets)
    bracket_parenthetical: BracketStyle = field(default_factory=round_brackets)


class AuthorYearLabels(BaseLabelStyle):
    """What a citation says, before its entry in the bibliography."""

    def format_labels(self, entries: Iterable[Entry]) -> Iterator[str]:
        """Return the labels in the order of the entries."""
        return map(label, entries)


def label(entry: Entry) -> str:
    """Write `Vaswani et al., 2017`, or both names of two authors."""
    names = [
        str(Text.from_latex(" ".join(person.prelast_names + person.last_names)))
        for person in entry.persons["author"]
    ]
    who = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
    return f"{who}, {entry.fields['year']}"


class AuthorYearStyle(UnsrtStyle):
    """Entries in the order of their authors, labelled as they are cited."""

    default_label_style = "author_year_label"
    default_sorting_style = "author_year_title"


def shorten(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Keep the entry from being read out in the middle of a sentence; `reading.js` shows it."""
    if "body" in context:
        context["body"] = TITLE.sub(r"\1 data-reference=", context["body"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    register_plugin("sphinxcontrib.bibtex.style.referencing", "author_year_round", RoundAuthorYear)
    register_style("pybtex.style.labels", "author_year_label", AuthorYearLabels)
    register_style("pybtex.style.formatting", "author_year", AuthorYearStyle)
    app.connect("html-page-context", shorten)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
