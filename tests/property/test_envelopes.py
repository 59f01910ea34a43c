"""What launchers and collectors put before each line changes no figure, and its rank and its time are kept."""

import math
import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from benchmarks.metamorphic.pairs import without_places
from receipt_cli.definitions.failure_markers import Catalogue, load_catalogue
from receipt_cli.grammar.catalog import shipped
from receipt_cli.grammar.model import Grammar, Rule
from receipt_cli.receipts.production import Request, produce
from receipt_cli.records.envelope import MAX_ENVELOPES, NO_RANK, unwrap
from receipt_cli.scan.columns import POSITION_BITS, RuleColumns
from receipt_cli.scan.engine import Engine
from tests.tools.fixture_receipts import receipt_of
from tests.tools.slow import one_in

LOGS = sorted((Path(__file__).resolve().parents[2] / "fixtures" / "logs").glob("*/*.log"))
ENVELOPES = {
    "torchrun": b"[rank0]: ",
    "srun": b" 0: ",
    "compose": b"trainer-0  | ",
    "kubernetes": b"2026-01-02T03:04:05.123456789Z ",
    "ray": b"(RayTrainWorker pid=21663, ip=10.0.0.1) ",
    "mpi": b"[1,0]<stdout>:",
    "syslog": b"Jan  2 03:04:05 node001 train[123]: ",
    "actions": b"2026-05-06T17:01:52.0019409Z ",
    "two": b"2026-01-02T03:04:05Z [rank0]: ",
    "cri": b"2026-01-02T03:04:05.123456789Z stdout F ",
    "cloud": b"ERROR 2026-01-02T03:04:05.165758439Z [resource.labels.containerName: tpu] ",
    "pdsh": b"gpu250: ",
    "deepspeed": b"node-3: [default0]:",
    "syslog5424": b"<14>1 2026-01-02T03:04:05.5+02:00 node001 train 812 - - ",
    "buildkite": b"\x1b_bk;t=1783462844250\x07",
}
NAMES = list(ENVELOPES)
ALONE = {path for path in LOGS if [log.parent for log in LOGS].count(path.parent) == 1}
"""Logs that are the only one of their trainer, which are read behind two envelopes: so are at least two of each trainer."""
CASES = [(p, NAMES[(number + turn) % len(NAMES)]) for number, p in enumerate(LOGS) for turn in ((0, 7) if p in ALONE else (0,))]


@pytest.mark.parametrize(
    ("path", "envelope"), one_in(4, CASES), ids=lambda v: v if isinstance(v, str) else f"{v.parent.name}/{v.stem}"
)
def test_an_envelope_changes_no_figure(path: Path, envelope: str, tmp_path: Path) -> None:
    lines = path.read_bytes().split(b"\n")
    wrapped = tmp_path / "run.log"
    wrapped.write_bytes(b"\n".join(ENVELOPES[envelope] + line if line else line for line in lines))
    want, got = receipt_of(path), produce(Request(path=str(wrapped))).document
    for phase in (*got["phases"], *want["phases"]):
        summary = phase["summary"]
        for name in ("time", "realised", "step_times", "identities"):  # the head gives each line a time
            del summary[name]
        (summary["checkpoints"] or {}).pop("unsaved_time_s", None)
        for step in (summary.get("slow_steps") or {}).get("longest", ()):
            step["rank"] = None  # the head may name one
    assert without_places(got["phases"]) == without_places(want["phases"])
    assert got["checks"] == want["checks"]
    assert (got["failure"] or {}).get("reason") == (want["failure"] or {}).get("reason")


HEADS: dict[bytes, tuple[int | None, float | None]] = {
    b"[rank3]: ": (3, None),
    b"[default12]:": (12, None),
    b" 5: ": (5, None),
    b"17: ": (17, None),
    b"[1,4]<stdout>:": (4, None),
    b"[1,9]<stderr>: ": (9, None),
    b"Rank 2 ": (2, None),
    b"(RayTrainWorker pid=21663, ip=10.0.0.1) ": (None, None),
    b"(train_fn pid=123) ": (None, None),
    b"trainer-4  | ": (None, None),
    b"gpu250: ": (None, None),
    b"10.0.0.4: ": (None, None),
    b"[pod/trainer-0-x7/pytorch] ": (None, None),
    b"Jan  2 03:04:05 node001 train[123]: ": (None, None),
    b"I0102 03:04:05.920936 1388 metric_logger.py:226] ": (None, None),
    b"INFO:root:": (None, None),
    b"2026-01-02T03:04:05.5Z ": (None, 1767323045.5),
    b"2026-01-02T03:04:06.250000000Z stdout F ": (None, 1767323046.25),
    b"2026-01-02T03:04:05+02:00 ": (None, 1767315845.0),
    b"INFO 2026-01-02T03:04:07Z [resource.labels.containerName: tpu] ": (None, 1767323047.0),
    b"<14>1 2026-01-02T03:04:08Z node001 train 812 ID47 - ": (None, 1767323048.0),
    b"2026-01-02T03:04:09+0000 node001 train[123]: ": (None, 1767323049.0),
    b"[INFO|trainer.py:1144] 2026-01-02 03:04:10,250 >> ": (None, 1767323050.25),
    b"[INFO|2026-01-02 03:04:11] trainer.py:4263 >> ": (None, 1767323051.0),
    b"2026-01-02 03:04:12.123 | INFO     | mod:func:12 - ": (None, 1767323052.123),
    b"2026-01-02 03:04:13,500 - root - INFO - ": (None, 1767323053.5),
    b"[2026-01-02 03:04:14,500] [INFO] [engine.py:812:step] [Rank 6] ": (6, 1767323054.5),
    b"01/27/2026 03:04:15 [INFO|DP=0|PP=0|TP=0]: ": (None, 1769483055.0),
}
LOGGER_THEN_LABEL = re.compile(rb" - INFO - +\d+: \Z")
ZONED = re.compile(rb"\dZ |[+-]\d\d:?\d\d ")


GRAMMARS = {grammar.ref: grammar for grammar in shipped(with_samples=True)}


@cache
def engine(ref: str) -> Engine:
    return Engine([GRAMMARS[ref]], Catalogue(1, "", ()))


def read(grammar: Grammar, rule: Rule, log: bytes) -> tuple[dict[Any, Any], list[int | None], list[float]]:
    """What ``rule`` reads in ``log``: fields by name, and rank and clock of each event."""
    one = engine(grammar.ref)
    body, _ = one.finish(one.scan([log]))
    columns = one.columns(body, grammar, rule) or RuleColumns()
    kinds = {"number": columns.numbers, "text": columns.texts, "other": columns.unregistered}
    values = {(k, n): (list(c.rows), list(map(str, c.values))) for k, named in kinds.items() for n, c in named.items()}
    own = rule.pattern is not None and rule.pattern.startswith("^(?:.{")  # the pattern itself allows for any head
    swallowed = [own or not at & ((1 << POSITION_BITS) - 1) for at in columns.at]
    ranks = [None if began else rank for began, rank in zip(swallowed, columns.rank, strict=True)]
    return {"count": len(columns), **values}, ranks, list(columns.clock)


def wrap(line: bytes, stack: list[bytes]) -> bytes:
    return b"\n".join(b"".join(stack) + part for part in line.split(b"\n"))


SAMPLES = [(g, r, s) for g in GRAMMARS.values() for r in g.rules for s in r.samples]
STACKS = [[head] for head in HEADS] + [list(two) for two in pairwise(HEADS)]


@cache
def unwrapped(number: int) -> tuple[dict[Any, Any], list[int | None], list[float]]:
    """What a sample's rule reads in it without a head."""
    grammar, rule, sample = SAMPLES[number]
    return read(grammar, rule, sample.line.encode())


def check(number: int, stack: list[bytes]) -> None:
    grammar, rule, sample = SAMPLES[number]
    want, ranks, clocks = unwrapped(number)
    got, kept, times = read(grammar, rule, wrap(sample.line.encode(), stack))
    assert {**got, ("number", "rank"): None} == {**want, ("number", "rank"): None}, (rule.name, sample.line, stack)
    stated = [rank for head in stack if (rank := HEADS[head][0]) is not None]
    for bare, rank in zip(ranks, kept, strict=True):
        if rank is not None and bare in (None, NO_RANK) and ("number", "rank") not in got:
            assert rank == (stated[-1] if stated else NO_RANK)
    known = [(ZONED.search(head) is not None, clock) for head in stack if (clock := HEADS[head][1]) is not None]
    best = [clock for zoned, clock in known if zoned] or [clock for _, clock in known] or [math.nan]
    for bare_time, time, rank in zip(clocks, times, kept, strict=True):
        if rank is None:
            continue
        if math.isnan(bare_time):
            assert time == pytest.approx(best[-1], nan_ok=True)
        elif not any(zoned for zoned, _ in known):
            assert time == bare_time


@pytest.mark.parametrize("ref", one_in(3, (ref for ref, each in GRAMMARS.items() if any(rule.samples for rule in each.rules))))
def test_a_sample_behind_an_envelope_keeps_its_fields(ref: str) -> None:
    for number in (number for number, (grammar, _, _) in enumerate(SAMPLES) if grammar.ref == ref):
        check(number, STACKS[number % len(STACKS)])


@given(st.sampled_from(range(len(SAMPLES))), st.lists(st.sampled_from(list(HEADS)), min_size=1, max_size=MAX_ENVELOPES))
@example(0, list(HEADS)[:MAX_ENVELOPES])
def test_a_sample_behind_any_stack_keeps_its_fields(number: int, stack: list[bytes]) -> None:
    table = SAMPLES[number][2].line.startswith("|")
    assume(not (table and LOGGER_THEN_LABEL.search(b"".join(stack))))  # "INFO -  5: |" names a module: launchers label outside
    check(number, stack)


def test_a_block_behind_heads_of_several_parts_keeps_its_fields() -> None:
    head = b"[INFO|trainer.py:1144] 2026-01-02 03:04:10,250 >> "
    assert head in HEADS
    for number, (grammar, _, _) in enumerate(SAMPLES):
        if grammar.id == "easylm":
            check(number, [head] * MAX_ENVELOPES)


def test_a_marker_fires_behind_each_envelope() -> None:
    catalogue = load_catalogue()
    samples = [(marker.id, sample) for marker in catalogue.markers if marker.role != "exit_code" for sample in marker.samples]
    for number, (marker, sample) in enumerate(samples):
        for name in (NAMES[number % len(NAMES)], NAMES[(number + 7) % len(NAMES)]):
            hits = catalogue.search(unwrap(ENVELOPES[name] + sample))
            assert marker in [hit.marker.id for hit in hits], (name, marker, sample)
