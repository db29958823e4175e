"""A model that changes while something holds its parts: what holds them follows, or refuses."""

from functools import partial

import numpy as np
import pytest
from tiny_models import message, stirred, tiny_gpt

from tinytorch import SGD, AdamW, Batches, LayerNorm, Linear, Trainer, functional
from tinytorch.core.hooks import hooks
from tinytorch.core.module import Module
from tinytorch.core.quantization import quantize
from tinytorch.models.generation import stream
from tinytorch.models.lora import add_lora, load_lora_state_dict, lora_state_dict, merge_lora
from tinytorch.models.new_tokens import add_tokens
from tinytorch.training.distributed import RankTrainer
from tinytorch.training.ranks import OnlyRank, Ranks

BATCHES = Batches(np.arange(80) % 11, batch_size=4, seq_len=8)
PROMPT = [[1, 2, 3]]


SAVED = tiny_gpt(rng=9).state_dict()
new_tokens, new_lora = (lambda m: add_tokens(m, 3)), (lambda m: add_lora(m, 2, rng=0))


def untied():
    return tiny_gpt(tie_weights=False)


def with_lora():
    return new_lora(tiny_gpt())


def half_frozen():
    return require(False, (model := tiny_gpt()).ln_f.gamma) or model


def require(wanted, *parameters):
    for parameter in parameters:
        parameter.requires_grad = wanted


def by_hand(name, make):
    return lambda model: setattr(model, name, make())


def new_block():
    return stirred(tiny_gpt(rng=4), 0.5).blocks[0]


def replace_block(model):
    model.blocks[1] = new_block()


CHANGES = {  # the model before, what changes it, and whether an optimiser of it refuses then
    "add_tokens": (tiny_gpt, new_tokens, "refuses"),
    "add_tokens, untied": (untied, new_tokens, "refuses"),
    "add_lora": (tiny_gpt, new_lora, "refuses"),
    "merge_lora": (with_lora, merge_lora, "refuses"),
    "quantize": (tiny_gpt, quantize, "follows"),  # a copy
    "load_state_dict": (tiny_gpt, lambda m: m.load_state_dict(SAVED), "follows"),
    "a norm by hand": (tiny_gpt, by_hand("ln_f", lambda: stirred(LayerNorm(8), 0.5)), "refuses"),
    "a block in its list": (tiny_gpt, replace_block, "refuses"),
    "one more block": (tiny_gpt, lambda m: m.blocks.append(new_block()), "refuses"),
    "one block less": (tiny_gpt, lambda m: m.blocks.pop(), "refuses"),
    "untied": (tiny_gpt, by_hand("lm_head", lambda: Linear(8, 11, bias=False)), "refuses"),
    "tied": (untied, by_hand("lm_head", lambda: None), "refuses"),
    "frozen": (tiny_gpt, lambda m: require(False, m.ln_f.gamma), "follows"),
    "unfrozen": (half_frozen, lambda m: require(True, m.ln_f.gamma), "refuses"),
    "all frozen": (tiny_gpt, lambda m: require(False, *m.parameters()), "refuses"),
}  # fmt: skip


def loop(optimizer, model):
    """A step as somebody writes it; the mean of squares reaches every parameter."""
    model.zero_grad()
    if (loss := (model(BATCHES[0][0]) ** 2).mean()).requires_grad:
        loss.backward()
    optimizer.step()


def trainer(model, optimizer=None):
    return Trainer(model, BATCHES, optimizer=optimizer, progress=False)


def ranks(model, **options):
    return RankTrainer(Ranks(OnlyRank()), model, BATCHES, progress=False, **options)


HOLDERS = {  # what makes a step or a file of a model, and may hold its parts meanwhile
    "AdamW": lambda m, _: partial(loop, AdamW(m.trainable_parameters(), lr=0.1), m),
    "SGD": lambda m, _: partial(loop, SGD(m.trainable_parameters(), lr=0.1), m),
    "Trainer": lambda m, _: partial(trainer(m).run, 1),
    "Trainer of a list": lambda m, _: partial(
        trainer(m, SGD([p for p in m.parameters() if p.requires_grad], lr=0.1)).run, 1
    ),
    "RankTrainer": lambda m, _: partial(ranks(m).run, 1),
    "RankTrainer, sharded": lambda m, _: partial(ranks(m, shard_optimizer=True).run, 1),
    "save": lambda m, path: partial(trainer(m).save, path),
    "load": lambda m, path: (t := trainer(m)).save(path) or partial(t.load, path),
}


@pytest.mark.parametrize("begun", [False, True], ids=["fresh", "after a step"])
@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("change", CHANGES)
def test_what_trains_a_changed_model_trains_all_of_it_or_refuses(tmp_path, change, holder, begun):
    make, apply, expected = CHANGES[change]
    model = make()
    step = HOLDERS[holder](model, tmp_path / "run")
    if begun:
        step()
    apply(model)
    before, files = model.state_dict(), [(f, f.read_bytes()) for f in tmp_path.iterdir()]
    if expected == "refuses":
        assert "make a new " in message(ValueError, step)
        changed = [n for n, p in model.named_parameters() if not np.array_equal(p.data, before[n])]
        assert changed == [] and files == [(f, f.read_bytes()) for f in tmp_path.iterdir()]
        if not model.trainable_parameters():
            return
        step = HOLDERS["AdamW"](model, None)  # as the message says
    step()
    step()  # B begins with zeros, so A moves with the second step
    if holder not in ("save", "load") or expected == "refuses":
        for name, p in model.named_parameters():
            assert p.requires_grad != np.array_equal(p.data, before[name]), name


# Functions one after the other -----------------------------------------------------------------


def small(make, dtype="int8"):
    return lambda: quantize(make(), dtype)


def lora_head():
    return add_lora(untied(), 2, targets=["lm_head"])


def lora_and_a_norm():
    return require(True, (model := with_lora()).ln_f.gamma) or model


def before(change, use, made=lambda m: AdamW([*m.parameters()])):
    """Use with a model what was made before its change."""
    return lambda m: use((made(m), change(m))[0], m)


def of_trainer(optimizer, model):
    trainer(model, optimizer)


REFUSED = {
    "tokens, LoRA on the head": (lora_head, new_tokens, "a LoRALinear has no"),
    "tokens, quantized": (small(untied), new_tokens, "then add LoRA to it or quantize it"),
    "tokens, half precision": (small(tiny_gpt, "float16"), new_tokens, "QuantizedEmbedding has no"),
    "merge, quantized": (small(with_lora), merge_lora, "q_proj is quantized; merge the float32"),
    "merge, half precision": (small(with_lora, "float16"), merge_lora, "q_proj is quantized"),
    "LoRA, quantized": (small(tiny_gpt), new_lora, "it has none"),
    "adapter and a norm": (lora_and_a_norm, lora_state_dict, r"ln_f\.gamma is trained as well"),
    "Trainer, quantized": (small(tiny_gpt), trainer, "is frozen or quantized"),
    "list before a change": (
        tiny_gpt, before(replace_block, lambda held, _: AdamW(held), Module.parameters), "lacks 16"
    ),
    "optimiser before LoRA": (tiny_gpt, before(new_lora, of_trainer), "are frozen; make"),
    "optimiser before tokens": (tiny_gpt, before(new_tokens, of_trainer), "1 have another shape"),
    "optimiser of another": (
        tiny_gpt, lambda m: trainer(m, AdamW(tiny_gpt().parameters())), "lacks 36 of those"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_go_together_is_refused_in_a_sentence_and_changes_nothing(case):
    make, apply, told = REFUSED[case]
    model = make()
    before, size = model.state_dict(), model.vocab_size
    with pytest.raises(ValueError, match=told):
        apply(model)
    if " before " not in case:
        after = model.state_dict()
        assert [*before] == [*after] and model.vocab_size == size
        assert all(np.array_equal(after[name], array) for name, array in before.items())


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


# A text that is being written, and hooks ---------------------------------------------------------


class Looking(Module):
    """A reader's own attention, which takes no cache."""

    def forward(self, x, mask=None):
        return functional.softmax(mask + functional.softmax(x @ x.transpose())) @ x


NEW_PARTS = {
    **{name: (make, change) for name, (make, change, _) in CHANGES.items() if "block" in name},
    "add_tokens": (tiny_gpt, new_tokens),
    "add_lora": (tiny_gpt, lambda m: stirred(new_lora(m))),
    "merge_lora": (with_lora, merge_lora),
    "a norm": (tiny_gpt, CHANGES["a norm by hand"][1]),
    "untied": (tiny_gpt, by_hand("lm_head", lambda: stirred(Linear(8, 11, rng=0)))),
    "no bias": (tiny_gpt, lambda m: setattr(m.blocks[1].mlp.linear2, "bias", None)),
    "no cache": (tiny_gpt, lambda m: setattr(m.blocks[0], "attention", Looking())),
}


def written(model, change, use_cache=True):
    """The tokens of a stirred model that changes after the third."""
    tokens, found = stream(stirred(model), PROMPT, 20, rng=0, use_cache=use_cache), []
    for i, token in enumerate(tokens):
        found += token.tolist()
        if i == 2:
            change(model)
    return found


@pytest.mark.parametrize("name", NEW_PARTS)
def test_a_text_is_continued_with_the_parts_that_the_model_has_now(name):
    make, change = NEW_PARTS[name]
    with_cache = written(make(), change)
    assert with_cache == written(make(), change, use_cache=False)
    as_before = with_cache == written(make(), lambda m: None)
    assert as_before == (name in ("merge_lora", "no bias"))  # 0.3 of a bias changes no token


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


def test_hooks_stay_at_their_places_when_a_part_is_replaced():
    model, seen = tiny_gpt(), []
    with hooks(model, after={"blocks.1": seen.append}, before={"ln_f": seen.append}):
        replace_block(model)
        model.ln_f = LayerNorm(8)
        model(PROMPT)
        assert len(seen) == 2
        model.blocks.pop()
        assert "the model has no part 'blocks.1'" in message(ValueError, lambda: model(PROMPT))
