"""A model that changes while something holds its parts: what holds them follows, or refuses."""

from functools import partial

import numpy as np
import pytest
from own_parts import MINE
from tiny_models import message, stirred, tiny_gpt

from tinytorch import SGD, AdamW, Batches, LayerNorm, Linear, Trainer
from tinytorch.core.hooks import hooks
from tinytorch.core.quantization import quantize
from tinytorch.models.generation import stream
from tinytorch.models.lora import add_lora, load_lora_state_dict, lora_state_dict, merge_lora
from tinytorch.models.new_tokens import add_tokens
from tinytorch.training.distributed import RankTrainer
from tinytorch.training.ranks import OnlyRank, Ranks

BATCHES = Batches(np.arange(80) % 11, batch_size=4, seq_len=8)
PROMPT = [[1, 2, 3]]
SAVED = tiny_gpt(rng=9).state_dict()

untied = partial(tiny_gpt, tie_weights=False)
new_tokens = partial(add_tokens, count=3)
new_lora = partial(add_lora, rank=2, rng=0)


def with_lora():
    return new_lora(tiny_gpt())


def freeze(*parameters):
    for parameter in parameters:
        parameter.requires_grad = False


def unfreeze_norm(model):
    model.ln_f.gamma.requires_grad = True


def new_block():
    return stirred(tiny_gpt(rng=4), 0.5).blocks[0]


def replace_block(model):
    model.blocks[1] = new_block()


def replace_attention(model):
    own, block = MINE["attention"](8, 2, 0.0), model.blocks[0]
    own.load_state_dict(block.attention.state_dict())
    block.attention = stirred(own)


def replace_norm(model):
    model.ln_f = stirred(LayerNorm(8), 0.5)


def untie(model):
    model.lm_head = stirred(Linear(8, 11, rng=0))


CHANGES = {  # the model before, what changes it, and what its optimiser says, if it refuses
    "add_tokens": (tiny_gpt, new_tokens, "1 changed shape, to (14, 8)"),
    "add_lora": (tiny_gpt, lambda m: stirred(new_lora(m)), "and all that it updates are frozen"),
    "merge_lora": (with_lora, merge_lora, "does not update 36 that the model trains"),
    "quantize": (tiny_gpt, quantize, ""),  # a copy
    "load_state_dict": (tiny_gpt, lambda m: m.load_state_dict(SAVED), ""),
    "a norm": (tiny_gpt, replace_norm, "(ln_f.gamma, ln_f.beta) and it updates 2 that"),
    "no cache": (tiny_gpt, replace_attention, "does not update 8 that"),
    "a block in its list": (tiny_gpt, replace_block, "attention.q_proj.weight, ...)"),
    "one more block": (tiny_gpt, lambda m: m.blocks.append(new_block()), "does not update 16 that"),
    "one block less": (tiny_gpt, lambda m: m.blocks.pop(), "it updates 16 that"),
    "untied": (tiny_gpt, untie, "(lm_head.weight, lm_head.bias)"),
    "tied": (untied, lambda m: setattr(m, "lm_head", None), "it updates 1 that"),
    "frozen": (tiny_gpt, lambda m: freeze(m.ln_f.gamma), ""),
    "unfrozen": (with_lora, unfreeze_norm, "(ln_f.gamma)"),
    "all frozen": (tiny_gpt, lambda m: freeze(*m.parameters()), "parameters: all that"),
}
UNHEARD = ("merge_lora", "quantize", "frozen", "unfrozen", "all frozen")  # change no token


def loop(optimizer, model):
    """A step as somebody writes it; the mean of squares reaches every parameter."""
    model.zero_grad()
    if (loss := (model(BATCHES[0][0]) ** 2).mean()).requires_grad:
        loss.backward()
    optimizer.step()


def adamw(model):
    return AdamW(model.trainable_parameters(), lr=0.1)


def trainer(model, optimizer=None):
    return Trainer(model, BATCHES, optimizer=optimizer, progress=False)


def sgd(model):
    return SGD([*model.trainable_parameters()], lr=0.1)


def ranks(model):
    return RankTrainer(Ranks(OnlyRank()), model, BATCHES, shard_optimizer=True, progress=False)


HOLDERS = {  # what makes a step or a file of a model, and may hold its parts meanwhile
    "optimiser": lambda m, _: partial(loop, adamw(m), m),
    "Trainer": lambda m, _: partial(trainer(m).run, 1),
    "Trainer, made later": lambda m, _: partial(lambda held: trainer(m, held).run(1), adamw(m)),
    "Trainer of a list": lambda m, _: partial(trainer(m, sgd(m)).run, 1),
    "RankTrainer, sharded": lambda m, _: partial(ranks(m).run, 1),
    "save": lambda m, path: partial(trainer(m).save, path),
    "load": lambda m, path: (t := trainer(m)).save(path) or partial(t.load, path),
}


@pytest.mark.parametrize("begun", [False, True], ids=["fresh", "after a step"])
@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("change", CHANGES)
def test_what_trains_a_changed_model_trains_all_of_it_or_refuses(tmp_path, change, holder, begun):
    make, apply, told = CHANGES[change]
    model = make()
    step = HOLDERS[holder](model, tmp_path / "run")
    if begun:
        step()
    apply(model)
    before, files = model.state_dict(), [(f, f.read_bytes()) for f in tmp_path.iterdir()]
    if told:
        assert told in message(ValueError, step)
        changed = [n for n, p in model.named_parameters() if not np.array_equal(p.data, before[n])]
        assert changed == [] and files == [(f, f.read_bytes()) for f in tmp_path.iterdir()]
        if not model.trainable_parameters():
            return
        step = HOLDERS["optimiser"](model, None)  # as the message says
    step()
    if holder not in ("save", "load") or told:
        for name, p in model.named_parameters():
            assert p.requires_grad != np.array_equal(p.data, before[name]), name


# Functions one after the other -----------------------------------------------------------------


REFUSED = {  # what is told of what is done with a model
    "a LoRALinear has no": (lambda: new_lora(untied(), targets=["lm_head"]), new_tokens),
    "then add LoRA to it or quantize it": (lambda: quantize(untied()), new_tokens),
    "q_proj is quantized; merge the float32": (lambda: quantize(with_lora()), merge_lora),
    "the model that quantize() was given": (lambda: quantize(tiny_gpt()), new_lora),
    "ln_f.gamma is trained as well": (with_lora, lambda m: unfreeze_norm(m) or lora_state_dict(m)),
    "has LoRA already; merge_lora(model) first": (with_lora, new_lora),
    "GPT has no LoRA; add_lora(": (tiny_gpt, merge_lora),
    "no LoRA; add_lora(model, rank=4) comes first": (tiny_gpt, lora_state_dict),
    "is the model frozen or quantized": (lambda: quantize(tiny_gpt()), trainer),
    "it updates 36 that the model lacks": (tiny_gpt, lambda m: trainer(m, adamw(tiny_gpt()))),
}


@pytest.mark.parametrize("told", REFUSED)
def test_what_does_not_go_together_is_refused_in_a_sentence_and_changes_nothing(told):
    make, apply = REFUSED[told]
    model = make()
    before, size = model.state_dict(), model.vocab_size
    assert told in message(ValueError, lambda: apply(model))
    after = model.state_dict()
    assert [*before] == [*after] and model.vocab_size == size
    assert all(np.array_equal(after[name], array) for name, array in before.items())


def test_a_list_of_parameters_that_the_model_has_no_more_makes_no_optimiser():
    model = tiny_gpt()
    held = model.parameters()
    replace_block(model)
    assert "updates 16 that the model lacks" in message(ValueError, lambda: AdamW(held))


def test_what_an_optimiser_leaves_out_on_purpose_stays_as_it_is():
    model = tiny_gpt()
    trainer(model, SGD(model.ln_f.parameters(), lr=0.1)).run(2)
    assert np.array_equal(model.token_embedding.weight.data, tiny_gpt().token_embedding.weight.data)


@pytest.mark.parametrize("lora_first", [True, False])
def test_tokens_and_lora_in_either_order_make_an_adapter_that_gives_the_model_back(lora_first):
    order = [new_lora, new_tokens]
    model, fresh = tiny_gpt(), tiny_gpt()
    for each in (model, fresh):
        for change in order if lora_first else order[::-1]:
            change(each)
    Trainer(model, Batches(np.arange(80) % 14, 4, 8), progress=False).run(5)
    load_lora_state_dict(fresh, lora_state_dict(model))
    np.testing.assert_array_equal(fresh([[1, 13]]).data, model([[1, 13]]).data)
    assert not np.array_equal(model([[1, 13]]).data, add_tokens(tiny_gpt(), 3)([[1, 13]]).data)


def test_a_head_of_the_readers_own_grows_with_the_vocabulary():
    model, head = tiny_gpt(), Linear(8, 11)
    model.lm_head, head.bias.data = head, np.float32([*range(11)])
    assert add_tokens(model, 2).lm_head is head and head.out_features == 13
    assert head.bias.data.tolist() == [*range(11), 5, 5]


# A text that is being written ---------------------------------------------------------


def written(model, change, use_cache=True):
    """The tokens of a stirred model that changes after the third."""
    tokens, found = stream(stirred(model), PROMPT, 20, rng=0, use_cache=use_cache), []
    for i, token in enumerate(tokens):
        found += token.tolist()
        if i == 2:
            change(model)
    return found


@pytest.mark.parametrize("name", CHANGES)
def test_a_text_is_continued_with_the_parts_that_the_model_has_now(name):
    make, change, _ = CHANGES[name]
    with_cache = written(make(), change)
    assert with_cache == written(make(), change, use_cache=False)
    assert (with_cache == written(make(), lambda m: None)) == (name in UNHEARD)


def test_a_part_of_another_model_makes_no_text_be_read_again():
    model, lengths = tiny_gpt(), []
    forward = model.blocks[0].mlp.forward
    model.blocks[0].mlp.forward = lambda x: (lengths.append(x.shape[1]), forward(x))[1]
    for _ in stream(model, PROMPT, 4):
        replace_block(tiny_gpt())
        model.load_state_dict(SAVED)
    assert lengths == [3, 1, 1, 1]


def test_hooks_that_open_between_two_tokens_are_seen():
    def read(use_cache):
        model = stirred(tiny_gpt())
        tokens, found = stream(model, PROMPT, 12, rng=0, use_cache=use_cache), []
        for _ in range(4):
            found += [next(tokens), next(tokens)]
            with hooks(model, after={"blocks.0": lambda x: -x.data}):
                found.append(next(tokens))
        return np.concatenate(found).tolist()

    assert read(True) == read(False) != written(tiny_gpt(), lambda m: None)
