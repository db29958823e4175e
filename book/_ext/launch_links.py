"""Links that open a page in Colab, Binder or JupyterLite.

A chapter has one source, `book/<part>/<chapter>.md`. Binder opens it through jupytext; Colab and a
download need the notebook generated from it, `book/notebooks/<chapter>.ipynb`. The theme knows only
the source, so its Colab link is broken and its download holds MyST that Jupyter cannot show: both
are corrected here. `launch_links` is the one place where such a link is made; the toolbar shows it
(`look/toolbar.py`).
"""

from pathlib import Path, PurePosixPath
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.docutils import SphinxRole
from sphinx.util.osutil import relative_uri

from .addresses import IN_PRINT, NOTEBOOKS, released_tag, repository_url, site_url

RUN_HERE = "run-here"  # the first cell of a page whose cells run in the page itself


def launch_links(app: Sphinx, docname: str) -> dict[str, str]:
    """Return the links of an executable page, by the label they carry.

    Args:
        app: the Sphinx application.
        docname: the page, `book/foundations/tensors`.

    Returns:
        Some of `Here` (in the page), `Colab`, `Binder`, `JupyterLite` and `.ipynb` (both in the
        site, relative to the page) and `Source`: those that lead somewhere.
    """
    options = app.config.html_theme_options
    repository, branch = options["repository_url"], options.get("repository_branch", "main")
    owner_and_name = "/".join(repository.rsplit("/", 2)[-2:])
    source = PurePosixPath(app.env.doc2path(docname, base=False))
    links = {}
    if getattr(app.env, "live_cells", {}).get(docname):
        links["Here"] = f"#{RUN_HERE}"
    if "kernelspec" in app.env.metadata[docname]:
        services = options.get("launch_buttons", {})
        if (Path(app.srcdir) / notebook_of(docname)).exists():
            colab = services.get("colab_url", "").rstrip("/")
            if colab:
                links["Colab"] = (
                    f"{colab}/github/{owner_and_name}/blob/{branch}/{notebook_of(docname)}"
                )
            page = app.builder.get_target_uri(docname)
            lite = services.get("jupyterlite_url")  # set by live/jupyterlite.py
            if lite:
                links["JupyterLite"] = (
                    f"{relative_uri(page, lite)}?path={notebook_of(docname).name}"
                )
            links[".ipynb"] = relative_uri(page, f"_sources/{docname}.ipynb")
        binder = services.get("binderhub_url", "").rstrip("/")
        if binder:
            links["Binder"] = f"{binder}/v2/gh/{owner_and_name}/{branch}?urlpath=lab/tree/{source}"
    links["Source"] = f"{repository}/blob/{branch}/{source}"
    return links


def notebook_of(docname: str) -> PurePosixPath:
    """Return the path of a page's generated notebook, whether it exists or not."""
    return NOTEBOOKS / f"{PurePosixPath(docname).name}.ipynb"


def download_of(app: Sphinx, docname: str) -> Path:
    """Return the path in the site from which a page's notebook is downloaded."""
    return Path(app.outdir, "_sources", f"{docname}.ipynb")


def pages_with_new_notebooks(app: Sphinx, env: Any) -> list[str]:
    """Name the pages to write again because their notebook came, changed or went."""

    def content(path: Path) -> bytes | None:
        return path.read_bytes() if path.exists() else None

    return [
        docname
        for docname in sorted(env.all_docs)
        if "kernelspec" in env.metadata[docname]
        and content(Path(app.srcdir) / notebook_of(docname)) != content(download_of(app, docname))
    ]


def with_own_addresses(config: Config, notebook: bytes) -> bytes:
    """Have a notebook, which names the repository of `_config.yml`, name the one that publishes."""
    old, new = config.book_repository, config.html_theme_options["repository_url"]
    notebook = notebook.replace(site_url(old).encode(), config.book_site.encode())
    return notebook.replace(old.encode(), new.encode())


def name_repository(app: Sphinx, config: Config) -> None:
    """Take the repository from the workflow, if any; the site's address follows from it.

    The notebooks name the one of `_config.yml` (`book_repository`): they are committed, and a
    fork's workflow must not change them. Its site's copies name the fork (`with_own_addresses`).
    """
    options = config.html_theme_options
    config.book_repository = options["repository_url"].rstrip("/")
    # a release stays at its address, and so do the notebooks and files that it leads to
    branch = released_tag(Path(app.srcdir)) or options.get("repository_branch", "main")
    config.book_branch = options["repository_branch"] = branch
    options["repository_url"] = repository_url(options["repository_url"])
    config.html_baseurl = config.html_baseurl or site_url(options["repository_url"])
    config.book_site = config.html_baseurl
    config.book_source = f"{options['repository_url']}/blob/{branch}/"


def put_download(app: Sphinx, pagename: str, templatename: str, context: Any, doctree: Any) -> None:
    """Put a page's notebook where it is downloaded from, instead of the theme's own copy."""
    if pagename not in app.env.all_docs:
        return
    download = download_of(app, pagename)
    if ".ipynb" in launch_links(app, pagename):
        download.parent.mkdir(parents=True, exist_ok=True)
        notebook = Path(app.srcdir, notebook_of(pagename)).read_bytes()
        download.write_bytes(with_own_addresses(app.config, notebook))
    else:
        download.unlink(missing_ok=True)


class Beside(SphinxRole):
    """A link to what is no page: `in-print`, `on-site` and `in-repository` name a file there.

    The workflow puts the book in print beside the published pages, and lists all versions there: a
    site that was built by hand links to the published one.
    """

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address = address  # {site} and {source} stand for addresses

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Make the link."""
        places = {"site": self.config.book_site, "source": self.config.book_source}
        address = self.address.format(**places) + self.text
        return [nodes.reference(self.text, self.text, refuri=address, internal=False)], []


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_config_value("book_repository", "", "")
    app.add_config_value("book_branch", "main", "")
    app.add_config_value("book_site", "", "env")  # pages that link there are read again
    app.add_config_value("book_source", "", "env")
    app.add_role("in-print", Beside(f"{{site}}{IN_PRINT}/"))
    app.add_role("on-site", Beside("{site}"))
    app.add_role("in-repository", Beside("{source}"))
    app.connect("config-inited", name_repository)
    app.connect("env-updated", pages_with_new_notebooks)
    app.connect("html-page-context", put_download, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
