"""Several workers: the loss and the gradients of one, whatever the shares."""

import multiprocessing
import os
import select
import signal
import subprocess
import sys

import numpy as np
import pytest
from tiny_models import message, stirred, tiny_gpt
from training_runs import bits, clock, held_out, losses, new_trainer

from tinytorch import (
    Batches,
    Dropout,
    Embedding,
    Linear,
    Module,
    Parameter,
    RowSparse,
    Sequential,
    Trainer,
    default_rng,
    functional,
    manual_seed,
)
from tinytorch.training import distributed
from tinytorch.training.distributed import DataParallel

pytestmark = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="helpers are forks"
)
IDS = np.random.default_rng(0).integers(0, 11, size=(7, 8))
GOALS = np.random.default_rng(1).integers(0, 11, size=(7, 8))


PATIENCE = 600  # seconds: only a test that fails waits as long


@pytest.fixture(autouse=True)
def helpers_end_with_the_test():
    before = set(multiprocessing.active_children())
    yield
    for helper in set(multiprocessing.active_children()) - before:
        helper.kill()
        helper.join(PATIENCE)


@pytest.fixture
def new_helpers():
    """A function that gives the helpers that were started since it was last asked."""
    known = set(multiprocessing.active_children())

    def started():
        found = set(multiprocessing.active_children()) - known
        known.update(found)
        return sorted(found, key=lambda helper: int(helper.name.split("-")[-1]))

    return started


def dense(gradient):
    return gradient.to_dense() if isinstance(gradient, RowSparse) else gradient


def gradients(model):
    return {name: p.grad for name, p in model.named_parameters()}


def by_one(model, inputs, targets, scale=1.0):
    """The loss, and the gradients in the parameters, by one process."""
    loss = functional.cross_entropy(model(inputs), targets) * scale
    loss.backward()
    return loss.item()


def assert_same_gradients(model, other, tolerance=1e-12):
    for (name, own), expected in zip(
        gradients(model).items(), gradients(other).values(), strict=True
    ):
        assert (own is None) == (expected is None), name
        if own is not None:
            np.testing.assert_allclose(
                dense(own), dense(expected), rtol=tolerance, atol=tolerance, err_msg=name
            )


def bag(sparse=True, p=0.0, **rngs):
    """A table, dropout and an output layer."""
    table = Embedding(11, 6, sparse=sparse, rng=0)
    return Sequential(table, Dropout(p, **rngs), Linear(6, 11, rng=1))


# The same loss and gradients ---------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 7])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_shares_of_any_size_give_the_gradients_of_the_whole_batch(rows, workers):
    model, alone = stirred(tiny_gpt()), stirred(tiny_gpt())
    loss = DataParallel(model, workers).backward(IDS[:rows], GOALS[:rows], 0.25)
    assert loss == pytest.approx(by_one(alone, IDS[:rows], GOALS[:rows], 0.25), rel=1e-12)
    assert_same_gradients(model, alone)


@pytest.mark.parametrize("options", [{"tie_weights": False}, {"pos_encoding": "rotary"}])
def test_untied_and_rotary_models_have_the_same_gradients(options):
    model, alone = stirred(tiny_gpt(**options)), stirred(tiny_gpt(**options))
    DataParallel(model, 2).backward(IDS, GOALS)
    by_one(alone, IDS, GOALS)
    assert_same_gradients(model, alone)


def test_table_that_is_used_twice_gets_both_gradients_once():
    model, alone = stirred(tiny_gpt()), stirred(tiny_gpt())
    for m in (model, alone):
        m.blocks[1] = m.blocks[0]  # a whole block is shared too
    DataParallel(model, 2).backward(IDS, GOALS)
    by_one(alone, IDS, GOALS)
    assert_same_gradients(model, alone)


def test_sparse_gradients_stay_sparse_and_are_those_of_the_whole_batch():
    model, alone = stirred(bag()), stirred(bag())
    parallel = DataParallel(model, 2)
    for _ in range(2):
        parallel.backward(IDS, GOALS)
        by_one(alone, IDS, GOALS)
    assert isinstance(model.layers[0].weight.grad, RowSparse)
    assert_same_gradients(model, alone)


def test_gradients_add_to_those_that_are_there():
    model, alone = stirred(tiny_gpt()), stirred(tiny_gpt())
    parallel = DataParallel(model, 2)
    for rows in (slice(0, 3), slice(3, 7), slice(0, 1)):  # the last one leaves the helper idle
        parallel.backward(IDS[rows], GOALS[rows])
        by_one(alone, IDS[rows], GOALS[rows])
    assert_same_gradients(model, alone)


def test_parameter_that_is_not_used_has_no_gradient():
    class Idle(Sequential):
        def __init__(self):
            super().__init__(Embedding(11, 11, rng=0))
            self.idle = Parameter([1.0])

    model = Idle()
    DataParallel(model, 2).backward(IDS, GOALS)
    assert model.idle.grad is None and model.layers[0].weight.grad is not None


def test_gradients_that_are_kept_outlive_the_next_step():
    model = stirred(tiny_gpt())
    parallel = DataParallel(model, 2)
    parallel.backward(IDS, GOALS)
    kept = gradients(model)
    copies = {name: g.copy() for name, g in kept.items()}
    model.zero_grad()
    parallel.backward(IDS[::-1], IDS)
    for name, g in kept.items():
        np.testing.assert_array_equal(g, copies[name])


@pytest.mark.parametrize("change", ["in place", "another array", "loaded"])
def test_parameters_are_followed_however_they_change(change):
    model, alone = stirred(tiny_gpt()), stirred(tiny_gpt())
    parallel = DataParallel(model, 2)
    parallel.backward(IDS, GOALS)
    model.zero_grad()
    for p in alone.parameters():
        p.data *= 1.5
    for p, other in zip(model.parameters(), alone.parameters(), strict=True):
        if change == "in place":
            p.data *= 1.5
        elif change == "another array":
            p.data = np.asfortranarray(other.data)
    if change == "loaded":
        model.load_state_dict(alone.state_dict())
    loss = parallel.backward(IDS, GOALS)
    assert loss == pytest.approx(by_one(alone, IDS, GOALS), rel=1e-12)
    assert_same_gradients(model, alone)


# Random numbers and modes ------------------------------------------------------------------------


class Seen(Module):
    """Logits from a parameter for each element of a batch, so that its gradient shows the drops.

    The gradient of row r is that of the r-th row of the worker's share.
    """

    def __init__(self, p, rng=None):
        self.scores = Parameter(np.ones((11, 40)))
        self.dropout, self.out = Dropout(p, rng=rng), Linear(40, 11, rng=0)

    def forward(self, ids):
        return self.out(self.dropout(self.scores[ids]))


def dropped(rng=None, seed=3, workers=2, steps=1):
    """Which elements of token 0 (this process's share) and of 1 (the helper's) were dropped."""
    manual_seed(seed)
    model = Seen(0.5, rng=rng)
    parallel = DataParallel(model, workers)
    for _ in range(steps):
        model.zero_grad()
        parallel.backward([[0], [1]], [[2], [3]])
    return model.scores.grad[:2] == 0


@pytest.mark.parametrize("rng", [None, 8])
def test_dropout_is_the_same_for_a_seed_and_differs_between_the_shares(rng):
    own, helpers = dropped(rng)
    assert 5 < own.sum() < 35 and 5 < helpers.sum() < 35
    assert (own != helpers).any()
    np.testing.assert_array_equal(dropped(rng), [own, helpers])
    for part, other in zip(dropped(rng, steps=2), (own, helpers), strict=True):
        assert (part != other).any()  # the next step drops others


def test_another_seed_drops_others_in_every_share():
    for one, other in zip(dropped(seed=3), dropped(seed=4), strict=True):
        assert (one != other).any()
    for one, other in zip(dropped(rng=3), dropped(rng=4), strict=True):
        assert (one != other).any()


def test_generator_of_a_layer_decides_and_not_the_default_one():
    np.testing.assert_array_equal(dropped(rng=8, seed=3), dropped(rng=8, seed=4))


def test_own_share_draws_after_one_seed_for_each_helper():
    manual_seed(3)
    default_rng().integers(2**63)
    expected = default_rng().random((1, 1, 40)) < 0.5
    np.testing.assert_array_equal(dropped(seed=3)[0], expected[0, 0])


@pytest.mark.parametrize("part", ["model", "dropout"])
def test_modes_are_followed_at_every_step(part):
    model = Seen(0.5)
    parallel = DataParallel(model, 2)
    chosen = model if part == "model" else model.dropout
    for training in (True, False, True):
        chosen.train() if training else chosen.eval()
        model.zero_grad()
        parallel.backward([[0], [1]], [[2], [3]])
        shares = (model.scores.grad[:2] == 0).any(axis=1)
        assert shares.tolist() == [training, training]


# What goes wrong ---------------------------------------------------------------------------------


@pytest.mark.parametrize("row", [0, 6])
def test_error_in_any_share_reaches_the_caller_and_the_next_batch_is_right(row):
    model, alone = stirred(tiny_gpt()), stirred(tiny_gpt())
    parallel, bad = DataParallel(model, 2), IDS.copy()
    bad[row, 2] = 11
    assert "token id 11 at" in message(IndexError, lambda: parallel.backward(bad, GOALS))
    model.zero_grad()
    other = IDS[::-1]  # no row where it was: an answer left behind would show
    assert parallel.backward(other, GOALS) == pytest.approx(by_one(alone, other, GOALS), rel=1e-12)
    assert_same_gradients(model, alone)


class Falls(Module):
    """Logits that are not finite for token 0."""

    def __init__(self):
        self.table = Embedding(11, 11, rng=0)

    def forward(self, ids):
        return self.table(ids) + np.where(np.asarray(ids) == 0, np.nan, 0.0)[..., None]


@pytest.mark.parametrize("rows", [[[0], [1]], [[1], [0]], [[0], [0]]])
@pytest.mark.parametrize("accumulated", [False, True])
def test_loss_that_is_not_finite_in_any_share_leaves_no_new_gradient(rows, accumulated):
    model = Falls()
    parallel, table = DataParallel(model, 2), model.table.weight
    if accumulated:
        parallel.backward([[1], [2]], [[3], [4]])
    before = None if table.grad is None else table.grad.copy()
    assert np.isnan(parallel.backward(rows, [[1], [2]]))
    if accumulated:
        np.testing.assert_array_equal(table.grad, before)
    else:
        assert table.grad is None


@pytest.mark.parametrize("workers", [0, -1])
def test_number_of_workers_is_positive(workers):
    said = f"workers must be at least 1, got {workers}"
    assert message(ValueError, lambda: DataParallel(tiny_gpt(), workers)) == said
    assert message(ValueError, lambda: new_trainer(workers=workers)) == said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_helper_that_was_ended_is_an_error_and_not_a_wait(new_helpers, number):
    model = tiny_gpt()
    parallel = DataParallel(model, 3)
    (_, second) = new_helpers()
    model.ln_f.gamma.grad = np.ones(8)
    os.kill(second.pid, number)
    second.join(PATIENCE)
    told = "DataParallel: a helper process has ended; the next call starts new ones"
    assert message(RuntimeError, lambda: parallel.backward(IDS, GOALS)) == told
    assert model.ln_f.gamma.grad.tolist() == [1] * 8 and model.ln_f.beta.grad is None


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_after_a_helper_has_ended_the_next_batch_is_right(new_helpers, rows):
    model, alone = stirred(tiny_gpt()), stirred(tiny_gpt())
    parallel = DataParallel(model, 3)
    first, second = new_helpers()
    second.kill()
    second.join(PATIENCE)
    with pytest.raises(RuntimeError):
        parallel.backward(IDS[::-1], GOALS)
    loss = parallel.backward(IDS[:rows], GOALS[:rows])
    assert loss == pytest.approx(by_one(alone, IDS[:rows], GOALS[:rows]), rel=1e-12)
    assert_same_gradients(model, alone)
    first.join(PATIENCE)  # nobody can ask it any more
    assert first.exitcode is not None and len(new_helpers()) == 2


def test_run_whose_helper_has_ended_can_go_on(new_helpers):
    trainer = new_trainer(workers=2)
    trainer.run(2)
    (helper,) = new_helpers()
    helper.kill()
    helper.join(PATIENCE)
    before = bits(trainer)
    with pytest.raises(RuntimeError, match="a helper process has ended"):
        trainer.run(2)
    assert bits(trainer) == before and trainer.step_number == 2
    assert len(trainer.run(2)) == 4


class Dies(Module):
    """A model whose process is killed when it reads the id 0."""

    def __init__(self):
        self.table = Embedding(11, 11, rng=0)

    def forward(self, ids):
        if (np.asarray(ids) == 0).any():
            os.kill(os.getpid(), signal.SIGKILL)
        return self.table(ids)


def test_helper_that_is_killed_while_it_computes_is_an_error():
    parallel = DataParallel(Dies(), 2)
    with pytest.raises(RuntimeError, match="a helper process has ended"):
        parallel.backward([[1], [0]], [[2], [3]])


@pytest.mark.parametrize("when", ["own share", "answers"])
def test_after_an_interrupt_the_next_batch_is_right(monkeypatch, new_helpers, when):
    model, alone = stirred(tiny_gpt()), stirred(tiny_gpt())
    parallel = DataParallel(model, 3)
    old = new_helpers()
    by_one(model, IDS, GOALS)
    by_one(alone, IDS, GOALS)

    def interrupted(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if when == "own share":
            patch.setattr(distributed, "add_gradients", interrupted)
        else:
            patch.setattr(distributed._Helper, "end", interrupted)
        with pytest.raises(KeyboardInterrupt):
            parallel.backward(IDS[::-1], GOALS)
    assert_same_gradients(model, alone)  # as they were
    model.zero_grad(), alone.zero_grad()
    assert parallel.backward(IDS, GOALS) == pytest.approx(by_one(alone, IDS, GOALS), rel=1e-12)
    assert_same_gradients(model, alone)
    if when == "answers":  # new helpers; the old ones end, since nobody can ask them
        assert len(new_helpers()) == 2
        for helper in old:
            helper.join(PATIENCE)
            assert helper.exitcode is not None


class ErrorOfItsOwn(Exception):
    """It cannot be made from its text alone, as unpickling would."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


class Fails(Module):
    def __init__(self, error):
        self.table, self.error = Embedding(11, 11, rng=0), error

    def forward(self, ids):
        if (np.asarray(ids) == 0).any():
            raise self.error
        return self.table(ids)


def test_error_that_cannot_travel_is_told_by_its_name():
    parallel = DataParallel(Fails(ErrorOfItsOwn("this", "that")), 2)
    told = message(RuntimeError, lambda: parallel.backward([[1], [0]], [[2], [3]]))
    assert told == "ErrorOfItsOwn: this and that"
    assert np.isfinite(parallel.backward([[1], [2]], [[2], [3]]))


def test_interrupt_is_left_to_the_process_that_asks(new_helpers):
    model, alone = stirred(tiny_gpt()), stirred(tiny_gpt())
    parallel = DataParallel(model, 2)
    (helper,) = new_helpers()
    for _ in range(2):
        parallel.backward(IDS, GOALS)
        by_one(alone, IDS, GOALS)
        os.kill(helper.pid, signal.SIGINT)  # Ctrl-C reaches every process of a terminal
    assert_same_gradients(model, alone)


def test_helpers_end_with_the_object(new_helpers):
    parallel = DataParallel(tiny_gpt(), 3)
    parallel.backward(IDS, GOALS)
    helpers = new_helpers()
    assert len(helpers) == 2
    del parallel
    for helper in helpers:
        helper.join(PATIENCE)
        assert helper.exitcode is not None


PARENT = """
import multiprocessing, os, signal, sys, time
import numpy as np
from tinytorch import Embedding
from tinytorch.training import distributed

distributed._PATIENCE = 0.1
ids = np.arange(6).reshape(3, 2)
parallel = distributed.DataParallel(Embedding(11, 11), 3)
parallel.backward(ids, ids)
if sys.argv[1] == "busy":
    for helper, share in zip(parallel._helpers, "ab"):
        helper.begin((ids, ids, 1.0), distributed._state_of(parallel.model))
if sys.argv[1] == "with another child":
    if os.fork() == 0:  # which has this process's ends of the pipes, and outlives it
        os.close(1), os.close(2)
        sys.stdin.read()
        os._exit(0)
print(*[child.pid for child in multiprocessing.active_children()], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("state", ["idle", "busy", "with another child"])
def test_helpers_of_a_process_that_is_killed_end_without_a_word(state):
    parent = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", PARENT, state],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    helpers = [int(pid) for pid in parent.stdout.readline().split()]
    try:
        ended, _, _ = select.select([parent.stderr], [], [], PATIENCE)
        assert ended and len(helpers) == 2
        helpers = []
        assert parent.stderr.read() == b""  # its end: no process is left that could write
    finally:
        for pid in helpers:
            os.kill(pid, signal.SIGKILL)
        parent.communicate()
    assert parent.returncode == -signal.SIGKILL


# Training ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("optimizer", ["AdamW", "SGD"])
def test_run_of_two_workers_is_that_of_one(accumulate, optimizer):
    ends = []
    for workers in (1, 2):
        trainer = new_trainer(
            dropout=0.0, workers=workers, accumulate=accumulate, optimizer=optimizer, batch_size=5
        )
        for p in trainer.model.parameters():
            p.data = p.data.astype(np.float64)
        trainer = Trainer(
            trainer.model, trainer.batches, schedule=trainer.schedule, clip=0.5, workers=workers,
            accumulate=accumulate, optimizer=type(trainer.optimizer)(trainer.model.parameters(), 1),
            progress=False,
        )  # fmt: skip
        trainer.run(6)
        ends.append((trainer.history, trainer.model.state_dict()))
    (history, state), (other_history, other_state) = ends
    for record, other in zip(history, other_history, strict=True):
        assert record["loss"] == pytest.approx(other["loss"], rel=1e-8)
        assert record["grad_norm"] == pytest.approx(other["grad_norm"], rel=1e-8)
    for name in state:
        np.testing.assert_allclose(state[name], other_state[name], rtol=1e-7, atol=1e-8)


def test_run_makes_its_helpers_once(new_helpers):
    trainer = new_trainer(workers=3)
    assert len(new_helpers()) == 2
    kept, asked = trainer.parallel, []
    honest = kept.backward
    kept.backward = lambda *share: asked.append(share) or honest(*share)
    trainer.run(3)
    assert len(asked) == 3 and new_helpers() == []


def test_seed_gives_the_same_run_with_dropout_in_two_workers():
    runs = []
    for seed in (3, 3, 4):
        trainer = new_trainer(workers=2)
        manual_seed(seed)
        trainer.run(4)
        runs.append((losses(trainer), bits(trainer)))
    assert runs[0] == runs[1] and runs[0][0] != runs[2][0]


def with_generators_of_its_own(seed):
    common = np.random.default_rng(seed)
    parts = [Dropout(0.3, rng=common), Dropout(0.3, rng=seed + 1), Dropout(0.3, rng=common)]
    model = Sequential(Embedding(11, 8, rng=seed), *parts, Linear(8, 11, rng=seed))
    return Trainer(model, Batches(clock(), 4, 8), progress=False, workers=2)


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: new_trainer(workers=2, seed=seed),
        lambda seed: new_trainer(workers=2, seed=seed, accumulate=2, validation=held_out()),
        with_generators_of_its_own,
    ],
)
def test_run_that_was_stopped_goes_on_with_two_workers_bit_for_bit(make, tmp_path):
    path = tmp_path / "run.safetensors"
    manual_seed(3)
    through = make(5)
    through.run(7)
    manual_seed(3)
    first = make(5)
    first.run(3)
    first.save(path)
    first.run(1)  # draws that the second one must not see
    manual_seed(77)
    second = make(6)
    second.load(path)
    second.run(4)
    assert losses(second) == losses(through)
    assert bits(second) == bits(through)


def test_loss_that_is_not_finite_stops_the_run_of_two_workers_before_the_step():
    model = Falls()
    trainer = Trainer(model, Batches(np.arange(40) % 3, 4, 8), workers=2, progress=False)
    before = bits(trainer)
    assert message(FloatingPointError, lambda: trainer.run(1)).startswith("the loss is nan at step")
    assert bits(trainer) == before and model.table.weight.grad is None


# What changes afterwards, and what goes wrong ----------------------------------------------------


class Picky(Module):
    """Looks up in one table or in the other, as the ids say."""

    def __init__(self):
        self.a, self.b = Parameter(np.ones((11, 11))), Parameter(np.ones((11, 11)))

    def forward(self, ids):
        return functional.embedding(self.a if (np.asarray(ids) == 0).any() else self.b, ids)


def test_a_gradient_that_only_a_helper_has_survives_the_next_step():
    model = Picky()
    parallel = DataParallel(model, 2)
    parallel.backward([[0], [1]], [[2], [3]])
    kept = model.b.grad
    before = kept.copy()
    model.zero_grad()
    parallel.backward([[0], [5]], [[2], [6]])
    np.testing.assert_array_equal(kept, before)


def test_an_error_in_one_share_leaves_no_answer_of_another_behind():
    model, alone = stirred(tiny_gpt()), stirred(tiny_gpt())
    parallel, bad = DataParallel(model, 3), IDS.copy()
    bad[3] = 11
    with pytest.raises(IndexError):
        parallel.backward(bad, IDS)
    model.zero_grad()
    loss = functional.cross_entropy(alone(IDS[::-1]), IDS)
    assert parallel.backward(IDS[::-1], IDS) == pytest.approx(loss.item())


def test_the_gradient_of_a_single_number_is_an_array():
    class Scaled(Module):
        def __init__(self):
            self.scale, self.table = Parameter(1.0), Parameter(np.ones((11, 11)))

        def forward(self, ids):
            return functional.embedding(self.table, ids) * self.scale

    model = Scaled()
    DataParallel(model, 2).backward(IDS, IDS)
    assert isinstance(model.scale.grad, np.ndarray)


def test_a_part_may_hold_a_seed_as_its_rng():
    class Seeded(Module):
        def __init__(self):
            self.rng, self.table = 3, Embedding(11, 11)

        def forward(self, ids):
            return functional.dropout(self.table(ids), p=0.5, rng=self.rng)

    assert np.isfinite(DataParallel(Seeded(), 2).backward(IDS, IDS))


def test_an_empty_batch_is_refused():
    said = "DataParallel: a batch of shape (0, 8) holds no tokens"
    assert (
        message(ValueError, lambda: DataParallel(tiny_gpt(), 2).backward(IDS[:0], IDS[:0])) == said
    )


def test_a_helper_ends_though_a_later_object_lives(new_helpers):
    first = DataParallel(tiny_gpt(), 2)
    mine = new_helpers()
    second = DataParallel(tiny_gpt(), 2)
    del first
    for helper in mine:
        helper.join(PATIENCE)
        assert helper.exitcode is not None
    del second


@pytest.mark.parametrize("change", ["dtype", "frozen"])
def test_parameters_of_another_kind_need_new_helpers(change):
    model = tiny_gpt(rng=0)
    parallel = DataParallel(model, 2)
    if change == "dtype":
        model.ln_f.gamma.data = model.ln_f.gamma.data.astype(np.float16)
    else:
        model.ln_f.gamma.requires_grad = False
    with pytest.raises(RuntimeError, match="make a new DataParallel"):
        parallel.backward(IDS, IDS)


def test_a_run_of_two_workers_is_not_silently_gone_on_with_by_one(tmp_path):
    trainer = new_trainer(workers=2)
    trainer.run(1)
    trainer.save(tmp_path / "run")
    with pytest.raises(ValueError, match="workers: saved 2, here 1"):
        new_trainer(workers=1).load(tmp_path / "run")


class OwnNorm(Module):
    """A norm of the reader's own, with noise from a generator under a name of its own."""

    def __init__(self, embed_dim):
        self.scale, self.noise = Parameter(np.ones(embed_dim)), np.random.default_rng(1)

    def forward(self, x):
        return x * self.scale + self.noise.normal(size=x.shape)


def test_workers_may_have_parts_of_the_readers_own(tmp_path):
    ends = []
    for seed in (3, 3, 4):
        manual_seed(seed)
        model = tiny_gpt(max_seq_len=8, norm=OwnNorm)
        trainer = Trainer(model, Batches(clock(), 4, 8), workers=2, progress=False)
        trainer.run(3)
        ends.append(losses(trainer))
    assert ends[0] == ends[1]  # the generators of the parts have their own seed, 1
    assert np.isfinite(ends[2]).all()


def test_own_generators_draw_other_numbers_in_every_share():
    class Noisy(Module):
        def __init__(self):
            self.scores, self.noise = Parameter(np.zeros((11, 11))), np.random.default_rng(1)

        def forward(self, ids):
            drawn.append(self.noise.random())
            return functional.embedding(self.scores, ids) * drawn[-1]

    drawn = []
    model = Noisy()
    parallel = DataParallel(model, 2)
    parallel.backward([[0], [1]], [[2], [2]])
    own, helpers = model.scores.grad[:2]
    assert own.any() and helpers.any() and abs(own[2]) != pytest.approx(abs(helpers[2]))
