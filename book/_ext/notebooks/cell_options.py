"""What may stand at the head of a code cell."""

OPTIONS = {"live", "mystnb", "tags"}
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
