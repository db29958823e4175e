"""Chromium: it prints the book, and the tests look at the built pages in it."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def find_chromium() -> str | None:
    """Where Chromium is: $CHROMIUM, or one of its names on the path."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


@contextmanager
def opened(source: Path) -> Iterator[Any]:
    """Open a file in Chromium.

    Raises:
        RuntimeError: there is no Chromium.
    """
    from playwright.sync_api import sync_playwright

    executable = find_chromium()
    if executable is None:
        raise RuntimeError("there is no Chromium: install it, or name it in $CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=ARGUMENTS)
        try:
            page = browser.new_page(color_scheme="light")
            page.set_default_timeout(0)
            page.goto(source.as_uri())
            yield page
        finally:
            browser.close()
