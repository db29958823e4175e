"""The toolbar above a page: *Run all*, *Open in…*, and a menu of what else a page offers.

The theme would show a button for each service and each file. Here one menu says where a page with
code can be opened, and another, behind three dots, holds the theme's other buttons under names.
Bootstrap moves the focus in both with the arrow keys and closes them with Escape.
"""

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config

from ..launch_links import launch_links

TEMPLATES = Path(__file__).with_name("templates")
PLACES = {  # by the labels of `launch_links`: what the menu says, and the picture
    "Here": ("This page: run it live", "fas fa-play"),
    "JupyterLite": ("JupyterLite, in this browser", "_static/images/logo_jupyterlite.svg"),
    "Binder": ("Binder, on a free server", "_static/images/logo_binder.svg"),
    "Colab": ("Colab, with a Google account", "_static/images/logo_colab.png"),
    ".ipynb": ("Download the notebook", "fas fa-download"),
}
OTHERS = {  # by the theme's labels, and `source`
    "source": "Read the source",
    "fullscreen-button": "Full screen",
    "download-pdf-button": "Print or save as PDF",
    "download-source-button": "Download the source",
    "source-repository-button": "Repository",
    "source-edit-button": "Suggest an edit",
    "source-issues-button": "Report an issue",
}


def open_in(links: dict[str, str]) -> list[dict[str, str]]:
    """List the places where a page can be opened, each with its text, icon and address.

    >>> open_in({"Source": "a.md", "Colab": "https://colab.example/a.ipynb"})[0]["text"]
    'Colab, with a Google account'
    """
    return [
        {"text": text, "icon": icon, "url": links[label]}
        for label, (text, icon) in PLACES.items()
        if label in links
    ]


def others(buttons: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """List the theme's buttons that do not open the page elsewhere, under their names here."""
    flat = [each for button in buttons for each in button.get("buttons", [button])]
    found = {button.get("label"): button for button in flat}
    return [{**found[label], "text": text} for label, text in OTHERS.items() if label in found]


def add_menus(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Give the template of the toolbar what its menus hold."""
    buttons = context.get("header_buttons", [])
    links = launch_links(app, pagename) if pagename in app.env.all_docs else {}
    context["runs_live"] = "Here" in links
    context["open_in"] = open_in(links)
    if "Source" in links:
        source = {"label": "source", "url": links["Source"], "icon": "fas fa-code"}
        buttons = [*buttons, source]
    context["page_menu"] = others(buttons)


def use_templates(app: Sphinx, config: Config) -> None:
    """Have the toolbar's template come before the theme's."""
    config.templates_path.insert(0, str(TEMPLATES))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("config-inited", use_templates)
    app.connect("html-page-context", add_menus, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
