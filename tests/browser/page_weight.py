"""What a page may weigh, and how it is weighed: uncompressed, as a plain server sends it.

The search index and Python come only when asked for. A playground is weighed by itself.
"""

CHAPTER_BYTES, LANDING_BYTES = 910 * 1024, 700 * 1024  # before anything runs
LANDING_REQUESTS = 20
PLAYGROUND_BYTES = 600 * 1024
PLAYGROUND = "/_static/playground/"


def files_of_page(visit, docname):
    """What came over the network, but for a playground's."""
    files = [r for r in visit.responses if r.ok and not r.url.startswith(("data:", "blob:"))]
    assert any(docname in r.url for r in files)
    return [r for r in files if PLAYGROUND not in r.url]


def files_of_playground(visit):
    """What came for a playground."""
    return [r for r in visit.responses if PLAYGROUND in r.url]


def weight(files):
    """How many bytes these are."""
    return sum(len(response.body()) for response in files)
