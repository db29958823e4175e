"""The same pages in Firefox: both schemes, a cell, a plot, Stop, an exercise, Python's snapshot."""

import pytest
from firefox import DARK, LIGHT, Firefox, find_firefox
from served_pages import SITE

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SHORT = "book/foundations/tensors"
ENDED = (
    "['done', 'error', 'stopped', 'missing'].includes(tinytorchLive.cells[{}].element.dataset.live)"
)
LOOK = """const colour = (e) => getComputedStyle(e).backgroundColor;
    const [code] = document.querySelectorAll('div.cell_input div.highlight');
    return [colour(document.body), colour(code),
        getComputedStyle(document.querySelector('svg.tt-figure text')).fill];"""
CLIPPED = """const wide = document.documentElement;
    return wide.scrollWidth > wide.clientWidth;"""


@pytest.fixture(scope="module")
def firefox(site, tmp_path_factory):
    """A Firefox that has the page open."""
    executable = find_firefox()
    if executable is None:
        pytest.skip("there is no Firefox: install it, or name it in $FIREFOX")
    if not (SITE / "_static" / "live" / "python.bin").exists():
        pytest.fail("the site holds no Python: run `make live`, then `make book`", pytrace=False)
    firefox = Firefox(executable, tmp_path_factory.mktemp("profile"))
    firefox.open(f"{site}{SHORT}.html")
    yield firefox
    firefox.close()


def run(firefox, number, code):
    """Rewrite a cell and press its button."""
    firefox.run(
        "const cell = tinytorchLive.cells[given[0]]; await cell.edit();"
        " cell.editor.text = given[1];",
        number - 1,
        code,
    )
    name = firefox.run(f"return tinytorchLive.cells[{number - 1}].name")
    firefox.click(f"[aria-label='{name}'] button")


def ended(firefox, number):
    """Wait for a cell's end; how it ended, and its output."""
    firefox.until(ENDED.format(number - 1))
    return firefox.run(
        "const {element, output} = tinytorchLive.cells[given[0]];"
        " return [element.dataset.live, output.text.trim()];",
        number - 1,
    )


def test_a_chapter_in_firefox(firefox, site):
    looks = {}
    for scheme, name in ((LIGHT, "light"), (DARK, "dark")):
        firefox.prefer(scheme)
        firefox.until(f"document.documentElement.dataset.theme === '{name}'")
        looks[scheme] = firefox.run(LOOK)
    assert all(a != b for a, b in zip(looks[LIGHT], looks[DARK], strict=True))
    assert not firefox.run(CLIPPED)
    assert firefox.run("return document.querySelectorAll('math').length > 0")

    run(firefox, 1, "import numpy as np\nprint(np.arange(3) * 2)")
    assert ended(firefox, 1) == ["done", "[0 2 4]"]
    assert firefox.run("return tinytorchLive.kernel.times.memory > 0"), "from the snapshot"
    run(firefox, 1, "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.title('$x^2$');")
    assert ended(firefox, 1)[0] == "done"
    drawn = "return document.querySelectorAll('.tt-live__own svg.tt-figure path').length > 10"
    assert firefox.run(drawn)

    firefox.run("await navigator.serviceWorker.ready;")
    firefox.open(f"{site}{SHORT}.html")  # again: now the page shares memory with its Python
    assert firefox.run("return crossOriginIsolated")
    run(firefox, 1, "print('before')\nwhile True:\n    pass")
    firefox.until("tinytorchLive.cells[0].output.text.includes('before')")
    firefox.run("tinytorchLive.cells[0].runButton.click();")
    assert ended(firefox, 1) == ["error", "before\nStopped."]
    kept = "(await (await caches.open('tinytorch-book')).keys()).map(({url}) => url).join()"
    firefox.until(f"({kept}).includes('python.bin')")

    stub, solution = firefox.run(
        "const {cells} = tinytorchLive; return [cells.find((cell) => cell.isStub).number,"
        " cells.find((cell) => cell.isSolution).original];"
    )
    names = (
        "import numpy as np\nfrom tinytorch import Tensor, functional, ops\n"
        "from tinytorch_book import check\n"
    )
    run(firefox, stub, names + solution)
    assert ended(firefox, stub)[0] == "done"
    firefox.until("document.querySelectorAll('.tt-live__solved').length === 1")
    assert firefox.complaints(site) == []
