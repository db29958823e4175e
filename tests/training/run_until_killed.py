"""A training run as a program, to be stopped and started again until it has come to its end.

    python run_until_killed.py CHECKPOINT STEPS [--save-every N] [--stop {KILL,INT} WHERE N]

It resumes from the checkpoint if there is one, and at the end prints the losses and a digest of all
parameters as JSON. `--stop` sends itself a signal: at the Nth call of `os.fsync`, before a file is
on the disk, or of `os.replace`, before it gets its name, or of any Python function.
"""

import argparse
import hashlib
import json
import os
import signal
import sys
from pathlib import Path

__all__ = ["long_trainer", "summary"]


def long_trainer(**options):
    """The run of these tests, with dropout and two batches a step."""
    from training_runs import new_trainer

    return new_trainer(model={"pos_encoding": "rotary"}, accumulate=2, **options)


def summary(trainer):
    from training_runs import bits, losses

    digest = hashlib.sha256(json.dumps(bits(trainer), default=bytes.hex).encode()).hexdigest()
    return {"losses": losses(trainer), "digest": digest}


def stop_at(number, where, count):
    """Send this process a signal at the Nth call."""
    calls = 0

    def counted(*args):
        nonlocal calls
        calls += 1
        if calls == count:
            os.kill(os.getpid(), number)

    if where == "call":
        sys.settrace(counted)
        return
    honest = getattr(os, where)
    setattr(os, where, lambda *args: counted() or honest(*args))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("steps", type=int)
    parser.add_argument("--save-every", type=int, default=1)
    parser.add_argument("--stop", nargs=3, metavar=("SIGNAL", "WHERE", "N"))
    options = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # where exact_numbers lies

    trainer = long_trainer(checkpoint=options.checkpoint, save_every=options.save_every)
    if options.checkpoint.exists():
        trainer.load(options.checkpoint)
    if options.stop:
        name, where, count = options.stop
        stop_at(signal.Signals[f"SIG{name}"], where, int(count))
    if trainer.step_number < options.steps:
        trainer.run(options.steps - trainer.step_number)
    sys.settrace(None)
    print(json.dumps(summary(trainer)))


if __name__ == "__main__":
    main()
