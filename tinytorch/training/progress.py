"""The progress of a training run: in a notebook, in a terminal and in a log file.

In a notebook one output is updated, and a saved page shows the last state. In a terminal one line
is rewritten. In a file or a pipe there is one line for every tenth of the run. If the threads of
NumPy slow the run down (see `tinytorch.core.blas_threads`), a hint says once what to set.
"""

import sys
import time
from typing import Any, TextIO

from tinytorch.core import blas_threads

_BETWEEN = 0.2  # seconds from one update to the next


class Progress:
    """Shows how far a run has got, and the numbers it reports.

    Args:
        total: how many steps there are.
        floor: the lowest loss possible, shown beside the loss; None if unknown.
        stream: where to write; by default the notebook, or standard output.
        begun: how many of the steps an earlier run has taken.

    Example:
        >>> progress = Progress(total=2, floor=0.5, stream=sys.stdout)
        >>> progress.update(1, loss=0.75, tokens=640, seconds=2.0)
        step 1/2 | loss 0.750, floor 0.500 | 320 tokens/s | 2 s left
    """

    def __init__(
        self,
        total: int,
        floor: float | None = None,
        stream: TextIO | None = None,
        begun: int = 0,
    ) -> None:
        self.total, self.floor, self.begun = total, floor, begun
        self.stream = sys.stdout if stream is None else stream
        self._notebook = (
            _notebook_display(f"{begun:,} of {total:,} steps") if stream is None else None
        )
        self._terminal = self._notebook is None and self.stream.isatty()
        self._drawn, self._tenth, self._width = float("-inf"), 0, 0
        self._clocks, self._hint = blas_threads.clocks(), ""

    def update(
        self, step: int, loss: float, tokens: int, seconds: float, validation: float | None = None
    ) -> None:
        """Show the state after a step, if an update is due."""
        last, tenth, now = step >= self.total, 10 * step // self.total, time.monotonic()
        if self._terminal or self._notebook is not None:
            due = now - self._drawn >= _BETWEEN
        else:
            due = tenth != self._tenth
        if not due and not last:
            return
        self._drawn, self._tenth = now, tenth
        if not self._hint:
            self._hint_if_threads_compete()
        named = {"loss": loss, "validation": validation, "floor": self.floor}
        losses = ", ".join(f"{name} {x:.3f}" for name, x in named.items() if x is not None)
        speed = f"{tokens / max(seconds, 1e-9):,.0f} tokens/s"
        left = duration(seconds * (self.total - step) / max(step - self.begun, 1))
        self._draw(step, losses, speed, f"took {duration(seconds)}" if last else f"{left} left")

    def close(self) -> None:
        """Show the last state, and leave it there."""
        if self._width:
            self.stream.write("\n")
            self._width = 0

    def _hint_if_threads_compete(self) -> None:
        spent = zip(blas_threads.clocks(), self._clocks, strict=True)
        if blas_threads.compete(*(after - before for after, before in spent)):
            self._hint = blas_threads.HINT
            if self._notebook is None:  # a line of its own, above the one that is rewritten
                start = "\r" if self._terminal else ""
                self.stream.write(start + self._hint.ljust(self._width) + "\n")

    def _draw(self, step: int, losses: str, speed: str, left: str) -> None:
        if self._notebook is not None:  # short lines: they fit on a phone
            full = 40 * min(step, self.total) // self.total
            bar = "━" * full + "╌" * (40 - full)
            shown = f"step {step:,} of {self.total:,}\n{bar}\n{losses}\n{speed}, {left}"
            self._notebook(f"{shown}\n{self._hint}".rstrip())
            return
        line = f"step {step:,}/{self.total:,} | {losses} | {speed} | {left}"
        if self._terminal:  # a line that wraps could not be rewritten
            import shutil  # here, since it is slow to import and rarely needed

            line = line[: shutil.get_terminal_size().columns - 1]
            self.stream.write("\r" + line.ljust(self._width))
            self._width = len(line)
        else:
            self.stream.write(line + "\n")
        self.stream.flush()


def duration(seconds: float) -> str:
    """A time in words, rounded to what matters.

    Example:
        >>> duration(7.4), duration(190), duration(7400)
        ('7 s', '3 min 10 s', '2 h 3 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _notebook_display(first: str) -> Any:
    """Show a text; returns a function that replaces it, or None outside notebooks."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display

    show: Any = display
    handle = show({"text/plain": first}, raw=True, display_id=True)
    return lambda text: handle.update({"text/plain": text}, raw=True)
