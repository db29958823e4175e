"""A training run of several ranks as a program, which mpiexec starts; an argument says which.

mpiexec -n 2 python rank_runs.py equal FOLDER
"""

import json
import os
import signal
import sys
from pathlib import Path

import numpy as np

__all__ = ["CASES", "STEPS", "Picky", "made", "summary"]

STEPS = 6
CASES = {  # options of `made`
    "in float32": {"dtype": np.float32},
    "plain": {},
    "dropout, two batches a step": {"dropout": 0.2, "accumulate": 2, "clip": 0.05},
    "SGD with momentum, no clipping": {"optimizer": "SGD", "clip": None},
    "half of the parts are not used by a rank": {"picky": True},
}


def made(
    trainer_class, *first,
    picky=False, optimizer="AdamW", dropout=0.0, clip=0.5, dtype=np.float64, **options,
):  # fmt: skip
    """A trainer of either class, the same for the same options."""
    from tiny_models import tiny_gpt
    from training_runs import OPTIMISERS, clock, held_out

    from tinytorch import Batches, CosineSchedule, manual_seed

    manual_seed(3)
    model = Picky() if picky else tiny_gpt(max_seq_len=8, dropout=dropout, rng=5)
    for p in model.parameters():
        p.data = p.data.astype(dtype)
    return trainer_class(
        *first, model, Batches(clock(), 4, seq_len=8, seed=2),
        optimizer=OPTIMISERS[optimizer](model.parameters()),
        schedule=CosineSchedule(0.02, warmup_steps=3, total_steps=12),
        clip=clip, validation=held_out(), eval_every=4, progress=False, **options,
    )  # fmt: skip


def summary(trainer):
    weights = {name: array.tolist() for name, array in trainer.model.state_dict().items()}
    return {"history": trainer.history, "weights": weights}


def picky_class():
    from tinytorch import Module, Parameter, functional

    class Picky(Module):
        """Each row looks up in the table of its first token; one table is never used."""

        def __init__(self):
            numbers = np.random.default_rng(0).normal(size=(3, 11, 11)).astype(np.float32)
            self.a, self.b, self.never = map(Parameter, numbers)

        def forward(self, ids):
            ids = np.asarray(ids)
            if len(ids) == 1:
                return functional.embedding(self.a if ids[0, 0] % 2 else self.b, ids)
            odd = (ids[:, :1] % 2)[..., None]
            return functional.embedding(self.a, ids) * odd + functional.embedding(self.b, ids) * (
                1 - odd
            )

    return Picky


def equal(ranks, folder):
    """Every case, with and without shards; and a run that others have begun."""
    from tinytorch.training.distributed import RankTrainer

    found = {}
    for name, options in CASES.items():
        for sharded in (False, True):
            trainer = made(RankTrainer, ranks, shard_optimizer=sharded, **options)
            trainer.run(STEPS)
            found[f"{name}, {sharded}"] = summary(trainer)
    case = CASES["dropout, two batches a step"]
    for sharded in (False, True):
        begun = Path(folder) / f"begun-{sharded}"
        trainer = made(RankTrainer, ranks, shard_optimizer=sharded, **case)
        trainer.load(begun if ranks.rank == 0 else "on another machine")
        trainer.run(2)
        trainer.save(begun if ranks.rank == 0 else "/nowhere/at/all")
        found[f"resumed, {sharded}"] = summary(trainer)
    other_weights(ranks, folder)
    if ranks.rank == 0:
        Path(folder, f"found-{ranks.size}.json").write_text(json.dumps(found))


def fails(ranks, folder, how):
    """A run in which rank 1 fails in some way when it reads the batch of step 3."""
    from tinytorch.training.distributed import RankTrainer

    trainer = made(RankTrainer, ranks, checkpoint=Path(folder) / "run", save_every=1)
    whole = trainer.batches

    class Batches:
        def __getattr__(self, name):
            return getattr(whole, name)

        def __getitem__(self, number):
            inputs, targets = whole[number]
            if number == 3 and how == "stopped":
                ranks.patience = 2.0
            if number == 3 and ranks.rank == 1:
                inputs = failing(how, inputs)
            return inputs, targets

    trainer.batches = Batches()
    trainer.run(STEPS)


def failing(how, inputs):
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    if how == "interrupted":
        os.kill(os.getpid(), signal.SIGINT)
    if how == "memory":
        raise MemoryError("no room for (8, 8)")
    if how == "bad id":
        return inputs + 11
    return inputs


def differs(ranks, folder):
    """Rank 1 has something else than rank 0."""
    import tinytorch
    from tinytorch.training.distributed import RankTrainer

    other = ranks.rank == 1
    if other:
        tinytorch.__version__ += ".other"
    made(RankTrainer, ranks, clip=0.7 if other else 0.5).run(7 if other else 6)


def other_weights(ranks, folder):
    """Rank 1 begins with other weights, and gets those of rank 0."""
    from tinytorch.training.distributed import RankTrainer

    trainer = made(RankTrainer, ranks)
    if ranks.rank == 1:
        trainer.model.ln_f.gamma.data += 1
    trainer.run(1)
    if ranks.rank == 1:
        Path(folder, "weights.json").write_text(json.dumps(summary(trainer)))


def nan(ranks, folder):
    """The weights of every rank are not finite."""
    from tinytorch.training.distributed import RankTrainer

    trainer = made(RankTrainer, ranks)
    trainer.model.ln_f.gamma.data[:] = np.nan
    trainer.run(1)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    scenario, *arguments = sys.argv[1:]
    if scenario == "unborn" and os.environ.get("PMI_RANK") == "1":
        sys.exit("rank 1: finds no data")
    Picky = picky_class()
    from tinytorch.training.distributed import run_ranks

    patience = 2.0 if scenario == "unborn" else 600.0
    run_ranks(lambda ranks: globals().get(scenario, nan)(ranks, *arguments), patience)
