"""The toolbar above a page: one menu for the places to open it, one for everything else."""

import re

from _ext.look import toolbar
from small_site import EXTENSIONS, build

WORDS = "---\norphan: true\n---\n# B\n\nWords.\n"
ENTRY = re.compile(r'dropdown-item" href="([^"]*)".*?<span>(.*?)</span>', re.S)


def test_the_places_come_in_one_order_and_only_those_that_lead_somewhere():
    links = {"Colab": "c", ".ipynb": "n", "Source": "s", "JupyterLite": "j", "Here": "#h"}
    told = [
        (entry["text"].split()[0].strip(":,"), entry["url"]) for entry in toolbar.open_in(links)
    ]
    assert told == [("This", "#h"), ("JupyterLite", "j"), ("Colab", "c"), ("Download", "n")]


def test_other_buttons_keep_what_they_do_and_get_names():
    pdf = {"label": "download-pdf-button", "javascript": "window.print()", "text": ".pdf"}
    told = toolbar.others([{"buttons": [{"text": "Colab"}, pdf]}, {"label": "fullscreen-button"}])
    assert [entry["text"] for entry in told] == ["Full screen", "Print or save as PDF"]
    assert told[1]["javascript"] == "window.print()"


def test_a_page_has_two_named_menus_and_one_without_code_has_no_places(tmp_path, monkeypatch):
    monkeypatch.setattr("small_site.EXTENSIONS", (*EXTENSIONS, "_ext.look.toolbar"))
    links = {"Here": "#run-here", "Binder": "https://binder.example"}
    monkeypatch.setattr(toolbar, "launch_links", lambda app, name: links if "index" in name else {})
    folder, warnings = build(tmp_path, index="# A\n", other=WORDS)
    assert warnings == ""
    page, words = ((folder / f"{name}.html").read_text("utf-8") for name in ("index", "other"))
    assert {text: url for url, text in ENTRY.findall(page)}.items() >= {
        ("This page: run it live", "#run-here"),
        ("Binder, on a free server", "https://binder.example"),
    }
    assert ">Run all</button>" in page and "Open in…</button>" in page
    assert ">Run all</button>" not in words and "Open in…</button>" not in words
    for html in (page, words):
        assert html.count('aria-label="More of this page"') == 1
        assert "window.print()" in html and "toggleFullScreen()" in html
