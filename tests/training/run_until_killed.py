"""A training run as a program, to be killed and started again until it has come to its end.

    python run_until_killed.py CHECKPOINT STEPS [--save-every N] [--die {fsync,replace} N]

It goes on from the checkpoint if there is one, says "ready", and at the end prints the losses and a
digest of all parameters as JSON. `--die` sends itself SIGKILL in the midst of the Nth saving:
before the file is on the disk, or before it gets its name.
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

    return new_trainer(dropout=0.2, pos_encoding="rotary", accumulate=2, **options)


def summary(trainer):
    from training_runs import bits, losses

    digest = hashlib.sha256(json.dumps(bits(trainer), default=bytes.hex).encode()).hexdigest()
    return {"losses": losses(trainer), "digest": digest}


def die_in(name, count):
    """Replace `os.fsync` or `os.replace` by one that kills this process at the Nth call."""
    honest, calls = getattr(os, name), []

    def deadly(*args):
        calls.append(args)
        if len(calls) == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return honest(*args)

    setattr(os, name, deadly)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("steps", type=int)
    parser.add_argument("--save-every", type=int, default=1)
    parser.add_argument("--die", nargs=2, metavar=("IN", "N"))
    options = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # where exact_numbers lies

    trainer = long_trainer(checkpoint=options.checkpoint, save_every=options.save_every)
    if options.checkpoint.exists():
        trainer.load(options.checkpoint)
    if options.die:
        die_in(options.die[0], int(options.die[1]))
    print("ready", flush=True)
    if trainer.step_number < options.steps:
        trainer.run(options.steps - trainer.step_number)
    print(json.dumps(summary(trainer)))


if __name__ == "__main__":
    main()
