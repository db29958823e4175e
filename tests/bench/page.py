"""The same programs in the reader's browser and natively; and how long Python takes to start there.

Needs Chromium and the built book: `make live book`. The page is opened from this machine, in a
browser that has never been there.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "browser"))
sys.path.insert(0, str(Path(__file__).parents[2] / "book"))
from _ext.print.chromium import ARGUMENTS, find_chromium
from served_pages import SITE, serve
from visit import READY

GPT2 = "book/real/gpt2"
FIRST, NEXT = "book/foundations/tensors", "book/transformer/gpt"
PRESS = """async () => {
    const began = performance.now();
    await tinytorchLive.cells.find((cell) => cell.runnable).run({force: true});
    return (performance.now() - began) / 1000;
}"""
RUN = """async (code) => {
    const cell = tinytorchLive.cells.find((cell) => cell.runnable);
    await cell.edit();
    cell.editor.text = code;
    const {ok} = await cell.run({force: true});
    if (!ok) throw new Error(cell.output.text);
    return cell.output.text;
}"""
PROGRAMS = """
import json
from time import perf_counter

import numpy as np
from tinytorch import AdamW, default_rng, functional
from tinytorch.core import products
from tinytorch_book.experiments.story_gpt import load_story_gpt, new_story_gpt, story_tokenizer

def median(run, times):
    taken = []
    for _ in range(times + 1):
        began = perf_counter()
        run()
        taken.append(perf_counter() - began)
    return float(np.median(taken[1:]))  # the first warms up

rng = np.random.default_rng(0)
a, b = rng.normal(size=(2, 512, 512)).astype(np.float32)
model = new_story_gpt()
optimizer = AdamW(model.parameters(), lr=1e-3)
ids = rng.integers(0, 512, (8, 113))

def step():
    optimizer.zero_grad()
    functional.cross_entropy(model(ids[:, :-1]), ids[:, 1:]).backward()
    optimizer.step()

story_gpt = load_story_gpt()
prompt = np.array([story_tokenizer().encode("Once upon a time")])
write = lambda: story_gpt.generate(prompt, 100, temperature=0)
# what GPT-2 small multiplies for one token, in 8 bits: its twelve blocks, and its token table
shapes = 12 * [*4 * [(768, 768)], (768, 3072), (3072, 768)]
matrices = [rng.integers(-127, 128, shape, dtype=np.int8) for shape in shapes]
table = rng.integers(-127, 128, (50257, 768), dtype=np.int8)
rows = {n: rng.normal(size=(1, n)).astype(np.float32) for n in (768, 3072)}

def token_in_8_bits():
    for matrix in matrices:
        products.matmul_int8(rows[len(matrix)], matrix)
    products.matmul_int8_transposed(rows[768], table)

print(json.dumps({
    "eight": median(token_in_8_bits, 20),
    "product": 2 * 512**3 / median(lambda: products.matmul(a, b), 99) / 1e9,
    "numpy": 2 * 512**3 / median(lambda: np.matmul(a, b), 3) / 1e9,
    "step": median(step, 9),
    "tokens": 100 / median(write, 5),
}))
"""


def starts_and_programs() -> tuple[list[float], dict[str, float]]:
    """Seconds from press to output on two pages, one after the other, and what `PROGRAMS` prints.

    Raises:
        SystemExit: there is no Chromium, or no site with Python in it.
    """
    from playwright.sync_api import sync_playwright

    if not find_chromium() or not (SITE / "_static/live/pyodide").exists():
        raise SystemExit("the part `page` needs Chromium, and the book of `make live book`")
    server, address = serve(SITE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)
        context = browser.new_context()
        context.set_default_timeout(0)
        seconds = []
        for docname in (FIRST, NEXT):
            page = context.new_page()
            page.goto(f"{address}{docname}.html")
            page.wait_for_function(READY)
            seconds.append(page.evaluate(PRESS))
        found = json.loads(page.evaluate(RUN, PROGRAMS))
        browser.close()
    server.shutdown()
    return seconds, found


ELSEWHERE = """new MutationObserver(() => {
    Object.assign(document.querySelector('.tt-published')?.dataset ?? {}, {address: 'ADDRESS'});
}).observe(document, {childList: true, subtree: true});"""
LIKELIEST = """
ids = np.random.default_rng(3).integers(0, 50257, (1, 100))
with no_grad():
    likeliest = gpt2(ids).data[0].argmax(-1).tolist()
"""
WRITING = f"""
import json
from time import perf_counter
import numpy as np
import pyodide_js
from tinytorch import no_grad
from tinytorch.models.gpt2 import stream_text

began = perf_counter()
list(stream_text(gpt2, gpt2_tokenizer, "Once upon a time", 40, temperature=0))
speed = 40 / (perf_counter() - began)
{LIKELIEST}
memory = pyodide_js._module.HEAPU8.length
print(json.dumps({{"speed": speed, "memory": memory, "likeliest": likeliest}}))
"""


def published() -> tuple[dict[str, Any], int]:
    """What `WRITING` prints where the page has fetched a GPT-2 of full size from this machine.

    And at how many of 100 positions its likeliest token is that of the same weights in float32.
    """
    import numpy as np
    from gpt2_files import folder
    from playwright.sync_api import sync_playwright
    from published_hub import serving

    from tinytorch import no_grad
    from tinytorch.models.gpt2 import load_gpt2

    server, site = serve(SITE)
    with folder() as place, serving(place) as hub, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)
        page = browser.new_context().new_page()
        page.set_default_timeout(0)
        page.add_init_script(ELSEWHERE.replace("ADDRESS", hub.address))
        page.goto(f"{site}{GPT2}.html")
        page.wait_for_function(READY)
        page.get_by_role("button", name="Fetch GPT-2").click()
        page.get_by_label("tokens", exact=True).fill("2")
        page.get_by_role("button", name="Write").click()
        page.get_by_text("a second. The cells").wait_for()
        found = json.loads(page.evaluate(RUN, WRITING))
        browser.close()
        model = load_gpt2(place, progress=None)[0]
    server.shutdown()
    names: dict[str, Any] = {"gpt2": model, "np": np, "no_grad": no_grad}
    exec(LIKELIEST, names)
    return found, sum(a == b for a, b in zip(found["likeliest"], names["likeliest"], strict=True))


def natively() -> dict[str, Any]:
    """What `PROGRAMS` prints in this process."""
    import contextlib
    import io

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(PROGRAMS, {"__name__": "__main__"})
    return json.loads(printed.getvalue())
