"""A log that grows piece by piece, looked at in between: what it gives in the end is what one pass gives."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from receipt_cli.derive import Options, Plan, derive, plan_reading
from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.errors import InputError, UsageError
from receipt_cli.follow.growth import Growth
from receipt_cli.io.source import Source
from receipt_cli.receipts.assembly import assemble

ROOT = Path(__file__).resolve().parents[3]
LOGS = [
    ROOT / "fixtures" / "logs" / name
    for name in ("nanochat/speedrun-2025-10.log", "hf-trainer/bar-merged-v5.log", "megatron-lm/2024-oom-then-restart.log")
]
DENSE = b"".join(
    b"step %05d/30000 (1.00%%) | loss: %d.%06d | lrm: 1.00 | dt: 47%d.37ms | "
    b"tok/sec: 1,100,58%d | mfu: 48.5%d | total time: 0.13m\n" % (i, 1 + i % 7, i * 7 % 1000000, i % 10, i % 10, i % 10)
    for i in range(20_000)
)
"""Longer than what a column holds in an array: its memory grows and may not be lent meanwhile."""


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_reading(Options())


def receipt_of(growth: Growth) -> bytes:
    return canonical_bytes(assemble(growth.finish().derivation(), run={}, header={}))


def receipt_at_once(path: Path) -> bytes:
    return canonical_bytes(assemble(derive(Source(str(path))), run={}, header={}))


@settings(max_examples=25, deadline=None)
@given(log=st.sampled_from(LOGS), data=st.data())
def test_however_it_is_cut_and_looked_at(plan: Plan, log: Path, data: st.DataObject) -> None:
    text = log.read_bytes()
    cuts = sorted(data.draw(st.sets(st.integers(1, len(text) - 1), max_size=6)))
    growth = Growth(str(log), plan, once=True)
    for start, stop in zip([0, *cuts], [*cuts, len(text)], strict=True):
        growth.add([text[start:stop]])
        if data.draw(st.booleans()):
            before = growth.snapshot().derivation()
            assert before.log.size_bytes == growth.size_bytes == stop
    assert growth.line_count == text.count(b"\n")
    assert receipt_of(growth) == receipt_at_once(log)


def test_what_is_looked_at_in_between_is_what_a_log_that_ends_there_gives(plan: Plan, tmp_path: Path) -> None:
    growth = Growth("run.log", plan, once=True)
    path = tmp_path / "run.log"
    size = len(DENSE) // 3 + 17
    for start in range(0, len(DENSE), size):
        growth.add([DENSE[start : start + size]])
        path.write_bytes(DENSE[: start + size])
        looked = [growth.snapshot().derivation() for _ in range(2)]
        want = receipt_at_once(path)
        assert [canonical_bytes(assemble(each, run={}, header={})) for each in looked] == [want, want]
    assert receipt_of(growth) == want


@pytest.mark.parametrize(
    ("block", "error", "text"),
    [
        (b"\x1f\x8b\x08\x00 and so on", UsageError, "compressed with gzip"),
        (b"PK\x03\x04 and so on", InputError, "a zip archive"),
    ],
)
def test_what_is_no_text_is_refused_at_once(plan: Plan, block: bytes, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Growth("run.log", plan, once=True).add([block])


def test_nothing_is_no_log(plan: Plan) -> None:
    with pytest.raises(InputError, match="empty"):
        Growth("run.log", plan, once=True).finish()
