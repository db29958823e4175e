"""What the theme leaves in the way of readers who do not use a mouse or do not see the page.

A button whose label is not what it shows cannot be called by its name (WCAG 2.5.3): the search
button and the lines that open folded cells lose the label, so that their text names them. And the
search form gets the button that sends it, seen when it has the focus.
"""

import re

from sphinx.application import Sphinx
from written_pages import change_pages

FOLD = '<summary aria-label="Toggle hidden content">'
SEARCH_BUTTON = re.compile(
    r'(<button class="[^"]*\bsearch-button-field\b[^>]*?) aria-label="[^"]*"'
)
SEARCH_FORM = re.compile(r'(<form class="bd-search\b.*?)(\s*</form>)', re.S)
SUBMIT = '<button type="submit" class="btn btn-sm visually-hidden-focusable">Search</button>'


def mended(page: str) -> str:
    """Mend a page; what is as it should be stays so."""
    page = page.replace(FOLD, "<summary>")
    page = SEARCH_BUTTON.sub(r"\1", page)
    return SEARCH_FORM.sub(lambda found: with_submit(found[1]) + found[2], page)


def with_submit(form: str) -> str:
    """Give a search form its button, unless it has one."""
    return form if 'type="submit"' in form else f"{form}\n  {SUBMIT}"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("builder-inited", change_pages(mended))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
