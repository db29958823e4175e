"""Measure how long each cell takes in a browser, for the times that the pages announce.

    python tests/bench/browser_times.py [PAGE ...]

Runs every cell of the built pages at its full size, in turn, and writes those of two seconds and
more to book/_runtime/browser_times.json. It takes a quarter of an hour; keep the machine quiet. A
cell that is not in the file, or has changed since, is announced by a rule of thumb.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "browser"))
sys.path.insert(0, str(Path(__file__).parents[2] / "book"))
from _ext.execution.cell_times import MEASURED, key_of
from _ext.print.chromium import ARGUMENTS, find_chromium
from served_pages import PAGES, ROOT, SITE, serve
from visit import READY

TIMES = ROOT / MEASURED
SHOWN = 2  # seconds
RUN = """async () => {
    const times = [];
    for (const cell of tinytorchLive.cells) {
        if (!cell.runnable) continue;
        const {ok, seconds} = await cell.run({force: true});
        times.push([cell.original, seconds]);
        if (!ok) console.warn(`${cell.name}: ${cell.output.text}`);
    }
    return times;
}"""


def main(names: list[str]) -> int:
    """Measure the pages named, or all; returns the exit status."""
    from playwright.sync_api import sync_playwright

    pages = [p for p in PAGES if not names or {p, p.rsplit("/", 1)[-1]} & set(names)]
    if not find_chromium() or not pages:
        print(f"nothing to measure: pages {pages}, Chromium {find_chromium()}", file=sys.stderr)
        return 1
    times = read(TIMES) if names else {}
    server, address = serve(SITE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)
        for docname in pages:
            measured = measure(browser, f"{address}{docname}.html")
            slow = {key_of(code): round(t, 1) for code, t in measured if t >= SHOWN}
            times.update(slow)
            print(f"{docname}: {sum(t for _, t in measured):.0f} s, slow: {list(slow.values())}")
        browser.close()
    server.shutdown()
    text = json.dumps(times, indent=0, sort_keys=True) + "\n"
    TIMES.write_text(text, encoding="utf-8")
    return 0


def read(path: Path) -> dict[str, float]:
    """Read what was measured before."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def measure(browser, address: str) -> list[tuple[str, float]]:
    """Run one page; gives the code and the seconds of each cell."""
    page = browser.new_page()
    page.on("console", lambda message: message.type == "warning" and print(message.text))
    page.set_default_timeout(0)
    page.goto(address)
    if not page.locator("#tt-live").count():
        page.close()
        return []
    page.wait_for_function(READY)
    times = page.evaluate(RUN)
    page.close()
    return times


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
