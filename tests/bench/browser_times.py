"""Measure how long each cell takes in a browser, for the times that the pages announce.

    python tests/bench/browser_times.py [PAGE ...]
    python tests/bench/browser_times.py --start [PAGE ...]

Runs every cell of the built pages at its full size, in turn, and writes those of two seconds and
more to book/_runtime/browser_times.json. It takes a quarter of an hour; keep the machine quiet. A
cell that is not in the file, or has changed since, is announced by a rule of thumb.

With `--start` it runs the first cell of each page, in a browser that has never been there and then
keeps what it has loaded, and prints the seconds from the press to the end of each step.
"""

import json
import sys
import tempfile
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
START = """async () => {
    const began = performance.now();
    const cell = tinytorchLive.cells.find((cell) => cell.runnable);
    await cell.run({force: true});
    return {...tinytorchLive.kernel.times, output: (performance.now() - began) / 1000};
}"""


def main(names: list[str]) -> int:
    """Measure the pages named, or all; returns the exit status."""
    from playwright.sync_api import sync_playwright

    starts = "--start" in names
    names = [name for name in names if name != "--start"]
    pages = [p for p in PAGES if not names or {p, p.rsplit("/", 1)[-1]} & set(names)]
    if not find_chromium() or not pages:
        print(f"nothing to measure: pages {pages}, Chromium {find_chromium()}", file=sys.stderr)
        return 1
    if starts:
        return measure_starts(pages)
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


def measure_starts(pages: list[str]) -> int:
    """Print a line of seconds a page, as a table; returns the exit status."""
    from playwright.sync_api import sync_playwright

    server, address = serve(SITE)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as profile:
        chromium = {"executable_path": find_chromium(), "args": ARGUMENTS}
        browser = playwright.chromium.launch_persistent_context(profile, **chromium)
        header: list[str] = []
        for docname in pages:
            page = browser.new_page()
            page.set_default_timeout(0)
            page.goto(f"{address}{docname}.html")
            if page.locator("#tt-live").count():
                page.wait_for_function(READY)
                if page.evaluate("tinytorchLive.cells.some((cell) => cell.runnable)"):
                    steps = page.evaluate(START)
                    if list(steps) != header:
                        header = list(steps)
                        print(" ".join(f"{name:>10}" for name in header))
                    print(" ".join(f"{steps[name]:10.2f}" for name in header), docname, flush=True)
            page.close()
        browser.close()
    server.shutdown()
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
