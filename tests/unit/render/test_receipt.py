import copy
import math
import re
from collections.abc import Mapping
from typing import Any

import pytest
from rich.cells import cell_len as cells

from receipt_cli.render.receipt import render_receipt
from receipt_cli.render.style import Style


def statistic(window: str, *values: float | None, **more: Any) -> dict[str, Any]:
    names = ("first", "last", "min", "max", "mean", "median")
    base = {"id": 1, "window": window, "scope": None, "definition": None, "record_count": 90, "nonfinite_count": 0}
    return {**base, **dict(zip(names, values, strict=True)), **more}


METRICS = {
    "loss": statistic("all", 11.090355, 2.719005, 2.673661, 11.090355, 2.91, 2.8013),
    "learning_rate": statistic("all", 0.0, 3e-6, 0.0, 3e-4, 2.1e-4, 2.9e-4),
    "tokens_per_s": statistic("steady", 13239.0, 1101234.0, 1050000.0, 1110000.0, 1.099e6, 1.1e6),
    "mfu_ratio": statistic("steady", 0.0058, 0.4851, 0.46, 0.489, 0.4848, 0.485),
    "step_time_s": statistic("steady", 39.6, 0.476, 0.4721, 0.5213, 0.4764, 0.47602),
    "peak_memory_bytes": statistic("steady", *[79081029632.0] * 6),
}
SUMMARY = {
    "phase": "base_train",
    "steps": {"first": 0, "last": 21399, "planned": 21400, "record_count": 21400,
              "restart_count": 0, "superseded_count": 0},
    "steady_state": {"record_count": 21390, "excluded_warmup": 10, "excluded_implausible": 0},
    "training_time_s": 10223.4,
    "parameter_count": 560988160,
    "metrics": METRICS,
    "other_metrics": {"rewards/margins": statistic("all", 1.0, 0.02, 0.02, 1.0, 0.9, 1.0)},
    "derived": {},
    "consistency": [],
}  # fmt: skip
SHORT = {
    **SUMMARY,
    "phase": "mid_train",
    "steps": {**SUMMARY["steps"], "last": 807, "planned": None, "record_count": 808},  # type: ignore[dict-item]
    "training_time_s": None,
    "metrics": {"loss": statistic("all", 1.52, 1.1, 1.1, 1.52, 1.2, 1.2)},
}
HEADER = {
    "git": {"commit": "a9de4b1f00c0ffee", "branch": "main", "dirty": True, "message": "x"},
    "software": {"python": None, "platform": None, "torch": "2.8.0+cu128", "cuda": "12.8",
                 "trainer": {"name": "nanochat", "version": None}, "packages": None},
    "hardware": {
        "accelerators": [{"name": "NVIDIA H100 80GB HBM3", "count": 8, "memory_bytes": 85098364928}]
    },
    "parallelism": {"world_size": 8, "data": 8, "tensor": None},
    "model": {"architecture": None, "parameter_count": 560988160},
    "sources": {"/git": "env:GIT_COMMIT", "/hardware/accelerators/0/name": "log:12", "/software/cuda": "file",
                "/parallelism/world_size": "log:9", "/parallelism/data": "log:9",
                "/model/parameter_count": "log:40"},
}  # fmt: skip
HEALTHY: dict[str, Any] = {
    "schema_version": "receipt/1.0",
    "run": {"name": "speedrun", "lane": "8xh100-d20", "preset": "d20",
            "started_at": "2026-05-01T10:00:00Z", "finished_at": None, "exit_code": 0},
    "header": HEADER,
    "summary": SUMMARY,
    "phases": [{"name": "base_train", "summary": SUMMARY}, {"name": "mid_train", "summary": SHORT}],
    "checks": {"finite_losses": True, "zero_exit_code": True, "has_steps": True, "no_oom": True,
               "steps_monotonic": True, "completed": True, "mfu_plausible": True, "throughput_consistent": None},
    "failure": None,
    "goodput": {"goodput_ratio": 0.9147, "wall_time_s": 11177.0, "step_time_s": 10223.4,
                "badput_s": {"checkpoint": 12.0, "eval": 310.0, "data_loading": None, "wasted_progress": 0.0},
                "evidence": "log_timestamps"},
    "attachments": [],
    "derivation": {
        "grammars": [{"id": "nanochat", "version": 2, "sha256": "f" * 64, "chosen_by": "evidence"}],
        "log": {"sha256": "3f9a1c0b2d7e" + "0" * 52, "size_bytes": 4417520, "line_count": 21873},
        "lines": {"matched": 21602, "ignored": 410, "unmatched": 88, "undecodable": 0},
        "near_misses": {"count": 0, "first": []},
        "problems": {"count": 0, "first": []},
    },
}  # fmt: skip
SERIES = {
    "loss": [11.0, 6.0, 4.0, 3.0, 2.9, 2.8, 2.75, 2.7],
    "learning_rate": [0.0, 3e-4, 3e-4, 3e-4, 3e-4, 2e-4, 1e-4, 3e-6],
    "step_time_s": [39.6, 0.476, 0.477, 0.475, 0.476, 0.476, 0.52, 0.476],
}


def failed() -> dict[str, Any]:
    document = copy.deepcopy(HEALTHY)
    document["run"] = dict.fromkeys(HEALTHY["run"])
    document["header"] = {"software": {"trainer": {"name": "nanochat", "version": None}}}
    document["checks"] |= {"no_oom": False, "zero_exit_code": None, "completed": False, "throughput_consistent": False}
    summary = document["summary"]
    summary["steps"] |= {"last": 14001, "record_count": 14002, "restart_count": 2, "superseded_count": 340}
    derived = statistic("steady", 26478.0, 2202468.0, 2100000.0, 2220000.0, 2.198e6, 2.2e6)
    summary["derived"] = {"tokens_per_s": derived}
    summary["metrics"]["loss"]["nonfinite_count"] = 37
    summary["consistency"] = [
        {"metric": "tokens_per_s", "reported": 1.1e6, "derived": 2.2e6, "ratio": 0.5, "consistent": False},
        {"metric": "mfu_ratio", "reported": 0.485, "derived": 0.485, "ratio": 1.0, "consistent": True},
    ]
    document["phases"] = [{"name": "base_train", "summary": summary}]
    document["failure"] = {
        "reason": "cuda_oom",
        "category": "memory",
        "line_number": 14822,
        "message": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has no room",
        "log_tail": [*(f"frame {i}" for i in range(20)), "\tloss.backward()", "train.py FAILED", ""],
        "markers": [
            {"id": "cuda_out_of_memory", "count": 1, "first_line": 14822, "last_line": 14822},
            {"id": "nccl_watchdog", "count": 11, "first_line": 14830, "last_line": 14842},
        ],
    }
    document["goodput"] = None
    near = {"grammar": "nanochat@v2", "rule": "train_step", "line_number": 733, "excerpt": "step 00733/21400"}
    document["derivation"]["near_misses"] = {"count": 3, "first": [near]}
    problem = {"kind": "unreadable_value", "line_number": None, "detail": "no clock", "excerpt": None}
    document["derivation"]["problems"] = {"count": 1, "first": [problem]}
    document["derivation"]["lines"]["undecodable"] = 2
    return document


def nulls(value: Any) -> Any:
    """The same document with every fact unknown."""
    if isinstance(value, Mapping):
        return {key: nulls(item) for key, item in value.items()}
    return [nulls(item) for item in value] if isinstance(value, list) else None


def shown(document: Mapping[str, Any], width: int, **more: Any) -> str:
    """Return all below the card."""
    series = more.pop("series", SERIES)
    text = render_receipt(document, series=series, style=Style(width=width, **more), full=True)
    return text.removeprefix(render_receipt(document, style=Style(width=width, **more))).lstrip("\n")


def shown_metrics(text: str) -> list[str]:
    lines = text.split("\n")
    at = next(number for number, line in enumerate(lines) if line.startswith("metrics"))
    end = next((number for number, line in enumerate(lines) if number > at and not line), len(lines))
    return lines[at + 1 : end]


HEALTHY_80 = """\
progress
  records      21400

  phase                 steps  records           loss             time
  ────────────────────────────────────────────────────────────────────
  base_train  0–21399 / 21400    21400   11.09 → 2.72  2 h 50 min 23 s
  mid_train             0–807      808  1.520 → 1.100                –

metrics  of base_train
  metric           unit     first     last   median    min      max  trend
  ───────────────────────────────────────────────────────────────────────────
  loss                      11.09    2.719    2.801  2.674    11.09  █▄▂▁▁▁▁▁
  learning rate                 0  3.00e-6  2.90e-4      0  3.00e-4  ▁████▆▃▁
  throughput       M tok/s  0.013     1.10     1.10   1.05     1.11
  MFU              %         0.58     48.5     48.5   46.0     48.9
  step time        ms       39600      476      476    472      521  █▁▁▁▁▁█▁
  rewards/margins               1    0.020        1  0.020        1
  constant  peak memory 73.65 GiB
  rates, times and memory: 21390 steady records; 10 warm-up left out

time
  wall         3 h 6 min 17 s · 91.5 % in steps · by the log's timestamps
  lost to      eval 5 min 10 s · checkpoint 12 s
  not known    data loading

run
  name         speedrun · lane 8xh100-d20 · preset d20
  job          started 2026-05-01T10:00:00Z · exit code 0
  hardware     8 × NVIDIA H100 80GB HBM3, 79.25 GiB (log:12)
  model        561 M parameters (560988160) (log:40)
  parallel     ranks 8 · data 8 (log:9)
  code         a9de4b1f00 on main, uncommitted changes (env:GIT_COMMIT)
  software     torch 2.8.0+cu128 · cuda 12.8 (file)
  grammar      nanochat@v2
  log          4.213 MiB · 21873 lines · sha256 3f9a1c0b2d7e

checks
  unknown      throughput_consistent
  passed       finite_losses · zero_exit_code · has_steps · no_oom ·
               steps_monotonic · completed · mfu_plausible

reading
  records      21602 read · 410 known and without figures · 88 not read
"""

FAILED_60_ASCII = """\
error
  cause        GPU out of memory | log:14822
  says         torch.OutOfMemoryError: CUDA out of memory.
               Tried to allocate 2.00 GiB. GPU 3 has no room
  lines        cuda out of memory x1, first log:14822 | nccl
               watchdog x11, first log:14830

progress
  records      14002 | 2 restarts | 340 records repeated

metrics  of base_train
  metric                 unit     first     last   median
  -------------------------------------------------------
  loss                            11.09    2.719    2.801
  learning rate                       0  3.00e-6  2.90e-4
  throughput             M tok/s  0.013     1.10     1.10
  throughput recomputed  M tok/s  0.026     2.20     2.20
  MFU                    %         0.58     48.5     48.5
  step time              ms       39600      476      476
  rewards/margins                     1    0.020        1
  constant  peak memory 73.65 GiB
  rates, times and memory: 21390 steady records; 10 warm-up
  left out

run
  model        561 M parameters (560988160)
  grammar      nanochat@v2
  log          4.213 MiB | 21873 lines | sha256 3f9a1c0b2d7e

checks
  failed       no_oom | completed | throughput_consistent
  unknown      zero_exit_code
  passed       finite_losses | has_steps | steps_monotonic |
               mfu_plausible

reading
  records      21602 read | 410 known and without figures |
               88 not read
  doubt        a value is not a number
  doubt        throughput as printed contradicts batch size
               and step time
  doubt        2 lines with bytes that are no text
  doubt        3 lines almost read
  problem      no clock
  almost       log:733 | nanochat@v2 train_step | step
               00733/21400
"""


UNKNOWN = """\
checks
  unknown      finite_losses · zero_exit_code · has_steps · no_oom ·
               steps_monotonic · completed · mfu_plausible ·
               throughput_consistent

reading
  doubt        problem
"""


@pytest.mark.parametrize(
    ("document", "width", "more", "want"),
    [
        (HEALTHY, 80, {}, HEALTHY_80),
        (failed(), 60, {"unicode": False}, FAILED_60_ASCII),
        (nulls(failed()), 80, {"series": None}, UNKNOWN),
        ({}, 80, {}, ""),
    ],
)
def test_receipt(document: Mapping[str, Any], width: int, more: dict[str, Any], want: str) -> None:
    assert shown(document, width, **more) == want


@pytest.mark.parametrize("width", [40, 60, 79, 80, 81, 100, 120, 200])
@pytest.mark.parametrize("document", [HEALTHY, failed()], ids=["healthy", "failed"])
def test_no_line_is_wider_than_the_terminal_or_ends_in_blanks(document: Mapping[str, Any], width: int) -> None:
    for line in shown(document, width).split("\n"):
        assert cells(line) <= width
        assert line == line.rstrip()


def test_colour_adds_nothing_but_colour() -> None:
    painted = shown(failed(), 100, color=True)
    assert "\x1b[1merror\x1b[0m" in painted
    assert "\x1b[1;31mno_oom\x1b[0m" in painted
    assert re.sub("\x1b\\[[0-9;]*m", "", painted) == shown(failed(), 100)


def test_what_explains_a_failure() -> None:
    parties = [{"rank": n, "host": f"node-{n}", "enqueued": 7, "completed": 4} for n in range(8)]
    failure = {
        "reason": "nccl_timeout",
        "line_number": 7,
        "exception": {
            "type": "DistBackendError",
            "message": "no answer",
            "frame": {"file": "/a/t.py", "line": 9, "function": "f"},
        },
        "culprit": {"rank": 2, "host": None, "enqueued": 5, "completed": 4},
        "victims": {"count": 31, "first": parties},
        "progress": {"line_number": 20, "silence_s": 1610.0, "stalled": True},
    }
    text = " ".join(shown({"failure": failure}, 200).split())
    for words in (
        "cause NCCL timeout · log:7",
        "says DistBackendError: no answer",
        "frame /a/t.py:9 in f",
        "first rank 2 (collective 5 enqueued, 4 completed)",
        "after it rank 0 on node-0 (collective 7 enqueued, 4 completed)",
        "25 more",
        "stalled no progress for the last 26 min 50 s, since log:20",
    ):
        assert words in text
    assert "node-6" not in text
    assert "stalled" not in shown({"failure": {**failure, "progress": {**failure["progress"], "stalled": False}}}, 100)


def test_the_lines_up_to_the_cause_are_shown_and_no_more() -> None:
    tail = [*(f"step {number}" for number in range(30)), "KeyError: 'x'", "wandb: bye"]
    failure = {"reason": "traceback", "message": "KeyError: 'x'", "log_tail": tail}
    lines = [line for line in shown({"failure": failure}, 80).split("\n") if "│" in line]
    assert lines == [f"  │ {line}" for line in tail[19:31]]
    assert "│" not in shown({"failure": {**failure, "message": "elsewhere"}}, 80)


def test_many_phases_metrics_and_others_are_bounded() -> None:
    primary = {
        "phase": "phase 39",
        "metrics": {f"m{i}": statistic("all", 1.0, *[2.0] * 5) for i in range(100)},
        "other_metrics": {f"o{i}": statistic("all", 1.0, *[2.0] * 5) for i in range(100)},
    }
    phases = [{"name": f"phase {i}", "summary": {}} for i in range(40)]
    text = shown({"summary": primary, "phases": phases}, 100)
    assert "phase 11" in text and "… 28 more phases" in text
    assert "… 60 more metrics" in text and "… 94 more that the registry does not know" in text


def test_what_never_changes_has_a_line_and_no_row() -> None:
    metrics = {
        "loss": statistic("all", 3.0, 2.0, 2.0, 3.0, 2.5, 2.5),
        "loss_scale": statistic("all", *[65536.0] * 6),
        "samples_per_s": statistic("steady", *[512.0] * 6, record_count=1),
    }
    lines = shown_metrics(shown({"summary": {"metrics": metrics}}, 80))
    assert [line.split()[0] for line in lines] == ["metric", "─" * len(lines[1].strip()), "loss", "constant", "once"]
    assert lines[3:] == ["  constant  loss scale 65536", "  once      samples 512 samples/s"]


def test_one_known_value_of_several_is_no_constant() -> None:
    """The values beside it are withheld: any of them may be another."""
    accuracy = {**statistic("all", *[0.5822] * 6), **dict.fromkeys(("last", "min", "max", "mean", "median"))}
    text = shown({"summary": {"metrics": {"val_accuracy": accuracy}}}, 80)
    assert "0.5822" in text and "constant" not in text


def test_a_series_that_is_partly_not_finite_says_so() -> None:
    summary = {"metrics": {"loss": statistic("all", 1.0, 9.0, 1.0, 9.0, 5.0, 5.0, nonfinite_count=1)}}
    assert "▁█×" in shown({"summary": summary}, 100, series={"loss": [1.0, 9.0, math.nan]})


def test_the_scope_is_shown_where_the_name_does_not_say_it() -> None:
    values = [1.0, *[2.0] * 5]
    metrics = {
        "tokens_per_s": statistic("steady", *values, scope="rank"),
        "mfu_ratio": statistic("steady", *values, scope="global"),
        "tokens_per_s_per_device": statistic("steady", *values, scope="device"),
        "peak_memory_bytes": statistic("steady", *values, scope="device"),
        "step_time_s": statistic("steady", *values, scope="device"),
    }
    lines = shown_metrics(shown({"summary": {"metrics": metrics}}, 100))[2:]
    labels = [re.split(" {2,}", line.strip())[0] for line in lines]
    assert labels == ["throughput (rank)", "MFU", "throughput/device", "peak memory", "step time (device)"]


STORY = {
    "rule": "memory/1",
    "reading": "fragmentation",
    "figures": {"peak_allocated_first_bytes": 30 * 2.0**30, "peak_allocated_last_bytes": 31 * 2.0**30,
                "peak_allocated_max_bytes": 40 * 2.0**30, "alloc_retry_count": 3.0},
    "growing": None,
}  # fmt: skip


def test_memory_is_told_if_its_reading_is_known_and_figures_always() -> None:
    text = shown({"summary": {"memory": STORY}}, 100)
    assert "fragmentation  the cache cannot use again what it holds" in text
    assert "allocated    peak 30 GiB → 31 GiB, 40 GiB at most" in text
    assert "unknown" not in shown({"summary": {"memory": {**STORY, "reading": "unknown"}}}, 100)
    assert shown({"summary": {"memory": {"reading": "unknown", "figures": {}}, "bottleneck": {"verdict": "unknown"}}}, 100) == ""
