"""Several files, one run: what counts as a log, how ranks and parts are told, and what the files give together."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.errors import InputError, ReceiptError
from receipt_cli.io.discovery import arrange, find_logs
from receipt_cli.receipts.production import Request, produce, produce_all

pytestmark = pytest.mark.usefixtures("one_engine")

TRACE = "Traceback (most recent call last):\nValueError: no such batch\n"


def lines(steps: Iterable[int], memory: float = 1.0, loss: float = 8.0) -> str:
    return "".join(
        f"step: {n}  loss:  {loss - n / 16:.4f}  grad_norm: 1.5  memory: {memory:.2f}GiB(1.00%)  tps: 900  mfu: 30.00%\n"
        for n in steps
    )


def write(folder: Path, files: dict[str, str | bytes]) -> list[str]:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return [str(folder / name) for name in files]


def receipt(paths: list[str]) -> dict[str, Any]:
    return produce(Request(path=paths[0], more=tuple(paths[1:]), workers=1)).document


def spread(document: dict[str, Any]) -> tuple[int | None, int | None, int, int]:
    found = document["summary"]["steps"]
    return found["first"], found["last"], found["record_count"], found["restart_count"]


RANKS = [
    (["rank0.log", "rank12.log"], [(0, True), (12, True)]),
    (["train_rank_0.txt", "train_rank_1.txt"], [(0, True), (1, True)]),
    (["rank-3/train.log", "rank-4/train.log"], [(3, True), (4, True)]),
    (["stdout_3.txt", "stdout_7.txt"], [(3, True), (7, True)]),
    (["gpu0.out", "gpu1.out"], [(0, True), (1, True)]),
    (["attempt_0/3/stdout.log", "attempt_0/4/stdout.log"], [(3, True), (4, True)]),
    (["node0_rank1.log", "node1_rank9.log"], [(1, True), (9, True)]),
    (["node0_gpu1.log", "node1_gpu0.log"], [(0, True), (1, True)]),
    (["node0/attempt_0/1/stdout.log", "node1/attempt_0/1/stdout.log"], [(0, True), (1, True)]),
    (["log-train-2026-02-03-0", "log-train-2026-02-03-1"], [(0, False), (1, False)]),
    (["3.log", "4.log.gz"], [(3, False), (4, False)]),
    (["seed_3.log", "seed_4.log"], [(None, False), (None, False)]),
    (["fold0.txt", "fold1.txt"], [(None, False), (None, False)]),
    (["train.log", "frank2go.log"], [(None, False), (None, False)]),
]


@pytest.mark.parametrize(("names", "want"), RANKS, ids=[row[0][0] for row in RANKS])
def test_ranks_in_names(names: list[str], want: list[tuple[int | None, bool]]) -> None:
    streams = arrange([f"runs/{name}" for name in names])
    found = {file.name: (file.rank, file.certain) for stream in streams for file in stream}
    common = Path(names[0]).parts[0] if len({Path(name).parts[0] for name in names}) == 1 and "/" in names[0] else ""
    assert [found[name.removeprefix(f"{common}/") if common else name] for name in names] == want


PARTS = [
    (["train.log", "train.log.1", "train.log.2"], [["train.log.2", "train.log.1", "train.log"]]),
    (["train.log", "train.log.2.gz", "train.log.10.gz"], [["train.log.10.gz", "train.log.2.gz", "train.log"]]),
    (["run.log-20260203", "run.log", "run.log-20260131"], [["run.log-20260131", "run.log-20260203", "run.log"]]),
    (["run.log.2026-02-03", "run.log.2026-01-31"], [["run.log.2026-01-31", "run.log.2026-02-03"]]),
    (["rank0.log.1", "rank0.log", "rank1.log"], [["rank0.log.1", "rank0.log"], ["rank1.log"]]),
    (["log10.txt", "log9.txt"], [["log9.txt"], ["log10.txt"]]),
    (["nohup", "nohup.1"], [["nohup.1", "nohup"]]),
    (["worker.0", "worker.1"], [["worker.0"], ["worker.1"]]),
]


@pytest.mark.parametrize(("names", "want"), PARTS, ids=[row[0][0] + "..." for row in PARTS])
def test_parts_of_a_rotated_file(names: list[str], want: list[list[str]]) -> None:
    assert [[file.name for file in stream] for stream in arrange([f"runs/{name}" for name in names])] == want


def test_the_logs_of_a_folder(tmp_path: Path) -> None:
    logs = {"a.log": "x\n", "deep/er/b.txt": "x\n", "c.out": "x\n", "d.err": "x\n", "train.log.3": "x\n",
            "e.log.gz": gzip.compress(b"x\n"), "nohup": "x\n", "f.jsonl": '{"loss": 1}\n', "sl.out": b"a\0\0b\n"}  # fmt: skip
    others = {".hidden.log": "x\n", ".git/x.log": "x\n", "model.pt": "x", "core": bytes(range(32)) * 9, "empty.log": "",
              "config.yaml": "a: 1", "train.py": "print()", "README.txt": "x", "requirements.txt": "x", "run.receipt.txt": "x",
              "store.jsonl": '{"schema_version": "receipt/1.0"}', "events.out.tfevents.1": "x", "a.swp": "x",
              "launch": "#!/bin/sh\n", "weights.log": bytes(range(1, 9)) * 40, "__pycache__/a.log": "x\n"}  # fmt: skip
    write(tmp_path, {**logs, **others})
    found, left_out = find_logs([str(tmp_path)])
    assert sorted(str(Path(path).relative_to(tmp_path)) for path in found) == sorted(logs)
    assert left_out == len(others) - 3  # what is hidden is not even looked at
    with pytest.raises(InputError, match="holds no log"):
        find_logs([write(tmp_path, {"weights/model.pt": "x"})[0].removesuffix("/model.pt")])


def test_ranks_that_print_the_same_steps(tmp_path: Path) -> None:
    paths = write(tmp_path, {f"rank{rank}.log": lines(range(1, 21), 1 + rank / 4) for rank in range(4)})
    document = receipt([str(tmp_path)])
    assert document == receipt(paths[::-1])  # neither the order nor the folder matters
    assert spread(document) == (1, 20, 20, 0)
    peaks = {rank: found["peak_memory_bytes"] / 2**30 for rank, found in document["summary"]["ranks"].items()}
    assert peaks == {"0": 1.0, "1": 1.25, "2": 1.5, "3": 1.75}
    assert {found["record_count"] for found in document["summary"]["ranks"].values()} == {20}
    log = document["derivation"]["log"]
    assert [(f["name"], f["rank"], f["line_count"]) for f in log["files"]] == [(f"rank{n}.log", n, 20) for n in range(4)]
    digests = [hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in paths]
    assert [f["sha256"] for f in log["files"]] == digests
    assert log["sha256"] == hashlib.sha256("".join(f"{d}\n" for d in digests).encode()).hexdigest()
    assert (log["line_count"], log["size_bytes"]) == (80, sum(Path(path).stat().st_size for path in paths))


def test_one_file_in_a_folder_is_that_file(tmp_path: Path) -> None:
    (path,) = write(tmp_path, {"only/rank3.log": lines(range(9))})
    assert receipt([str(tmp_path)]) == receipt([path])


@pytest.mark.parametrize("rank", [0, 2])
def test_a_rank_that_fails_fails_the_run(tmp_path: Path, rank: int) -> None:
    files = {f"rank{n}.log": lines(range(1, 21)) for n in range(3)}
    files[f"rank{rank}.log"] = lines(range(1, 12)) + TRACE
    document = receipt(write(tmp_path, files))
    failure = document["failure"]
    assert failure["reason"] == "traceback"
    assert failure["line_number"] == sum(text.count("\n") for n, text in enumerate(files.values()) if n < rank) + 13
    assert failure["log_tail"][-1] == "ValueError: no such batch"
    assert spread(document) == (1, 20, 20, 0)
    assert document["summary"]["ranks"][str(rank)]["last"] == 11


def test_an_error_that_a_rank_got_over(tmp_path: Path) -> None:
    late = lines(range(1, 4)) + TRACE + lines(range(4, 21))
    assert receipt(write(tmp_path, {"rank0.log": lines(range(1, 21)), "rank1.log": late}))["failure"] is None


def test_stdout_and_stderr_of_a_job(tmp_path: Path) -> None:
    done = "Training completed\n"
    out = "[titan] 2026-02-03 04:05:06,789 - root - INFO - "
    healthy = lines(range(1, 9)) + f"{out}{done}"
    warning = "a warning\n"
    document = receipt(write(tmp_path, {"slurm-7.out": healthy, "slurm-7.err": warning + TRACE}))
    assert document["failure"] is None  # it completed all the same
    document = receipt(write(tmp_path, {"slurm-7.out": lines(range(1, 9)), "slurm-7.err": warning + TRACE}))
    assert document["failure"]["reason"] == "traceback"
    assert receipt(write(tmp_path, {"slurm-7.out": "", "slurm-7.err": healthy}))["checks"]["completed"] is True


def test_parts_read_as_the_file_that_they_were(tmp_path: Path) -> None:
    whole = (lines(range(1, 40)) + TRACE).encode()
    cuts = [0, 700, 1501, len(whole)]  # within lines
    parts = [whole[a:b] for a, b in pairwise(cuts)]
    files = {"run.log": parts[2], "run.log.1": parts[1], "run.log.2.gz": gzip.compress(parts[0])}
    document = receipt(write(tmp_path / "parts", files))
    alone = receipt(write(tmp_path, {"run.log": whole}))
    for block in ("summary", "phases", "checks", "failure"):
        assert document[block] == alone[block]
    for part in ("lines", "problems", "near_misses", "observed", "grammars"):
        assert document["derivation"][part] == alone["derivation"][part]
    assert document["derivation"]["log"]["line_count"] == alone["derivation"]["log"]["line_count"]
    assert [f["name"] for f in document["derivation"]["log"]["files"]] == ["run.log.2.gz", "run.log.1", "run.log"]


@pytest.mark.parametrize(
    ("first", "second"), [("part1.log", "part2.log"), ("slurm-99.out", "slurm-100.out"), ("log-0.txt", "log-1.txt")]
)
def test_jobs_of_one_run_follow_one_another(tmp_path: Path, first: str, second: str) -> None:
    paths = write(tmp_path, {first: lines(range(1, 21)), second: lines(range(15, 31), loss=7.0)})
    document = receipt(paths[::-1])
    assert spread(document) == (1, 30, 30, 1)
    assert document["summary"]["steps"]["superseded_count"] == 6
    assert "ranks" not in document["summary"]


def test_attempts_of_a_launcher(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {}
    for rank in range(2):
        files[f"attempt_0/{rank}/stdout.log"] = lines(range(1, 11), 1 + rank)
        files[f"attempt_0/{rank}/stderr.log"] = TRACE if rank else ""
        files[f"attempt_1/{rank}/stdout.log"] = lines(range(6, 21), 2 + rank)
    write(tmp_path, files)
    document = receipt([str(tmp_path)])
    assert spread(document) == (1, 20, 20, 1)
    assert document["summary"]["ranks"]["1"]["peak_memory_bytes"] == 3 * 2**30


OTHERS = [
    ("another trainer", lines(range(9)), "".join(f"iter {n}: loss 2.5, time 10.00ms, mfu 1.00%\n" for n in range(9))),
    ("other values, no rank in the name", lines(range(9)), lines(range(9), loss=7.0)),
]


@pytest.mark.parametrize(("left", "right"), [row[1:] for row in OTHERS], ids=[row[0] for row in OTHERS])
def test_files_of_several_runs_are_refused_or_read_apart(tmp_path: Path, left: str, right: str) -> None:
    paths = write(tmp_path, {"one.log": left, "two.log": right})
    with pytest.raises(ReceiptError, match="2 files belong to 2 runs") as caught:
        receipt(paths)
    assert caught.value.exit_code == 2
    assert "one.log" in caught.value.why
    assert "two.log" in caught.value.why
    documents = [p.document for p in produce_all(Request(path=paths[0], more=(paths[1],), workers=1))]
    assert documents[0] == receipt(paths[:1])
    assert documents[1] == receipt(paths[1:])


def test_ranks_may_print_their_own_losses(tmp_path: Path) -> None:
    document = receipt(write(tmp_path, {"rank0.log": lines(range(9)), "rank1.log": lines(range(9), loss=7.0)}))
    assert spread(document) == (0, 8, 9, 0)
    assert document["summary"]["metrics"]["loss"]["first"] == 8.0  # of one rank, not of a mixture


def dicts(epochs: Iterable[int], loss: float = 3.0) -> str:
    return "".join(f"{{'loss': {loss - e / 8}, 'grad_norm': 0.5, 'learning_rate': 0.001, 'epoch': {e / 4}}}\n" for e in epochs)


def test_records_without_a_step_number(tmp_path: Path) -> None:
    alone = receipt(write(tmp_path, {"rank0.log": dicts(range(1, 9))}))
    ranks = receipt(write(tmp_path, {f"rank{rank}.log": dicts(range(1, 9), 3.0 + rank) for rank in range(2)}))
    assert ranks["summary"]["metrics"] == alone["summary"]["metrics"]
    parts = receipt(write(tmp_path, {"part1.log": dicts(range(1, 5)), "part2.log": dicts(range(5, 9))}))
    assert parts["summary"]["metrics"] == alone["summary"]["metrics"]
    with pytest.raises(ReceiptError, match="2 files belong to 2 runs"):
        receipt(write(tmp_path, {"one.log": dicts(range(1, 9)), "two.log": dicts(range(1, 9), 4.0)}))


def test_ranks_that_hold_no_steps(tmp_path: Path) -> None:
    document = receipt(write(tmp_path, {"rank0.log": "waiting\n", "rank1.log": lines(range(9)), "rank2.log": "waiting\n"}))
    assert spread(document) == (0, 8, 9, 0)
    assert len(document["derivation"]["log"]["files"]) == 3


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    paths = write(tmp_path, {"rank0.log": lines(range(9))})
    with pytest.raises(InputError, match="no such log"):
        receipt([*paths, str(tmp_path / "rank1.log")])
    with pytest.raises(ReceiptError, match="- must be the only file"):
        receipt([*paths, "-"])
    assert receipt(paths * 2) == receipt(paths)
