"""Batches and windows: the right tokens, the right shift, and nothing that depends on luck."""

import tracemalloc
import zlib

import numpy as np
import pytest
from exact_numbers import message

from tinytorch import GPT, Batches, Trainer
from tinytorch.text.batches import windows

TEXT = np.random.default_rng(0).integers(1000, size=60)
NO_ROOM = "no start leaves room for 8 tokens and the next in a text"
LONGER = "use a longer text or a smaller seq_len"


def places(batches, step):
    """Where the windows of a batch begin, in a text whose tokens count up from 0."""
    return batches[step][0][:, 0].tolist()


# Batches -----------------------------------------------------------------------------------------


def test_targets_are_the_tokens_that_follow_the_inputs_in_the_text():
    batches = Batches(TEXT, batch_size=50, seq_len=7)
    neighbours = {tuple(TEXT[at : at + 8].tolist()) for at in range(len(TEXT) - 7)}
    inputs, targets = batches[0]
    assert (inputs[:, 1:] == targets[:, :-1]).all()
    for row, last in zip(inputs.tolist(), targets[:, -1].tolist(), strict=True):
        assert (*row, last) in neighbours


def test_every_window_that_fits_occurs_and_no_other():
    batches = Batches(range(10), batch_size=40, seq_len=3)
    seen = {place for step in range(5) for place in places(batches, step)}
    assert seen == {0, 1, 2, 3, 4, 5, 6}  # that at 6 reads 6 7 8 and predicts 9


def test_a_batch_depends_on_the_seed_and_the_step_alone():
    one, other = (Batches(TEXT, batch_size=4, seq_len=8, seed=3) for _ in range(2))
    later = one[17]
    np.random.seed(0)
    for step in (5, 2, 17):  # in any order
        other[step]
    for array, again in zip(later, other[17], strict=True):
        np.testing.assert_array_equal(array, again)


def test_the_windows_of_a_seed_are_the_same_everywhere():
    assert [places(Batches(range(1000), 4, 8, seed=7), step) for step in range(2)] == [
        [937, 620, 678, 890],
        [863, 763, 868, 111],
    ]


def test_windows_begin_at_the_given_starts_that_fit():
    batches = Batches(range(20), batch_size=50, seq_len=5, starts=[3, 9, 14, 15, 19])
    assert set(places(batches, 0)) == {3, 9, 14}


def test_changing_the_text_afterwards_changes_no_batch():
    text = TEXT.copy()
    batches = Batches(text, 4, 8)
    before = batches[0][0].copy()
    text[:] = 0
    batches[0][0][:] = 0
    np.testing.assert_array_equal(batches[0][0], before)


def test_a_memory_map_of_20_million_ids_stays_on_the_disk(tmp_path):
    mapped = np.memmap(tmp_path / "train.bin", np.uint16, mode="w+", shape=20_000_000)
    mapped[-60:] = TEXT
    tracemalloc.start()
    try:
        for tokens in (mapped[:-6], np.asarray(mapped), mapped):
            batches = Batches(tokens, 4, 64, seed=3)
            inputs, targets = batches[5]
            assert windows(tokens, 8, limit=2)[0].shape == (2, 8)
        trainer = Trainer(GPT(1000, 4, 1, 1, max_seq_len=64), batches, progress=False)
        for _ in range(2):
            trainer.save(tmp_path / "run")
            trainer.load(tmp_path / "run")
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
    again = Batches(np.array(mapped), 4, 64, seed=3)  # in memory
    assert inputs.dtype == targets.dtype == np.int64
    assert [x.tolist() for x in again[5]] == [inputs.tolist(), targets.tolist()]
    assert again.checksum == batches.checksum and again.starts[-1] == 19_999_935


def test_the_checksum_in_checkpoints_is_that_of_64_bit_numbers():
    ids, starts = np.arange(20), np.arange(15)  # where a window may begin
    assert Batches(ids.astype(">u2"), 2, 5).checksum == zlib.crc32(starts, zlib.crc32(ids))
    some = Batches(ids, 2, 5, starts=[3, 9])
    assert some.checksum == zlib.crc32(np.int64([3, 9]), zlib.crc32(ids))


@pytest.mark.parametrize(
    ("error", "tokens", "options", "told"),
    [
        (ValueError, range(8), {}, f"{NO_ROOM} of 8; {LONGER}"),
        (ValueError, [5], {}, f"{NO_ROOM} of 1; {LONGER}"),
        (ValueError, [], {}, f"{NO_ROOM} of 0; {LONGER}"),
        (ValueError, range(20), {"starts": [12, 19]}, f"{NO_ROOM} of 20; {LONGER}"),
        (ValueError, range(20), {"starts": []}, f"{NO_ROOM} of 20; {LONGER}"),
        (IndexError, range(20), {"starts": [0, 20]}, "start 20 at (1,) is outside 0..19; starts a"),
        (IndexError, range(20), {"starts": [-1, 3]}, "start -1 at (0,) is outside 0..19"),
        (TypeError, range(20), {"starts": [0.5]}, "starts must be integers, got float64; convert"),
        (TypeError, [0.0, 1.0], {}, "token ids must be integers, got float64; encode the text fir"),
        (TypeError, "once upon", {}, "token ids must be integers, got 'once upon'; encode the tex"),
        (ValueError, [[1, 2], [3, 4]], {}, "must have the shape (n,), got (2, 2); pass one row at"),
        (ValueError, [[1, 2], [3]], {}, "token ids must form one sequence, got rows of"),
        (ValueError, range(20), {"batch_size": 0}, "batch_size must be at least 1, got 0"),
        (TypeError, range(20), {"seq_len": 2.5}, "seq_len must be an integer, got 2.5"),
    ],
)  # fmt: skip
def test_invalid_ids_or_sizes_are_refused(error, tokens, options, told):
    sizes = {"batch_size": 2, "seq_len": 8, **options}
    assert told in message(error, lambda: Batches(tokens, **sizes))


@pytest.mark.parametrize(
    ("error", "step", "told"),
    [
        (IndexError, -1, "Batches: step must be 0 or more, got -1"),
        (TypeError, 1.0, "Batches: step must be an integer, got 1.0"),
        (TypeError, True, "Batches: step must be an integer, got True"),
        (TypeError, slice(0, 3), "Batches: step must be an integer, got slice(0, 3, None)"),
        (TypeError, "1", "Batches: step must be an integer, got '1'"),
    ],
)
def test_a_step_must_be_a_non_negative_integer(error, step, told):
    assert message(error, lambda: Batches(range(20), 2, 8)[step]) == told


def test_iterating_over_endless_batches_names_the_loop():
    batches = Batches(range(20), 2, 8)
    told = (
        "Batches has no end; loop over the steps you want, as in "
        "`for step in range(100): inputs, targets = batches[step]`"
    )
    for whole in (list, iter, lambda b: [*b], enumerate):
        assert message(TypeError, lambda whole=whole: whole(batches)) == told
    with pytest.raises(TypeError, match=r"has no len\(\)"):
        len(batches)
    assert batches  # and yet they are not empty


@pytest.mark.parametrize(("error", "seed"), [(ValueError, -1), (TypeError, None), (TypeError, 0.5)])
def test_a_seed_must_be_a_non_negative_integer(error, seed):
    told = message(error, lambda: Batches(range(20), 2, 8, seed=seed))
    assert told.startswith("Batches: seed must be ") and told.endswith(f"got {seed}")


# Windows -----------------------------------------------------------------------------------------


def test_windows_in_order_cover_every_target_once():
    inputs, targets = windows(range(11), seq_len=3)
    assert inputs.tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert targets.tolist() == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]


@pytest.mark.parametrize(("length", "count"), [(4, 1), (6, 1), (7, 2), (9, 2), (10, 3)])
def test_an_incomplete_last_window_is_dropped(length, count):
    assert windows(range(length), seq_len=3)[1].ravel().tolist() == [*range(1, 3 * count + 1)]


def test_windows_from_given_starts():
    inputs, targets = windows(range(11), seq_len=3, starts=[5, 0, 5, 8])
    assert inputs[:, 0].tolist() == [5, 0, 5]  # from 8 the last target would be missing
    assert targets[0].tolist() == [6, 7, 8]


def test_limit_keeps_the_first_windows():
    assert windows(range(11), seq_len=3, limit=2)[0][:, 0].tolist() == [0, 3]
    assert windows(range(11), seq_len=3, limit=9)[0][:, 0].tolist() == [0, 3, 6]
    assert windows(range(11), seq_len=3, starts=[7, 5, 0], limit=1)[0][:, 0].tolist() == [7]
    with pytest.raises(ValueError, match="limit must be at least 1, got 0"):
        windows(range(11), seq_len=3, limit=0)
