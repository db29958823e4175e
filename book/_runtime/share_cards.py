"""Make the pictures that messages show beside a link to a page: one for each part of the book.

    python book/_runtime/share_cards.py        into book/_static/cards (`make cards`)

A picture is drawn by the built landing page, with its fonts, its colours and its map of the model,
on which the chapters of the part are lit; on that of the whole book, all are. The pictures are
committed.
"""

import io
import threading
from collections.abc import Iterator
from pathlib import Path

from _ext.look.page_cards import CARD_SIZE, CARDS, WHOLE_BOOK
from _ext.print.chromium import ARGUMENTS, find_chromium
from _ext.teaching import slides
from PIL import Image
from playwright.sync_api import sync_playwright

from tinytorch_book.serving import book_server

ROOT = Path(__file__).resolve().parents[2]
SITE, LANDING = ROOT / "_build" / "html", "book/intro.html"
BOOK = "TinyTorch: embeddings to GPT"
INTRO = "A language model, all of it, in Python with NumPy and nothing else."
COLOURS = 64  # enough for text and lines, and a third of the bytes
# until the playground is there, the first drawing of the page is its own
READY = "() => document.querySelector('.tt-play').dataset.play === 'ready'"
DRAW = """({lines, part}) => {
    const map = document.querySelector('figure.tt-drawing'), text = document.createElement('div');
    for (const link of map.querySelectorAll('a'))
        if (!link.getAttribute('href').startsWith(part)) link.style.opacity = 0.3;
    for (const [tag, words] of lines)
        text.appendChild(document.createElement(tag)).textContent = words;
    document.body.className = 'bd-article';
    document.body.replaceChildren(text, map);
    return document.fonts.ready.then(() => true);
}"""
STYLE = """
html, body { width: 1200px; height: 630px; overflow: hidden; }
body { display: flex; flex-flow: row; justify-content: space-between; margin: 0; min-height: 0;
       box-sizing: border-box; padding: 0 90px 0 80px; background: var(--tt-paper);
       border-top: 14px solid var(--tt-accent-1); }
body > div { align-self: center; width: 700px; }
body > * * { max-width: none; }
body > div > p { margin: 0 0 26px; color: var(--tt-muted); font: 500 27px var(--tt-sans); }
.bd-article div > h1 { margin: 0 0 30px; font-size: 88px; line-height: 1.08; text-wrap: balance; }
body > div > div { margin: 0 0 10px; font: italic 32px/1.35 var(--tt-serif); }
body > div:has(div:nth-of-type(5)) > div { font-size: 26px; }  /* all questions fit */
body > figure.tt-drawing { flex: none; width: 244px; margin: 14px 0 0; }"""


def cards() -> Iterator[tuple[str, list[str]]]:
    """The name of each picture, and its lines: one above the title, the title, those below."""
    yield WHOLE_BOOK, ["A book that runs", BOOK, INTRO]
    for folder, (caption, files) in slides.parts(ROOT).items():
        yield folder, [BOOK, caption, *map(question, files)]


def question(docname: str) -> str:
    """The question of a chapter's card."""
    text = (ROOT / f"{docname}.md").read_text(encoding="utf-8")
    asked = text.partition(":question: ")[2].partition("\n")[0]
    return asked[:1].upper() + asked[1:]


if __name__ == "__main__":
    server = book_server(SITE, port=0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)
        view = {"width": CARD_SIZE[0], "height": CARD_SIZE[1]}
        page = browser.new_page(color_scheme="light", viewport=view)
        for name, lines in cards():
            page.goto(f"http://127.0.0.1:{server.server_port}/{LANDING}", wait_until="networkidle")
            page.wait_for_function(READY)
            page.add_style_tag(content=STYLE)
            tags = ["p", "h1", *["div"] * (len(lines) - 2)]
            part = "" if name == WHOLE_BOOK else f"{name}/"
            page.evaluate(DRAW, {"lines": [*zip(tags, lines, strict=True)], "part": part})
            picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB").quantize(COLOURS)
            picture.save(ROOT / "book" / "_static" / CARDS / f"{name}.png", optimize=True)
        browser.close()
    server.shutdown()
