"""The tags and options that a code cell may have."""

OPTIONS = {"compare", "live", "mystnb", "tags"}
TAGS = {
    "exercise-solution",
    "exercise-stub",
    "full-width",
    "hide-cell",
    "hide-input",
    "hide-output",
    "live-skip",
    "live-varies",
    "nbval-ignore-output",
    "raises-exception",
}
