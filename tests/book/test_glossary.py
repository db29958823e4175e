"""The glossary names for each term the chapter that introduces it: the first to mark it."""

import re

import pytest
from built import ROOT, pages

CHAPTERS = {
    page: (ROOT / f"{page}.md").read_text(encoding="utf-8")
    for page in pages()
    if page.count("/") == 2 and "/appendix/" not in page
}
LABELS = {
    label: page
    for page, text in CHAPTERS.items()
    for label in re.findall(r"^\((ch-[\w-]+)\)=", text, re.M)
}
GLOSSARY = (ROOT / "book/appendix/glossary.md").read_text(encoding="utf-8")
ENTRIES = dict(re.findall(r"^(\S[^\n]*)\n((?:  [^\n]*\n)+)", GLOSSARY, re.M))


def marked(text):
    """The terms that a chapter marks, as the glossary writes them but in small letters."""
    found = (" ".join(term.split()) for term in re.findall(r"\{term\}`([^`]+)`", text))
    return {(re.search(r"<(.*)>", term) or [term, term])[1].lower() for term in found}


@pytest.mark.parametrize(
    "term", [term for term, text in ENTRIES.items() if "See {term}" not in text]
)
def test_the_chapter_named_for_a_term_is_the_first_that_marks_it(term):
    named = re.findall(r"\{ref\}`(?:[^`<]*<)?(ch-[\w-]+)", ENTRIES[term])
    first = next((page for page, text in CHAPTERS.items() if term.lower() in marked(text)), None)
    assert named and LABELS[named[0]] == first, f"{term}: named {named}, first marked in {first}"


def test_the_glossary_has_been_read():
    assert len(ENTRIES) > 100 and "token" in ENTRIES
