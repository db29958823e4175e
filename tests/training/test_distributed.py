"""Training in several ranks: the run of one process, and an end in every case."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import rank_runs
from rank_runs import CASES, STEPS, made, summary
from tiny_models import tiny_gpt
from training_runs import clock

import tinytorch
from tinytorch import SGD, AdamW, Batches, Embedding, Linear, Sequential, Trainer
from tinytorch.core.optimizers import only_matrices
from tinytorch.training.distributed import RankTrainer
from tinytorch.training.ranks import OnlyRank, Ranks
from tinytorch.training.sharded_optimizer import Shard
from tinytorch_book.experiments import distributed

pytest.importorskip("mpi4py", reason="the extra mpi is not installed", exc_type=ImportError)
pytestmark = pytest.mark.slow  # each run is of several processes
MPIEXEC = str(Path(sys.executable).with_name("mpiexec"))
PROGRAM = str(Path(rank_runs.__file__))
ROOT = Path(__file__).resolve().parents[2]
LIMIT = 300  # seconds: only a test that fails waits as long


def run(*command, environment=(), **options):
    """The end of a program: its exit code, and what it has written to the two streams."""
    added = {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", **dict(environment)}
    done = subprocess.run(
        command, env={**os.environ, **added}, capture_output=True, text=True, timeout=LIMIT,
        cwd=ROOT, **options,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def ranks(count, *arguments, **options):
    return run(MPIEXEC, "-n", str(count), sys.executable, PROGRAM, *map(str, arguments), **options)


def said(stderr):
    """What each rank has said first."""
    lines = [line for line in stderr.splitlines() if re.match(r"rank \d+: ", line)]
    return {int(line.split()[1].rstrip(":")): line.split(": ", 1)[1] for line in reversed(lines)}


def alone(case, steps=STEPS):
    trainer = made(Trainer, **CASES[case])
    trainer.run(steps)
    return trainer


def assert_same_run(found, expected, tolerance=1e-6):
    for record, other in zip(found["history"], expected["history"], strict=True):
        assert (record["validation"] is None) == (other["validation"] is None)
        for name in ("loss", "lr", "grad_norm", "validation"):
            assert (record[name] or 0) == pytest.approx(other[name] or 0, rel=tolerance), name
    for name, array in expected["weights"].items():
        np.testing.assert_allclose(
            found["weights"][name], array, rtol=10 * tolerance, atol=10 * tolerance
        )


# The run of one process --------------------------------------------------------------------------


@pytest.fixture(scope="module", autouse=True)
def Picky():
    rank_runs.Picky = rank_runs.picky_class()


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What two ranks and then four have found; the run of one process goes on in both."""
    folder = tmp_path_factory.mktemp("ranks")
    for sharded in (False, True):
        alone("dropout, two batches a step", 2).save(folder / f"begun-{sharded}")
    results = {}
    for count in (2, 4):
        code, _, stderr = ranks(count, "equal", folder)
        assert code == 0, stderr
        results[count] = json.loads((folder / f"found-{count}.json").read_text())
    return results, folder


@pytest.mark.parametrize("sharded", [False, True], ids=["whole", "sharded"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("count", [2, 4])
def test_losses_match_a_single_process(found, count, case, sharded):
    results, _ = found
    found, expected = results[count][f"{case}, {sharded}"], summary(alone(case))
    if case == "in float32":  # Adam makes steps of the rounding where a gradient is 0
        for record, other in zip(found["history"], expected["history"], strict=True):
            assert record["loss"] == pytest.approx(other["loss"], rel=1e-6)
    else:
        assert_same_run(found, expected)


@pytest.mark.parametrize("sharded", [False, True], ids=["whole", "sharded"])
def test_a_run_resumes_with_another_number_of_ranks(found, sharded):
    results, folder = found
    case = "dropout, two batches a step"
    through = summary(alone(case, 7))["history"]  # 2 steps alone, 2 in two ranks, 2 in four
    for record, other in zip(results[4][f"resumed, {sharded}"]["history"], through, strict=False):
        assert record["loss"] == pytest.approx(other["loss"], rel=1e-6)
    resumed = made(Trainer, **CASES[case])
    resumed.load(folder / f"begun-{sharded}")  # as four ranks have left it
    assert resumed.step_number == 6
    assert resumed.run(1)[-1]["loss"] == pytest.approx(through[-1]["loss"], rel=1e-6)


def test_every_rank_uses_the_weights_of_rank_0(found):
    _, folder = found
    of_rank_1 = json.loads((folder / "weights.json").read_text())
    assert_same_run(of_rank_1, summary(alone("plain", 1)))


# Ends --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "of_rank_1", "of_others"),
    [
        ("killed", "its process was ended by SIGKILL", "another rank has ended"),
        ("memory", "MemoryError: no room for (8, 8)", "another rank has ended"),
        ("stopped", None, "the other ranks have not answered for 2 seconds"),
    ],
)
def test_a_failed_rank_stops_all_and_the_run_resumes_from_its_checkpoint(
    tmp_path, how, of_rank_1, of_others
):
    code, _, stderr = ranks(4, "fails", tmp_path, how)
    heard = said(stderr)
    assert code != 0
    first = [rank for rank in (0, 2, 3) if heard[rank].startswith(of_others)]
    later = [rank for rank in (0, 2, 3) if heard[rank].startswith("another rank has ended")]
    assert first and {*first, *later} == {0, 2, 3}, stderr
    assert of_rank_1 is None or heard[1].startswith(of_rank_1), stderr
    assert_goes_on_from(tmp_path / "run", 3)


def assert_goes_on_from(checkpoint, step):
    resumed, through = made(Trainer), made(Trainer)
    resumed.load(checkpoint)
    assert resumed.step_number == step
    resumed.run(2), through.run(resumed.step_number)
    assert resumed.history[-1]["loss"] == pytest.approx(through.history[-1]["loss"], rel=1e-6)


def test_an_interrupted_run_is_saved_and_reported_once(tmp_path):
    code, _, stderr = ranks(4, "fails", tmp_path, "interrupted")
    assert (code, stderr) == (130, "rank 0: stopped after step 4; run() resumes\n")
    assert_goes_on_from(tmp_path / "run", 4)


def test_differing_ranks_are_reported_with_their_differences(tmp_path):
    code, _, stderr = ranks(2, "differs", tmp_path)
    (told,) = said(stderr).values()
    assert code == 1 and told.startswith("rank 1 differs from rank 0; all ranks")
    version = tinytorch.__version__
    for line in (
        f"tinytorch: {version} in rank 0, {version}.other there",
        "steps: 6 in rank 0, 7 there",
        "clip: 0.5 in rank 0, 0.7 there",
    ):
        assert stderr.count(f"  {line}\n") == 1, stderr


def test_a_message_of_all_ranks_is_printed_once(tmp_path):
    code, _, stderr = ranks(3, "nan", tmp_path)
    remedy = "make the batch 3 or 6, or use a number of ranks that divides 4"
    refused = f"a batch of 4 rows does not divide among 3 ranks; {remedy}"
    assert (code, stderr) == (1, f"rank 0: {refused}\n")  # no banner of mpiexec's
    code, _, stderr = ranks(2, "nan", tmp_path)
    assert code == 1 and stderr.startswith("rank 0: the loss is nan at step 0: look for")
    assert stderr.count("\n") == 1


def test_a_message_of_one_rank_is_printed_by_it(tmp_path):
    code, _, stderr = ranks(2, "fails", tmp_path, "bad id")
    assert code != 0 and said(stderr)[1].startswith("IndexError: token id")


def test_a_rank_that_fails_before_the_first_exchange_ends_the_run(tmp_path):
    code, _, stderr = ranks(3, "unborn")
    others = "MPI has not started within 2 seconds: a rank is missing"
    assert code != 0 and said(stderr) == {0: others, 1: "finds no data", 2: others}


class OneRank:
    """A run of a single rank, without MPI."""

    rank, size, waited = 0, 1, 0.0

    def sum(self, array):
        """The sum over one rank is what it has."""

    from_first = check_alike = sum


def test_parameters_of_two_dtypes_are_refused():
    model = Linear(3, 2)
    model.bias.data = model.bias.data.astype(np.float64)
    with pytest.raises(TypeError, match=r"one dtype, got \['float32', 'float64'\]"):
        RankTrainer(OneRank(), model, Batches(clock(), 4, seq_len=8))


class Hoarding(SGD):
    """An optimiser with a list that is not its state, or not one array a parameter."""

    def __init__(self, params, saved):
        super().__init__(params, lr=0.1)
        self.norms, self.saved = [np.zeros(1)], saved

    def _state(self):
        return {"norms.0": self.norms[0]} if self.saved else {}


@pytest.mark.parametrize("saved", [False, True])
def test_state_that_cannot_be_divided_is_refused_by_name(saved):
    model = tiny_gpt(max_seq_len=8)
    options = {"optimizer": Hoarding(model.parameters(), saved), "shard_optimizer": True}
    with pytest.raises(
        ValueError, match=r"Hoarding\.norms cannot be divided: expected a list with one"
    ):
        RankTrainer(OneRank(), model, Batches(clock(), 4, seq_len=8), **options)


def test_a_setting_for_each_parameter_goes_with_its_part():
    class Layerwise(AdamW):
        def __init__(self, params):
            super().__init__(params, betas=np.array([0.9, 0.99]), decay=only_matrices)
            self.rates, self.updates = [0.0, 0.0, 0.5, 0.7], 3

    layers = Sequential(Linear(3, 2), Linear(3, 2))
    cuts = [slice(0, 6), slice(6, 8), slice(8, 14), slice(14, 16)]
    ranks = SimpleNamespace(rank=1, size=2, join_parts=lambda own, flat: None)
    shard = Shard(Layerwise(layers.parameters()), cuts, ranks)
    assert (shard.own.rates, shard.own.decays) == ([0.5, 0.7], [True, False])
    assert [m.shape for m in shard.own.m] == [(6,), (2,)]
    shard.own.updates += 1
    with shard.whole():
        assert shard.optimizer.updates == 4
        assert [m.shape for m in shard.optimizer.m] == [(3, 2), (2,), (3, 2), (2,)]


def test_row_sparse_gradients_are_refused_with_a_remedy():
    model = Embedding(11, 11, sparse=True, rng=0)  # its rows are the logits
    trainer = RankTrainer(OneRank(), model, Batches(clock(), 4, seq_len=8), progress=False)
    with pytest.raises(TypeError, match="make the Embedding with sparse=False"):
        trainer.run(1)


# The command -------------------------------------------------------------------------------------

COMMAND = [sys.executable, "-m", "tinytorch_book.experiments.distributed", "--num-stories", "60"]


def test_the_command_trains_saves_and_resumes(tmp_path):
    saved, report = tmp_path / "run", tmp_path / "report.json"
    small = ["--embed-dim", "16", "--layers", "1", "--checkpoint", str(saved)]
    small += ["--batch-size", "4", "--save-every", "1", "--report", str(report)]
    code, stdout, stderr = run(*COMMAND, *small, "--ranks", "2", "--steps", "3")
    assert code == 0, stderr
    assert stdout.count("step 3/3") == 1  # rank 0 alone writes
    history = json.loads(report.read_text())["history"]
    assert len(history) == 3 and history[-1]["loss"] < history[0]["loss"]
    code, stdout, stderr = run(*COMMAND, *small, "--ranks", "2", "--steps", "3")
    assert (code, stdout, stderr) == (0, f"{saved}: all 3 steps are done already\n", "")
    remedy = "repeat the options of that run, or name another --checkpoint"
    code, _, stderr = run(*COMMAND, *small, "--ranks", "2", "--steps", "4", "--seed", "1")
    differs = "its run has --steps 3, not 4, and --seed 0, not 1"
    assert (code, stderr) == (1, f"rank 0: {saved}: {differs}; {remedy}\n")


def test_several_ranks_without_mpi_are_refused_with_a_remedy(tmp_path):
    (tmp_path / "mpi4py.py").write_text("raise ImportError('No module named mpi4py')")
    paths = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    small = ["--embed-dim=16", "--layers=1", "--batch-size=4", "--steps=2", "--shard-optimizer"]
    code, stdout, stderr = run(*COMMAND, *small, environment=paths)
    assert (code, stderr) == (0, "") and "step 2/2" in stdout
    code, _, stderr = run(*COMMAND, environment={**paths, "PMI_SIZE": "2", "PMI_RANK": "0"})
    assert code != 0 and said(stderr)[0].endswith("pip install mpi4py mpich")
    code, _, stderr = run(sys.executable, "-c", "import tinytorch.training.distributed, sys; "
                          "assert 'mpi4py' not in sys.modules", environment=paths)  # fmt: skip
    assert code == 0, stderr


def test_mismatched_mpi_installations_are_detected():
    code, _, stderr = run(*COMMAND, environment={"OMPI_COMM_WORLD_SIZE": "4"})
    assert code == 1 and "mpiexec has started 4 processes, mpi4py sees 1" in said(stderr)[0]


def test_a_checkpoint_without_options_is_resumed(monkeypatch, tmp_path, capsys):
    saved = tmp_path / "run"
    small = ["--embed-dim=16", "--layers=1", "--batch-size=2", "--steps=2", "--num-stories=60"]
    options = distributed._parser().parse_args([*small, f"--checkpoint={saved}"])
    with monkeypatch.context() as earlier:
        earlier.setattr(distributed, "_OF_THE_RUN", ())
        distributed._train(Ranks(OnlyRank()), options)
    distributed._train(Ranks(OnlyRank()), options)
    assert capsys.readouterr().out.endswith(f"{saved}: all 2 steps are done already\n")
    options.accumulate = 2
    with pytest.raises(ValueError, match=r"another run; repeat .*--checkpoint:\n  accu"):
        distributed._train(Ranks(OnlyRank()), options)


@pytest.mark.parametrize(
    ("option", "match"),
    [
        ("--embed-dim=33", "--embed-dim: 33 does not divide into 2 heads of an even width; take a"),
        ("--embed-dim=0", "--embed-dim: '0' is not an integer of at least 1"),
        ("--dropout=1", "--dropout: '1' is not a number from 0 to 1, excluding 1"),
        ("--hosts=first,-x", "--hosts: 'first,-x' is not a list of machines such as first,second"),
    ],
)
def test_a_wrong_option_names_the_allowed_values(capsys, option, match):
    with pytest.raises(SystemExit):
        distributed.main([option])
    assert f"error: argument {match}" in capsys.readouterr().err
