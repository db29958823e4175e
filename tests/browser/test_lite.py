"""A chapter in JupyterLite: opened from its page's menu, every cell run, nothing from elsewhere."""

import json

import pytest
from served_pages import ROOT, SITE

SHORT = "book/foundations/tensors"
IDLE = ".jp-Notebook-ExecutionIndicator[data-status=idle]"
ALL_RUN = """() => {
    const prompts = [...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')];
    const texts = prompts.map(prompt => prompt.innerText);
    return texts.some(text => /\\d/.test(text)) && !texts.some(text => text.includes('*'));
}"""
BEGUN = """() => [...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')]
    .some(prompt => /[\\d*]/.test(prompt.innerText))"""
STATE = """() => [document.querySelector('.jp-Notebook-ExecutionIndicator')?.dataset.status,
    document.querySelector('.jp-Dialog')?.innerText]"""
OUTPUTS = """() => [...document.querySelectorAll('.jp-CodeCell')].map(cell =>
    [...cell.querySelectorAll('.jp-OutputArea-output')].map(e => e.textContent).join(''))"""
SEEN = """() => {
    const drawing = document.querySelector('.jp-MarkdownCell img');
    return drawing?.src.startsWith('data:') && drawing.naturalWidth > 0;
}"""
pytestmark = [pytest.mark.browser, pytest.mark.slow]


def stored():
    """What the code cells of the notebook print, and whether that is the same every time."""
    path = ROOT / "book" / "notebooks" / f"{SHORT.rsplit('/', 1)[-1]}.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    for cell in (c for c in cells if c["cell_type"] == "code"):
        streams = [o["text"] for o in cell["outputs"] if o["output_type"] == "stream"]
        tags = cell["metadata"].get("tags", [])
        yield "".join(map("".join, streams)), "nbval-ignore-output" not in tags


def as_stored(text, cell):
    """Whether a cell has printed what is stored; what is displayed comes after it."""
    printed, constant = cell
    return not constant or text.split()[: len(printed.split())] == printed.split()


def run_all(lab):
    """Choose Run All Cells, again if nothing begins: a kernel that is not there yet forgets it."""
    for _ in range(3):
        lab.get_by_role("menuitem", name="Run", exact=True).click()
        lab.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        for _ in range(100):
            if lab.evaluate(BEGUN):
                return
            lab.wait_for_timeout(1000)
    pytest.fail(f"JupyterLite runs nothing: {lab.evaluate(STATE)}", pytrace=False)


def test_a_chapter_runs_in_jupyterlite(visit, context):
    if not (SITE / "lite" / "lab" / "index.html").exists():
        pytest.fail("there is no JupyterLite: run `make live`, then `make book`", pytrace=False)
    page = visit.open_live(SHORT)
    page.get_by_role("button", name="Open in…").click()
    with context.expect_page() as opening:
        page.locator(".tt-open").get_by_text("JupyterLite").click()
    lab = opening.value
    lab.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
    lab.locator(IDLE).wait_for(state="attached")  # what is asked of a kernel before that is lost
    run_all(lab)
    lab.wait_for_function(ALL_RUN)
    expected = list(stored())
    for _ in range(300):  # a cell may still be printing
        came = lab.evaluate(OUTPUTS)
        if len(came) == len(expected) and all(map(as_stored, came, expected)):
            break
        lab.wait_for_timeout(1000)
    assert len(came) == len(expected)
    for text, cell in zip(came, expected, strict=True):
        assert "Traceback" not in text
        assert as_stored(text, cell)
    lab.wait_for_function(SEEN)
    assert visit.problems == []
