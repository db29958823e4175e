"""The published SmolLM2 compared with what is known of it: its file, and one answer."""

from __future__ import annotations

from tinytorch.files.atomic_files import StrPath
from tinytorch.files.downloads import Progress, sha256_of, show_progress
from tinytorch.models.llama.loading import chat_template, load_llama
from tinytorch.models.llama.published import PUBLISHED, published_file
from tinytorch.models.streamed_text import stream_answer
from tinytorch.text.chat import chatml_system

__all__ = ["QUESTION", "verify"]

QUESTION = "What is the capital of France?"
_ANSWER = "The capital of France is Paris."  # as transformers writes with the same file


def verify(
    name: str = "smollm2-135m-instruct",
    *,
    dtype: str = "float32",
    cache_dir: StrPath | None = None,
    progress: Progress | None = show_progress,
) -> str:
    """Check that a published file is whole, and that its model answers as it is known to.

    Args:
        name: one of those in `PUBLISHED`.
        dtype: as for `load_llama`, as are the others.
        cache_dir: as for `load_llama`.
        progress: as for `load_llama`.

    Returns:
        The answer to `QUESTION`, of the likeliest tokens.

    Raises:
        DownloadError: as `published_file`, as is the next.
        ValueError: another name, another file, or another answer; the message says which.
    """
    path = published_file(name, cache_dir=cache_dir, progress=progress)
    if sha256_of(path) != PUBLISHED[name].sha256:
        raise ValueError(f"{path}: its SHA-256 is not the published one; delete it, and run again")
    model, tokenizer = load_llama(path, dtype=dtype)
    system, asked = chatml_system(chat_template(path)), [{"role": "user", "content": QUESTION}]
    answer = "".join(stream_answer(model, tokenizer, asked, system, temperature=0))
    if answer != _ANSWER:
        raise ValueError(f"verify: the known answer is {_ANSWER!r}, and this model's {answer!r}")
    return answer
