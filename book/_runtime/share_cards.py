"""Make the pictures that messages show beside a link to a page (`make cards`): one for each part.

A picture is drawn by the built landing page, with its fonts, its colours and its map of the model,
on which the chapters of the part are lit; that of the whole book shows the playground instead. The
pictures are committed.
"""

import io
import sys
import threading
from pathlib import Path

from _ext.look.page_cards import CARD_SIZE, CARDS, WHOLE_BOOK
from _ext.print.chromium import ARGUMENTS, find_chromium
from _ext.teaching import slides
from PIL import Image

from tinytorch_book.serving import book_server

ROOT = Path(__file__).resolve().parents[2]
SITE, LANDING = ROOT / "_build" / "html", "book/intro.html"
FOLDER = ROOT / "book" / "_static" / CARDS
COLOURS = 64  # enough for text and lines, and a third of the bytes
DRAW = """({book, title, lines, part}) => {
    const map = document.querySelector('figure.tt-drawing');
    for (const link of map.querySelectorAll('a')) {
        const lit = !part || link.getAttribute('href').startsWith(part + '/');
        link.style.opacity = lit ? 1 : 0.3;
    }
    const text = document.createElement('div');
    const add = (tag, words) => Object.assign(text.appendChild(document.createElement(tag)),
                                              {textContent: words});
    add('p', book);
    add('h1', title);
    lines.forEach(line => add('div', line));
    const playground = document.querySelector('.tt-play');
    if (!part) playground.querySelectorAll('.tt-play__beginnings, .tt-play__act, .tt-play__more')
        .forEach(e => e.remove());
    const size = lines.length > 4 ? 26 : 32; // all questions fit
    document.body.className = 'bd-article';
    document.body.replaceChildren(text, part ? map : playground);
    const style = document.createElement('style');
    style.textContent = `
        html, body { width: 1200px; height: 630px; overflow: hidden; }
        body { display: flex; flex-flow: row; justify-content: space-between; margin: 0;
               box-sizing: border-box; min-height: 0;
               padding: 0 90px 0 80px; border-top: 14px solid var(--tt-accent-1);
               background: var(--tt-paper); }
        body > div:first-child { align-self: center; width: 700px; }
        body > :not(.tt-play) * { max-width: none; }
        body > div:first-child p { margin: 0 0 26px; color: var(--tt-muted);
                                   font: 500 27px var(--tt-sans); }
        .bd-article div > h1 { margin: 0 0 30px; font-size: 88px; line-height: 1.08;
                               text-wrap: balance; }
        body > div:first-child div { margin: 0 0 10px;
                                     font: italic ${size}px/1.35 var(--tt-serif); }
        body figure.tt-drawing { flex: none; width: 244px; margin: 14px 0 0; }
        body:has(> .tt-play) > div:first-child { width: 560px; }
        .bd-article div:has(+ .tt-play) > h1 { font-size: 76px; }
        body > .tt-play { flex: none; align-self: center; width: 390px; zoom: 1.15; }`;
    document.head.append(style);
    return document.fonts.ready.then(() => true);
}"""


def parts() -> dict[str, dict[str, object]]:
    """What stands on each picture, by the name of its file."""
    book = "TinyTorch: embeddings to GPT"
    intro = "A language model, all of it, in Python with NumPy and nothing else."
    cards = {WHOLE_BOOK: {"book": "A book that runs", "title": book, "lines": [intro], "part": ""}}
    for folder, (caption, files) in slides.parts(ROOT).items():
        questions = [question(file) for file in files]
        cards[folder] = {"book": book, "title": caption, "lines": questions, "part": folder}
    return cards


def question(docname: str) -> str:
    """The question of a chapter's card."""
    text = (ROOT / f"{docname}.md").read_text(encoding="utf-8")
    asked = text.partition(":question: ")[2].partition("\n")[0]
    return asked[:1].upper() + asked[1:]


def main() -> int:
    """Make all of them; returns the exit status."""
    from playwright.sync_api import sync_playwright

    FOLDER.mkdir(parents=True, exist_ok=True)
    server = book_server(SITE, port=0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)
        view = {"width": CARD_SIZE[0], "height": CARD_SIZE[1]}
        context = browser.new_context(color_scheme="light", viewport=view)
        for name, card in parts().items():
            page = context.new_page()
            page.goto(f"http://127.0.0.1:{server.server_port}/{LANDING}", wait_until="networkidle")
            page.wait_for_function(
                "() => document.querySelector('.tt-play').dataset.play === 'ready'"
            )
            page.evaluate(DRAW, card)
            picture = Image.open(io.BytesIO(page.screenshot()))
            picture.convert("RGB").quantize(COLOURS).save(FOLDER / f"{name}.png", optimize=True)
            print(FOLDER / f"{name}.png")
            page.close()
        browser.close()
    server.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
