"""Text to integers and back: byte-pair encoding as a loop, and the tokenizers for whole texts.

The loop is in `bpe.py`. `CharTokenizer` (`characters.py`) is the simplest tokenizer there is;
`BPETokenizer` (`bpe_tokenizer.py`) has the vocabulary that the loop would learn.
"""

from tinytorch.text.bpe import decode, encode, merge, train
from tinytorch.text.bpe_tokenizer import BPETokenizer
from tinytorch.text.characters import CharTokenizer
from tinytorch.text.pretokenization import split_like, split_like_gpt2

__all__ = ["BPETokenizer", "CharTokenizer", "decode", "encode", "merge", "train"]
__all__ += ["split_like", "split_like_gpt2"]
