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
from tinytorch.core import kernels
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
        kernels.matmul_int8(rows[len(matrix)], matrix)
    kernels.matmul_int8_transposed(rows[768], table)

print(json.dumps({
    "eight": median(token_in_8_bits, 20),
    "product": 2 * 512**3 / median(lambda: kernels.matmul(a, b), 99) / 1e9,
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


FETCH = """async (known) => {
    const root = new URL(document.documentElement.dataset.content_root, location.href);
    const {Published} = await import(new URL('_static/published/fetching.js', root));
    const model = new Published(new URL('_static/live/smollm2/', root).href, known.sha256);
    await model.fetch({onprogress: () => {}});
    tinytorchLive.kernel.mount('/published', await model.files());
    return (await model.files())[0].name;
}"""
TALKING = """
import json
from time import perf_counter
import pyodide_js

began = perf_counter()
from tinytorch.models.llama import load_llama
from tinytorch_book.experiments.talking import Talk
model, tokenizer = load_llama("/published/FILE", dtype="stored")
talk = Talk(model, tokenizer)
found = {"ready": perf_counter() - began}
asked = lambda text: [{"role": "user", "content": text}]
question = asked("Write a long story about a dog who lost a drum.")
next(talk.answer(question, 1))
began = perf_counter()
written = sum(1 for _ in talk.answer(question, 60))
found["speed"] = written / (perf_counter() - began)
found["memory"] = pyodide_js._module.HEAPU8.length
nothing_read = Talk(model, tokenizer, window=64)
began = perf_counter()
next(nothing_read.answer(asked("Why is the sky so blue in the day?"), 1))
found["prompt"] = perf_counter() - began
print(json.dumps(found))
"""


def talking() -> dict[str, float]:
    """What `TALKING` prints where the page has fetched the published model from this machine.

    Raises:
        SystemExit: the site holds no model.
    """
    from playwright.sync_api import sync_playwright

    manifest = SITE / "_static/live/smollm2/manifest.json"
    if not manifest.exists():
        raise SystemExit("the part `page` needs the published model: `make live book`")
    server, site = serve(SITE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)
        page = browser.new_context().new_page()
        page.set_default_timeout(0)
        page.goto(f"{site}{FIRST}.html")
        page.wait_for_function(READY)
        name = page.evaluate(FETCH, json.loads(manifest.read_text("utf-8")))
        found: dict[str, float] = json.loads(page.evaluate(RUN, TALKING.replace("FILE", name)))
        browser.close()
    server.shutdown()
    return found


def natively() -> dict[str, Any]:
    """What `PROGRAMS` prints in this process."""
    import contextlib
    import io

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(PROGRAMS, {"__name__": "__main__"})
    return json.loads(printed.getvalue())
