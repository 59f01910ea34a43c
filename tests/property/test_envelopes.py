"""What launchers and collectors put before each line changes no figure."""

from __future__ import annotations

from pathlib import Path

import pytest

from receipt_cli.produce import Request, produce

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
}
NAMES = list(ENVELOPES)
CASES = [(path, NAMES[(number + turn) % len(NAMES)]) for number, path in enumerate(LOGS) for turn in (0, 4)]


@pytest.mark.parametrize(("path", "envelope"), CASES, ids=lambda v: v if isinstance(v, str) else f"{v.parent.name}/{v.stem}")
def test_an_envelope_changes_no_figure(path: Path, envelope: str, tmp_path: Path) -> None:
    lines = path.read_bytes().split(b"\n")
    wrapped = tmp_path / "run.log"
    wrapped.write_bytes(b"\n".join(ENVELOPES[envelope] + line if line else line for line in lines))
    want, got = produce(Request(path=str(path))).document, produce(Request(path=str(wrapped))).document
    assert got["phases"] == want["phases"]
    assert got["checks"] == want["checks"]
    assert (got["failure"] or {}).get("reason") == (want["failure"] or {}).get("reason")
