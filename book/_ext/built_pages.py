"""Reads the built pages for what is made of them: slides, the PDF and the EPUB."""

from typing import TypeVar

from bs4 import Tag

Found = TypeVar("Found")


def there(found: Found | None, what: str) -> Found:
    """Return what was looked for in a page, if it is there.

    Raises:
        LookupError: the page lacks it.
    """
    if found is None:
        raise LookupError(
            f"a built page has no {what}; was it built by this version? Run `make book`"
        )
    return found


def part_of(element: Tag, selector: str) -> Tag:
    """Return the first part of an element that a selector names.

    Raises:
        LookupError: there is none.
    """
    return there(element.select_one(selector), f"{selector} in its {element.name}")


def text_of(element: Tag, attribute: str) -> str:
    """Return the value of an attribute that is not a list."""
    return str(element[attribute])
