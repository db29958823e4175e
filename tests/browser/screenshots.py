"""Take pictures of built pages, to look at them.

    python tests/browser/screenshots.py FOLDER [PAGE ...] [--widths 390 1280] [--schemes light dark]

Without pages, all of the table of contents. Writes FOLDER/<page>-<width>-<scheme>.png, the whole
page each; --screen takes only what the first screen shows, --selector one element.
"""

import argparse
import sys
from pathlib import Path

from served_pages import PAGES, ROOT, SITE, serve

sys.path.insert(0, str(ROOT / "book"))
from _ext.print.chromium import ARGUMENTS, find_chromium


def main(arguments: list[str] | None = None) -> int:
    """Take the pictures; returns the exit status."""
    parser = argparse.ArgumentParser(description="Take pictures of built pages.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("pages", nargs="*", help="such as book/foundations/tensors or tensors")
    parser.add_argument("--widths", nargs="*", type=int, default=[390, 1280])
    parser.add_argument("--schemes", nargs="*", default=["light", "dark"])
    parser.add_argument("--screen", action="store_true", help="only the first screen")
    parser.add_argument("--selector", help="only the first element that matches")
    options = parser.parse_args(arguments)
    pages = [
        p for p in PAGES if not options.pages or {p, p.rsplit("/", 1)[-1]} & set(options.pages)
    ]
    if not pages or not find_chromium():
        print(f"nothing to take: pages {PAGES}, Chromium {find_chromium()}", file=sys.stderr)
        return 1
    options.folder.mkdir(parents=True, exist_ok=True)
    take(pages, options)
    return 0


def take(pages: list[str], options: argparse.Namespace) -> None:
    """Open each page at each width in each scheme."""
    from playwright.sync_api import sync_playwright

    server, address = serve(SITE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)
        for scheme in options.schemes:
            for width in options.widths:
                view = {"width": width, "height": 844 if width < 600 else 800}
                context = browser.new_context(color_scheme=scheme, viewport=view)
                for docname in pages:
                    page = context.new_page()
                    page.goto(f"{address}{docname}.html", wait_until="networkidle")
                    name = f"{docname.rsplit('/', 1)[-1]}-{width}-{scheme}.png"
                    path = str(options.folder / name)
                    if options.selector:
                        page.locator(options.selector).first.screenshot(path=path)
                    else:
                        page.screenshot(path=path, full_page=not options.screen)
                    print(options.folder / name)
                    page.close()
                context.close()
        browser.close()
    server.shutdown()


if __name__ == "__main__":
    sys.exit(main())
