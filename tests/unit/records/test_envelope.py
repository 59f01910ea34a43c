"""What stands before an event on its line names the rank and the time."""

import math
from datetime import datetime

import pytest

from receipt_cli.records.envelope import (
    MASK,
    NO_RANK,
    behind_heads,
    head_ends,
    may_have_time,
    read_clock,
    read_rank,
    starts,
    unwrap,
)

RANKS = [
    (b"[rank0]: ", 0),
    (b"[rank12]:", 12),
    (b"[rank 3] ", 3),
    (b"[RANK 3] ", 3),
    (b"[Rank 5] ", 5),
    (b"[rank: 4] ", 4),
    (b"[rank-7/8] ", 7),
    (b"[default7]:", 7),
    (b"[rank4]:[rank4]: ", 4),
    (b"[default0]:[rank3]: ", 3),
    (b"0: ", 0),
    (b" 3: ", 3),
    (b"15: ", 15),
    (b"[1,0]<stdout>:", 0),
    (b"[1,6]<stderr>:", 6),
    (b"[prterun-host-4412@1,9]<stdout>: ", 9),
    (b"RANK:4 ", 4),
    (b"INFO rank=2 ", 2),
    (b"Rank 6 ", 6),
    (b"RANK 2: ", 2),
    (b"[2026-07-07 22:20:44] INFO     [olmo.train:816, rank=5] ", 5),
    (b"(VllmWorker rank=3 pid=812) ", NO_RANK),
    (b"(VllmWorker rank=3, pid=812) ", 3),
    (b"2026-07-07 22:20:44,120 INFO [train.py:612] (3/8) ", 3),
    (b"[2026-07-07 22:20:44,120] [INFO] [logging.py:96:log_dist] [Rank 0] ", 0),
    (b"0: [rank3]: ", 3),
    (b"[rank3]: 0: ", 0),
    (b"2026-07-07T22:20:44.123456789Z [rank1]: ", 1),
    (b"2026-07-07T22:20:44.123456789Z stdout F  5: ", 5),
    (b"(RayTrainWorker pid=1, ip=10.0.0.1) [rank2]: ", 2),
    (b"trainer-0  | [rank1]: ", 1),
    (b"gpu250: [default7]:", 7),
    (b"[3]<stdout>:", 3),
    (b"[1,mpirank:5,algo-1]<stderr>:", 5),
    (b"2026-07-07 22:20:44,120: rank6[812][MainThread]: INFO: llmfoundry.train: ", 6),
    (b"[2026-07-07 22:20:44] [INFO] [RANK:4] ", 4),
    (b"(head, rank=0, pid=2383) ", NO_RANK),
    (b"(worker1, rank=1, pid=2383, ip=10.0.0.5) ", NO_RANK),
    (b"(worker1, rank=1, pid=2383, ip=10.0.0.5) [rank9]: ", 9),
    (b"2026-07-07 22:20:44.979\tnode7:3\tolmo_core.train:195\tINFO\t", NO_RANK),
    (b"[20260707 22:20:44][rank-5/8][INFO ]    [------utils.py:425] : ", 5),
    (b"", NO_RANK),
    (b"host: ", NO_RANK),
    (b"10.0.0.1: ", NO_RANK),
    (b"gpu250: ", NO_RANK),
    (b"trainer-1  | ", NO_RANK),
    (b"(Worker pid=1, ip=10.0.0.1) ", NO_RANK),
    (b"(train_fn pid=41) ", NO_RANK),
    (b"07/09/2026 22:20:44 [INFO|DP=3|PP=0|TP=1|node7]: ", NO_RANK),
    (b"1/8: ", NO_RANK),
    (b"10/100: ", NO_RANK),
    (b"epoch (3/8) ", NO_RANK),
    (b"step 3: ", NO_RANK),
    (b"22:20:44: ", NO_RANK),
    (b"[ranked]: ", NO_RANK),
    (b"lora_rank=", NO_RANK),
    (b"lora_rank=8 ", NO_RANK),
    (b"[lora_rank=8] ", NO_RANK),
    (b"lora rank=8 alpha=16 ", NO_RANK),
    (b"LoRA with rank=8 and ", NO_RANK),
    (b"(local_rank=3) ", NO_RANK),
    (b"the rank 4 of ", NO_RANK),
    (b"[local_rank 4] ", NO_RANK),
]


@pytest.mark.parametrize(("prefix", "want"), RANKS)
def test_rank(prefix: bytes, want: int) -> None:
    assert read_rank(prefix) == want


def utc(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


CLOCKS = [
    (b"2026-07-07T22:20:44Z ", utc("2026-07-07T22:20:44+00:00")),
    (b"2026-07-07T22:20:44.5Z ", utc("2026-07-07T22:20:44.5+00:00")),
    (b"2026-07-07T22:20:44.1234567Z ", utc("2026-07-07T22:20:44.123456+00:00") + 7e-7),
    (b"2026-07-07T22:20:44.123456789Z stdout F ", utc("2026-07-07T22:20:44.123456+00:00") + 7.89e-7),
    (b"2026-07-07T22:20:44+02:00 ", utc("2026-07-07T20:20:44+00:00")),
    (b"2026-07-07T22:20:44-0730 ", utc("2026-07-08T05:50:44+00:00")),
    (b"2026-07-07T22:20:44+05:45 ", utc("2026-07-07T16:35:44+00:00")),
    (b"2026-07-07 22:20:44 UTC ", utc("2026-07-07T22:20:44+00:00")),
    (b"2026-07-07 22:20:44,123 INFO ", utc("2026-07-07T22:20:44.123+00:00")),
    (b"2026-07-07 22:20:44.123 | INFO     | x:y:1 - ", utc("2026-07-07T22:20:44.123+00:00")),
    (b"[2026-07-07 22:20:44,123] [INFO] ", utc("2026-07-07T22:20:44.123+00:00")),
    (b"[2026/07/07 22:20:44] ", utc("2026-07-07T22:20:44+00:00")),
    (b"20260707 22:20:44 ", utc("2026-07-07T22:20:44+00:00")),
    (b"[INFO|trainer.py:1144] 2026-07-07 22:20:44,285 >> ", utc("2026-07-07T22:20:44.285+00:00")),
    (b"[INFO|2026-07-07 22:20:44] trainer.py:4263 >> ", utc("2026-07-07T22:20:44+00:00")),
    (
        b"ERROR 2026-07-07T22:20:44.165758439Z [resource.labels.containerName: tpu] ",
        utc("2026-07-07T22:20:44.165758+00:00") + 4.39e-7,
    ),
    (b"<14>1 2026-07-07T22:20:44.5+02:00 node7 train 812 - - ", utc("2026-07-07T20:20:44.5+00:00")),
    (b"Tue 2026-07-07 22:20:44 UTC node7 train[812]: ", utc("2026-07-07T22:20:44+00:00")),
    (b"Tue Jul  7 22:20:44 2026[1,0]<stdout>:", utc("2026-07-07T22:20:44+00:00")),
    (b"Tue Jul  7 22:20:44 UTC 2026: ", utc("2026-07-07T22:20:44+00:00")),
    (b"[rank0]: 2024-02-29 00:00:00 ", utc("2024-02-29T00:00:00+00:00")),
    (b"2026-07-07T22:20:45Z 2026-07-07T22:20:44Z ", utc("2026-07-07T22:20:44+00:00")),
    (b"2026-07-07 22:20:45 2026-07-07 22:20:44 ", utc("2026-07-07T22:20:44+00:00")),
    (b"2026-07-07T22:20:44Z [2026-07-08 00:20:43] ", utc("2026-07-07T22:20:44+00:00")),  # every line has it, unlike the other
    (b"1969-12-31T23:59:59Z ", -1.0),
    (b"1783462844.250000000 ", 1783462844.25),
    (b"01/27/2026 15:49:50 ", utc("2026-01-27T15:49:50+00:00")),
    (b"27/01/2026 15:49:50 ", utc("2026-01-27T15:49:50+00:00")),
    (b"07/07/2026 15:49:50 - INFO - __main__ - ", utc("2026-07-07T15:49:50+00:00")),
    (b"07/09/2026 15:49:50 - INFO - __main__ - ", math.nan),  # July or September
    (b"07/09/2026 15:49:50 [INFO|DP=0|PP=0|TP=0|node7]: ", utc("2026-07-09T15:49:50+00:00")),  # nanotron's own: month first
    (b"Jul  7 22:20:44 node7 train[812]: ", math.nan),  # of which year?
    (b"<34>Jul  7 22:20:44 node7 train[812]: ", math.nan),
    (b"I0707 22:20:44.123456 812 metric_logger.py:226] ", math.nan),
    (b"[07/07 22:20:44] d2.utils.events INFO: ", math.nan),
    (b"2026-01-02 03:04:05,719 - main.py - train - INFO - ", 1767323045.719),
    (b"2026-07-07_22:20:44 ", utc("2026-07-07T22:20:44+00:00")),
    (b"[2026.07.07-22:20:44] ", utc("2026-07-07T22:20:44+00:00")),
    (b"07-Jul-26 22:20:44 - ", utc("2026-07-07T22:20:44+00:00")),
    (b"Tue, 7 Jul 2026 22:20:44 ", utc("2026-07-07T22:20:44+00:00")),
    (b"Tuesday, 07 July 2026 22:20:44 ", utc("2026-07-07T22:20:44+00:00")),
    (b"July 7, 2026 22:20:44 | ", utc("2026-07-07T22:20:44+00:00")),
    (b"07.09.2026 22:20:44 ", utc("2026-09-07T22:20:44+00:00")),  # with dots the day is first
    (b"01-27-2026 22:20:44 ", utc("2026-01-27T22:20:44+00:00")),
    (b"07-09-2026 22:20:44 ", math.nan),
    ("2026年7月7日 22:20:44 ".encode(), utc("2026-07-07T22:20:44+00:00")),
    (b"01/27/2026 10:20:44 PM ", utc("2026-01-27T22:20:44+00:00")),
    (b"2026-07-07 12:20:44 AM ", utc("2026-07-07T00:20:44+00:00")),
    (b"2026-07-07 22:20:44 PM ", math.nan),
    (b"26-07-07 22:20:44.123 - INFO: ", math.nan),  # the year or the day first?
    (b"loss 0.5 1783462844.250000000 ", math.nan),
    (b"0: 1783462844.250000000 ", 1783462844.25),
    (b"[1,0]<stdout>:1783462844.250000000 ", 1783462844.25),
    (b"2026-07-07T22:20:44+99:00 ", math.nan),
    (b"2026-02-30 22:20:44 ", math.nan),
    (b"2025-02-29 22:20:44 ", math.nan),
    (b"2026-13-01 22:20:44 ", math.nan),
    (b"2026-07-07 24:20:44 ", math.nan),
    (b"2026-07-07 22:60:44 ", math.nan),
    (b"0000-07-07 22:20:44 ", math.nan),
    (b"20261307 22:20:44 ", math.nan),
    (b"Mon Xyz  7 22:20:44 2026 ", math.nan),
    (b"2026-07-07 ", math.nan),
    (b"22:20:44 ", math.nan),
    (b"", math.nan),
    (b"\xff\xfe", math.nan),
]


@pytest.mark.parametrize(("prefix", "want"), CLOCKS)
def test_clock(prefix: bytes, want: float) -> None:
    assert read_clock(prefix) == pytest.approx(want, abs=1e-6, rel=0, nan_ok=True)


@pytest.mark.parametrize("prefix", [prefix for prefix, want in CLOCKS if not math.isnan(want)])
def test_what_may_have_a_time_is_known_without_the_values_of_digits(prefix: bytes) -> None:
    assert may_have_time(prefix.translate(MASK))


@pytest.mark.parametrize(
    "prefix", [b"00:00:00 ", b" 00%|###   | 0/00 [00:00:00<00:00:00, ", b"Jul  0 00:00:00 node0 ", b"0000-00-00 "]
)
def test_a_clock_without_a_date_is_no_time(prefix: bytes) -> None:
    assert not may_have_time(prefix)


def test_an_impossible_time_does_not_hide_a_possible_one() -> None:
    assert read_clock(b"2026-07-07 22:20:44 2026-99-99 22:20:44 ") == utc("2026-07-07T22:20:44+00:00")


def test_naive_times_ignore_the_zone_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    before = read_clock(b"2026-07-07 22:20:44 ")
    monkeypatch.setenv("TZ", "America/New_York")
    read_clock.cache_clear()
    assert read_clock(b"2026-07-07 22:20:44 ") == before == utc("2026-07-07T22:20:44+00:00")


HEADS = [
    b"1668062261449 VM-0-6-ubuntu error ",
    b"[rank0]: ",
    b" 0: ",
    b"[1,0]<stdout>:",
    b"(RayTrainWorker pid=21663, ip=10.0.0.1) ",
    b"trainer-0  | ",
    b"2026-01-02T03:04:05.123456789Z stdout F ",
    b"\xef\xbb\xbf2026-01-02T03:04:05.1234567Z ",
    b"ERROR 2026-01-02T03:04:05.165758439Z [resource.labels.containerName: tpu] ",
    b"Jan 02 03:04:05 node001 systemd-run: ",
    b'<14>1 2026-01-02T03:04:05.123Z node001 train 812 ID47 [a@32473 b="c"] ',
    b"Fri 2026-01-02 03:04:05 UTC node001 train[123]: ",
    b"[pod/trainer-0-x7/pytorch] ",
    b"I0102 03:04:05.920936 1388 metric_logger.py:226] ",
    b"I0102 03:04:05.920936 138898490059648 metric_logger.py:226] ",
    b"[rank0]:[W102 03:04:05.164838118 ProcessGroupNCCL.cpp:1647] ",
    b"2026-01-02 03:04:05.123 | INFO     | mod.sub:<module>:12 - ",
    b"[INFO|2026-01-02 03:04:05] trainer.py:4263 >> ",
    b"2026-01-02 03:04:05,123 INFO [train.py:422] (0/4) ",
    b"[2026-01-02 03:04:05,123] [INFO] [engine.py:812:step] [Rank 0] ",
    b"INFO:mod.sub:",
    b"[titan] 2026-01-02 03:04:05,591 - root - INFO - ",
    b"[01/27 03:04:05] d2.utils.events INFO: ",
    b"[03:04:05.951899] ",
    b"12/21 01:39:51 [INFO|DP=0|TP=0|node7]: ",
    b"[NeMo I 2026-01-02 03:04:05 train:12] ",
    b"10.0.0.4: ",
    b"1560722631.219058947 ",
    b"\x07",
    b"704.7s\t1456\t",
    b"[1,mpirank:0,algo-1]<stdout>:",
    b"#033[34m",
    b"2026-01-02 03:04:05,123: rank0[812][MainThread]: INFO: llmfoundry.train: ",
    b"2026-01-02 03:04:05.979\tnode7:0\tolmo_core.train:195\tINFO\t",
    b"(worker1, rank=1, pid=2383, ip=10.0.0.5) ",
    b"2026-01-02 03:04:05,123-train-INFO-",
    b"[Jan 02 03:04:05] ",
]


@pytest.mark.parametrize("head", HEADS)
def test_the_line_begins_behind_its_head(head: bytes) -> None:
    assert len(head) in starts(head + b"Epoch 3: loss 0.5")


@pytest.mark.parametrize(
    ("head", "line"),
    [
        (b"May 06 07:08:09 ", b"Total params: 161 (644.00 Byte)"),
        (b"May 06 07:08:09 ", b"Loss is: 0.0125, Training Accuracy: 73.7283%"),
        (b"May 06 07:08:09 node001 train[812]: ", b"Total params: 161"),
        (b"0.200123 ", b"0: :::MLLOG {}"),
        (b"0.200123 ", b"\t Train loss: 2.5"),
        (b"0.200123 ", b"46.604204\t0.246368\t0.176002"),
    ],
)
def test_a_head_ends_where_the_line_begins(head: bytes, line: bytes) -> None:
    assert max(starts(head + line)) in {len(head), len(head) + 3 * line.startswith(b"0: ")}


@pytest.mark.parametrize(
    "head", [b"2026-01-02 03:04:05,123 - train - INFO - ", b"[INFO] 2026-01-02 03:04:05 ", b"INFO:root:", b"0: "]
)
@pytest.mark.parametrize("line", [b"seed=3,", b"  seed: 3", b"        seed=3,"])
def test_a_line_is_indented_behind_a_head_as_without_one(head: bytes, line: bytes) -> None:
    assert behind_heads(head + line) == behind_heads(line) == line
    assert not line.startswith(b"    ") or len(head) + 8 not in starts(head + line)


@pytest.mark.parametrize("line", [b"subprocess.CalledProcessError: Command", b"train_bash.py: error: argument --lr: invalid"])
def test_the_type_of_an_error_is_no_logger(line: bytes) -> None:
    assert behind_heads(b"INFO: " + line) == line
    assert behind_heads(b"INFO: torch.distributed.run: " + line) == line


@pytest.mark.parametrize(
    "line",
    [
        b"loss: 0.5",
        b"epoch12: loss: 0.5",
        b"step 5: loss 0.5",
        b"top5: 0.9",
        b"val1: loss 0.5",
        b"490 | loss 5.7543 | lr 4.9e-05",
        b"10/100: loss 0.5",
        b"[valid] Ep. 3 : Up. 500",
        b"[Train][Epoch 9/10] loss: 0.5",
        b"[12] loss=0.5",
        b"+ echo loss: 0.5",
        b"wandb: loss 0.5",
    ],
)
def test_what_a_trainer_prints_is_no_head(line: bytes) -> None:
    assert starts(line) == ()


@pytest.mark.parametrize(
    ("raw", "want"),
    [
        (b"loss: 0.5 [repeated 7x across cluster]\n", b"loss: 0.5\n"),
        (
            b"loss: 0.5\x1b[32m [repeated 2x across cluster] (Ray deduplicates logs by default. Set RAY_DEDUP_LOGS=0"
            b" to disable log deduplication, or see https://docs.example/logs for more options.)\x1b[0m\n",
            b"loss: 0.5\n",
        ),
        (b"\x1b_bk;t=1783462844250\x07step 5\n", b"1783462844.250 step 5\n"),
        (b"a [repeated 7 times]\r\nb\x00\n", b"a [repeated 7 times]\nb\n"),
    ],
)
def test_what_wrappers_put_into_a_line(raw: bytes, want: bytes) -> None:
    assert unwrap(raw) == want


def test_heads_are_those_of_the_form_but_where_a_digit_decides() -> None:
    rest = b" 2026-01-02T03:04:05Z host app 1 ID1 - loss 0.5"
    assert max(head_ends(b"<13>1" + rest)) > max(head_ends(b"<13>2" + rest))
    assert head_ends(b"#033[1mloss 1") != head_ends(b"#044[1mloss 1")
    assert head_ends(b"[2026-01-02 03:04:05] loss 1") == head_ends(b"[1999-12-31 23:59:59] loss 7")
    assert [read_rank(b"[rank%d]: " % rank) for rank in (0, 3, 7)] == [0, 3, 7]
