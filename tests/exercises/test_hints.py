"""A mistake that is known has a hint of its own, and not that of the case where it shows."""

from importlib import import_module

import pytest

from tinytorch import check

CHAPTERS = (
    "multi_head", "normalisation_and_mlp", "block", "gpt", "data_and_loss", "optimisation",
    "sampling", "kv_cache", "why_it_is_fast",
)  # fmt: skip
WRONG = {k: v for name in CHAPTERS for k, v in import_module(f"answers.{name}").WRONG.items()}
HINTS = {
    "heads_predict": {
        "the heads behind the positions": "The axis of the heads moves in",
        "values as long as the queries": "Values come from the other",
        "weights with rows of keys": "Rows are queries, columns keys.",
    },
    "heads_side_by_side": {
        "the root of the whole width": "Divide by the root of the number of",
        "no root": "One head: its length is 2; divide",
        "the root of the number of heads": "One head: its length is 2; divide",
    },
    "heads_output_without": {
        "no bias": "The bias belongs to no head; add",
        "the head alone": "That is this head alone, and the",
    },
    "heads_attention": {
        "split by a reshape alone": "A reshape alone mixes the tokens:",
    },
    "norm_each_token": {
        "over all numbers": "The mean and the deviation are",
        "over the tokens": "That is batch normalisation, over",
        "without keepdims": "The mean of each token must stay in",
    },
    "norm_layer": {
        "gamma starts at zero": "gamma multiplies, so it starts at",
        "tensors, not parameters": "Make each a Parameter in __init__;",
        "PyTorch's names": "PyTorch's names; ours are gamma and",
    },
    "norm_sizes": {"the deviation": "`std` subtracts the mean"},
    "norm_rms": {
        "a mean subtracted": "No mean is subtracted here.",
        "r a constant": "r is treated as a constant, but",
        "the sum of g y": "The mean of g y, no sum.",
    },
    "block_stream": {
        "the branch replaces the stream": "Each branch's result is added to",
    },
    "block_parameters": {
        "no biases": "Each of six matrices has a bias, as",
    },
    "block_stack": {
        "the norm acts on the stream": "The branch added nothing, and yet",
    },
    "block_forward": {
        "always pre-norm": "That is pre-norm order, norms",
    },
    "gpt_num_parameters": {
        "an MLP four times as wide": "The MLP is mlp_ratio times as wide",
        "always tied": "Untied, the output is a matrix of",
        "an untied output with a bias": "The output has no bias.",
    },
    "gpt_is_causal": {},
    "gpt_assembled": {
        "one block, shared": "how many different blocks does the list hold",
        "our norm at the end": "ln_f is a norm too: norm(d).",
    },
    "data_windows": {
        "begins after the newline": "A window begins with the newline,",
    },
    "data_split": {
        "reads held-out tokens": "What does the window of start 14 need",
        "the last target is held out": "The last target is held out. Tokens",
    },
    "loss_and_gradient": {
        "a negative loss": "A surprise is positive: minus the",
        "truth minus softmax": "The other way round: softmax minus",
        "the softmax alone": "Subtract 1 at the target of each",
    },
    "loss_bits_per_byte": {
        "per character": "A character of UTF-8 may have",
        "in nats": "That is in nats: a bit is ln 2",
    },
    "optim_adamw": {
        "no corrections": "The means begin at zero: divide",
        "decay through the means": "The decay went through the means",
        "corrected means returned": "Return the means as they are; only",
    },
    "optim_schedule": {},
    "optim_clip": {
        "each by itself": "Compare the ratio of the two norms",
        "norms added": "Norms do not add; their squares do.",
    },
    "optim_bytes": {
        "numbers, not bytes": "Bytes, not numbers: float32 takes",
    },
    "sampling_draw": {
        "the most likely": "That is the most likely token; u",
    },
    "sampling_temperature": {
        "probabilities divided": "Dividing all probabilities by 2, and",
    },
    "sampling_top_p": {
        "falls short of p": "They hold 0.8 only: keep the one",
    },
    "sampling_write": {
        "the stop token left out": "The stop token itself belongs to",
        "reads the prompt alone": "next_probs must read the new tokens",
    },
    "cache_predict": {
        "the last token read": "Nothing asks what follows the last",
    },
    "cache_step": {
        "attends before it extends": "The new token belongs to them too:",
        "the new token in front": "The new token comes last.",
        "the new value in front": "The new token comes last.",
    },
    "cache_write": {
        "cleared before every token": "Pass the cache that you were given,",
        "the last token read too": "Nothing asks what follows the last",
        "the prompt token by token": "All tokens of the prompt can be",
    },
    "fast_count": {
        "no output layer": "The output layer compares with",
        "one FLOP a weight": "A product and a sum: two FLOPs.",
        "read for every text": "Read once, a weight serves all 8",
    },
    "fast_pieces": {
        "a call for each number": "Correct, but with a call for each",
    },
    "cache_allowed": {
        "numbers": "The right positions, but as numbers: a",
    },
    "cache_attention": {
        "a mask that begins at 0": "the mask that comes covers the",
    },
    "fast_strides": {
        "numbers": "In bytes: a number in float32 takes",
        "float64": "NumPy makes float64 unless told",
    },
    "fast_row_products": {
        "the diagonal of all pairs": "1,000 * 1,000 products were made:",
    },
    "fast_pooled": {
        "a copy": "The numbers were copied; a reshape",
    },
    "fast_step": {
        "a new mean of squares": "Change the arrays themselves: m *=",
    },
}


@pytest.mark.parametrize(
    ("name", "wrong", "hint"),
    [(name, wrong, hint) for name, hints in HINTS.items() for wrong, hint in hints.items()],
)
def test_a_known_mistake_has_a_hint_of_its_own(name, wrong, hint):
    report = getattr(check, name)(WRONG[name][wrong])
    assert hint in report.cases[-1].hint
