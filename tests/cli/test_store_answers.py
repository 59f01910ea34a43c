"""Answers of ``receipt store ask`` and ``query``, each beside the same figure read off the raw logs by other means."""

import json
import re
import shutil
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from .conftest import ROOT, Invoke, query

pytest.importorskip("duckdb")

LOGS = {
    "nanogpt": ("char-sigint", "char-sigint-resumed", "char-nan"),
    "fairseq": ("v09-epochs-resumed", "v012-train-inner-nan"),
    "marian": ("v17-cuda-oom",),
    "megatron-lm": ("2021-fp16-slurm-time-limit", "megatron-deepspeed-seconds-lm-loss", "2024-oom-then-restart"),
    "hf-trainer": ("nohup-two-runs-v5",),
}
SLOW = 2


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine logs of five trainers, a folder each, and one of four ranks, of which one is three times slower."""
    folder = tmp_path_factory.mktemp("answers") / "archive"
    for trainer, names in LOGS.items():
        (folder / trainer).mkdir(parents=True)
        for name in names:
            shutil.copy(ROOT / "fixtures" / "logs" / trainer / f"{name}.log", folder / trainer)
    (folder / "ranks").mkdir()
    steps = ((step, rank) for step in range(0, 300, 10) for rank in range(4))
    line = "[rank{1}]: iter {0}: loss 3.{0:03}{1}, time {2}ms, mfu 0.02%"
    (folder / "ranks" / "slow.log").write_text(
        "".join(f"{line.format(step, rank, 31 if rank == SLOW else 10 + step % 3)}\n" for step, rank in steps)
    )
    return folder


@pytest.fixture(scope="module")
def store(archive: Path) -> Path:
    from receipt_cli.batch.coordinator import Batch, rederive
    from receipt_cli.batch.discovery import Labels, walk

    from .test_archive import Here

    found = walk([str(archive)])
    batch = Batch(archive.parent / "store", Here(), labels=Labels({"lane": "{dir}"}), root=found.base)
    assert len(list(rederive(found.logs, batch).reports)) == 11
    return archive.parent / "store"


def text(archive: Path, path: str) -> str:
    return (archive / f"{path}.log").read_text("utf-8", "replace")


def ask(invoke: Invoke, store: Path, *arguments: str) -> list[dict[str, Any]]:
    done = invoke("store", "ask", store, *arguments, "--json")
    assert done.code == 0, done.stderr
    return list(json.loads(done.stdout))


def test_best_validation_loss(invoke: Invoke, store: Path, archive: Path) -> None:
    best = {row["model"]: row for row in ask(invoke, store, "best")}
    names = ("char-sigint", "char-sigint-resumed")
    printed = {n: [float(v) for v in re.findall(r"step \d+:.* val loss ([\d.]+)", text(archive, f"nanogpt/{n}"))] for n in names}
    want = min(printed, key=lambda name: min(printed[name]))
    assert best["nanogpt"]["val_loss"] == min(printed[want])
    assert min(printed[best["nanogpt"]["run"]]) == min(printed[want])
    slurm = re.findall(r"validation loss at iteration \d+ \| lm loss value: (\S+)", text(archive, LIMITED))
    row = next(row for row in ask(invoke, store, "best", "--where", "name LIKE '2021%'"))
    assert row["val_loss"] == min(map(float, slurm))


LIMITED = "megatron-lm/2021-fp16-slurm-time-limit"


def test_cost_of_failed_runs(invoke: Invoke, store: Path, archive: Path) -> None:
    limited = text(archive, LIMITED)
    [row] = [row for row in ask(invoke, store, "cost") if row["failure_reason"] == "time_limit"]
    stamps = re.findall(r"(?:datetime: |CANCELLED AT |^ ?\[)(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?)", limited, re.MULTILINE)
    moments = sorted(datetime.fromisoformat(stamp) for stamp in stamps)
    wall = query(invoke, store, "SELECT wall_time_s FROM runs WHERE failure_reason = 'time_limit'")[0]["wall_time_s"]
    assert wall is None or wall <= (moments[-1] - moments[0]).total_seconds() + 1
    assert (row["run_count"], row["hours"]) == (1, None if wall is None else pytest.approx(wall / 3600))


def test_hosts_that_fail(invoke: Invoke, store: Path, archive: Path) -> None:
    [row] = [row for row in ask(invoke, store, "hosts") if row["host"] == "node001"]
    logs = [path for path in archive.rglob("*.log") if re.search(r"(?:ON|on) node001 CANCELLED AT", path.read_text("utf-8"))]
    assert row["failure_count"] == len(logs)
    assert row["reasons"] == ["killed", "time_limit"]


def test_work_behind_the_last_checkpoint(invoke: Invoke, store: Path, archive: Path) -> None:
    log = text(archive, "nanogpt/char-sigint")
    [row] = [row for row in ask(invoke, store, "unsaved") if row["name"] == "char-sigint"]
    last = int(re.findall(r"^iter (\d+):", log, re.MULTILINE)[-1])
    before = log[: log.rindex("saving checkpoint")]
    saved = int(re.findall(r"^step (\d+):", before, re.MULTILINE)[-1])
    assert (row["checkpoint_last_step"], row["steps_last"], row["unsaved_step_count"]) == (saved, last, last - saved)
    count = query(invoke, store, "SELECT count(*) AS n FROM checkpoints WHERE name = 'char-sigint'")[0]["n"]
    assert count == log.count("saving checkpoint")


def test_stragglers(invoke: Invoke, store: Path, archive: Path) -> None:
    [row] = ask(invoke, store, "stragglers")
    times = re.findall(rf"\[rank{SLOW}\].*time (\d+)ms", text(archive, "ranks/slow"))
    assert (row["name"], row["rank"]) == ("slow", SLOW)
    assert row["median_step_time_s"] == pytest.approx(sorted(map(int, times))[len(times) // 2] / 1000)


def test_failures_by_signature(invoke: Invoke, store: Path, archive: Path) -> None:
    found = ask(invoke, store, "failures")
    failed = query(invoke, store, "SELECT failure_signature, name FROM runs WHERE failure_signature IS NOT NULL")
    assert {row["signature"]: row["run_count"] for row in found} == Counter(row["failure_signature"] for row in failed)
    ooms = [row for row in found if row["signature"].startswith("cuda_oom")]
    logs = [path.stem for path in archive.rglob("*.log") if re.search(r"(?i)out of memory", path.read_text("utf-8"))]
    assert {row["example"] for row in ooms} <= set(logs)
    causes = query(invoke, store, "SELECT name, marker, first_line FROM causes WHERE reason = 'time_limit'")
    lines = text(archive, LIMITED).splitlines()
    assert causes and all("DUE TO TIME LIMIT" in lines[row["first_line"] - 1] for row in causes)


def test_slowest_lane_and_what_varies(invoke: Invoke, store: Path, archive: Path) -> None:
    [row] = ask(invoke, store, "slowest", "--where", "lane = 'ranks'")
    assert row["run_count"] == 1 and 0.01 <= row["step_time_s"] <= 0.012
    varying = ask(invoke, store, "varies", "--where", "lane = 'fairseq'")
    [seeds] = [row for row in varying if row["field"] == "/seeds/seed"]
    printed = {re.findall(r"\bseed['\"]?[=:] ?(\d+)", text(archive, f"fairseq/{name}"))[0] for name in LOGS["fairseq"]}
    assert set(seeds["some_values"]) == printed
    assert all(row["lane"] == "fairseq" for row in varying)


def test_runs_of_a_log_and_latest(invoke: Invoke, store: Path, archive: Path) -> None:
    [several] = query(invoke, store, "SELECT log_path, count(*) AS n FROM runs GROUP BY ALL HAVING n > 1 AND log_path LIKE 'hf%'")
    assert several["n"] == text(archive, "hf-trainer/nohup-two-runs-v5").count("'train_runtime'")
    dated = [row for row in ask(invoke, store, "latest") if row["run_at"] is not None]
    assert dated and dated == sorted(dated, key=lambda row: row["run_at"], reverse=True)
    first = min(re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", text(archive, LIMITED)))
    limited = query(invoke, store, "SELECT run_at FROM runs WHERE failure_reason = 'time_limit'")[0]["run_at"]
    assert limited.replace("T", " ").startswith(first[:16])


@pytest.mark.parametrize("where", ["nothing = 1", "1; DROP TABLE runs", "true) --"])
def test_a_selection_is_one_condition(invoke: Invoke, store: Path, where: str) -> None:
    assert invoke("store", "ask", store, "latest", "--where", where).code == 2
