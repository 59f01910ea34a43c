import copy
import math
import re
from collections.abc import Mapping
from typing import Any

import pytest

from receipt_cli.render.receipt.metrics import metric_label
from receipt_cli.render.receipt.summary import render_receipt
from receipt_cli.render.terminal.style import Style
from receipt_cli.render.terminal.text import cells


def statistic(window: str, *values: float | None, **more: Any) -> dict[str, Any]:
    names = ("first", "last", "min", "max", "mean", "median")
    base = {
        "id": 1,
        "window": window,
        "scope": None,
        "definition": None,
        "record_count": 90,
        "nonfinite_count": 0,
    }
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
    document["checks"] |= {
        "no_oom": False,
        "zero_exit_code": None,
        "completed": False,
        "throughput_consistent": False,
    }
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
    text = render_receipt(document, series=more.pop("series", SERIES), style=Style(width=width, **more))
    return text.replace("\u202f", " ")


HEALTHY_80 = """\
speedrun · lane 8xh100-d20 · preset d20
  run       started 2026-05-01T10:00:00Z · exit code 0
  log       4.213 MiB · 21 873 lines · sha256 3f9a1c0b2d7e
  grammar   nanochat@v2 (version shown by the log)
  hardware  8 × NVIDIA H100 80GB HBM3, 79.25 GiB each (log:12)
  model     561 M (560 988 160) parameters (log:40)
  parallel  8 ranks · data 8 (log:9)
  code      a9de4b1f00 on main, uncommitted changes (env:GIT_COMMIT)
  software  torch 2.8.0+cu128 · cuda 12.8 (file)

✓ healthy and proven
  ✓ finite_losses    ✓ zero_exit_code
  ✓ has_steps        ✓ no_oom
  ✓ steps_monotonic  ✓ completed
  ✓ mfu_plausible    ? throughput_consistent

  phase                     steps  records           loss  median speed
  ▸ base_train  0–21 399 / 21 400   21 400  11.09 → 2.719  1.10 M tok/s
    mid_train               0–807      808  1.520 → 1.100             –

metrics  of base_train
  metric           unit      first     last   median    min      max  trend
  loss                       11.09    2.719    2.801  2.674    11.09  █▄▂▁▁▁▁▁
  learning rate                  0  3.00e-6  2.90e-4      0  3.00e-4  ▁████▆▃▁
  throughput       M tok/s   0.013     1.10     1.10   1.05     1.11
  MFU              %          0.58     48.5     48.5   46.0     48.9
  step time        ms       39 600      476      476    472      521  █▁▁▁▁▁█▁
  peak memory      GiB       73.65    73.65    73.65  73.65    73.65
  rewards/margins                1    0.020        1  0.020        1
  rates, times and memory: 21 390 steady records; 10 warm-up left out

goodput      91.5 % of 3 h 6 min · eval 5 min 10 s · checkpoint 12.0 s

log records  21 602 matched (97.7 %) · 410 ignored (1.9 %)
             88 unmatched (0.4 %) · 0 undecodable
"""

HEALTHY_120 = """\
speedrun · lane 8xh100-d20 · preset d20
  run       started 2026-05-01T10:00:00Z · exit code 0
  log       4.213 MiB · 21 873 lines · sha256 3f9a1c0b2d7e
  grammar   nanochat@v2 (version shown by the log)
  hardware  8 × NVIDIA H100 80GB HBM3, 79.25 GiB each (log:12)
  model     561 M (560 988 160) parameters (log:40)
  parallel  8 ranks · data 8 (log:9)
  code      a9de4b1f00 on main, uncommitted changes (env:GIT_COMMIT)
  software  torch 2.8.0+cu128 · cuda 12.8 (file)

✓ healthy and proven
  ✓ finite_losses    ✓ zero_exit_code  ✓ has_steps      ✓ no_oom
  ✓ steps_monotonic  ✓ completed       ✓ mfu_plausible  ? throughput_consistent

  phase                     steps  records  restarts           loss  median speed        time
  ▸ base_train  0–21 399 / 21 400   21 400         0  11.09 → 2.719  1.10 M tok/s  2 h 50 min
    mid_train               0–807      808         0  1.520 → 1.100             –           –

metrics  of base_train
  metric           unit      first     last   median     mean    min      max  trend
  loss                       11.09    2.719    2.801    2.910  2.674    11.09  █▄▂▁▁▁▁▁
  learning rate                  0  3.00e-6  2.90e-4  2.10e-4      0  3.00e-4  ▁████▆▃▁
  throughput       M tok/s   0.013     1.10     1.10     1.10   1.05     1.11
  MFU              %          0.58     48.5     48.5     48.5   46.0     48.9
  step time        ms       39 600      476      476      476    472      521  █▁▁▁▁▁█▁
  peak memory      GiB       73.65    73.65    73.65    73.65  73.65    73.65
  rewards/margins                1    0.020        1     0.90  0.020        1
  rates, times and memory: 21 390 steady records; 10 warm-up left out

goodput      91.5 % of 3 h 6 min · eval 5 min 10 s · checkpoint 12.0 s

log records  21 602 matched (97.7 %) · 410 ignored (1.9 %) · 88 unmatched (0.4 %) · 0 undecodable
"""

FAILED_80 = """\
nanochat run
  log       4.213 MiB · 21 873 lines · sha256 3f9a1c0b2d7e
  grammar   nanochat@v2 (version shown by the log)
  model     561 M (560 988 160) parameters

✗ not healthy: memory ran out · cuda_oom at line 14 822
  ✓ finite_losses    ? zero_exit_code
  ✓ has_steps        ✗ no_oom
  ✓ steps_monotonic  ✗ completed
  ✓ mfu_plausible    ✗ throughput_consistent

  phase                   steps  records  restarts           loss  median speed
  base_train  0–14 001 / 21 400   14 002         2  11.09 → 2.719  1.10 M tok/s

metrics  of base_train
  metric           unit      first     last   median    min      max  trend
  loss                       11.09    2.719    2.801  2.674    11.09  █▄▂▁▁▁▁▁
  learning rate                  0  3.00e-6  2.90e-4      0  3.00e-4  ▁████▆▃▁
  throughput       M tok/s   0.013     1.10     1.10   1.05     1.11
    recomputed     M tok/s   0.026     2.20     2.20   2.10     2.22
  MFU              %          0.58     48.5     48.5   46.0     48.9
  step time        ms       39 600      476      476    472      521  █▁▁▁▁▁█▁
  peak memory      GiB       73.65    73.65    73.65  73.65    73.65
  rewards/margins                1    0.020        1  0.020        1
  rates, times and memory: 21 390 steady records; 10 warm-up left out
  ! throughput: the log prints 1.10 M tok/s, its batch size and step time give
    2.20 M tok/s (ratio 0.500)
  ! values that are NaN or infinite: loss 37
  ! restarted 2 times; 340 superseded records are left out

failure  cuda_oom · memory · line 14 822 of the log
  torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3
  has no room
  seen  cuda_out_of_memory line 14 822 · nccl_watchdog ×11 line 14 830–14 842
  the log ended with (12 of the 23 lines kept)
  │ frame 10
  │ frame 11
  │ frame 12
  │ frame 13
  │ frame 14
  │ frame 15
  │ frame 16
  │ frame 17
  │ frame 18
  │ frame 19
  │     loss.backward()
  │ train.py FAILED

log records  21 602 matched (97.7 %) · 410 ignored (1.9 %)
             88 unmatched (0.4 %) · 2 undecodable (<0.1 %)
near-misses  3  almost match a rule: has the format changed?
             line 733  nanochat@v2 train_step  step 00733/21400
problems     1  values in doubt are left out
             no clock
"""

FAILED_60_ASCII = """\
nanochat run
  log       4.213 MiB | 21,873 lines | sha256 3f9a1c0b2d7e
  grammar   nanochat@v2 (version shown by the log)
  model     561 M (560,988,160) parameters

x not healthy: memory ran out | cuda_oom at line 14,822
  + finite_losses    ? zero_exit_code
  + has_steps        x no_oom
  + steps_monotonic  x completed
  + mfu_plausible    x throughput_consistent

  phase                   steps  restarts           loss
  base_train  0-14,001 / 21,400         2  11.09 > 2.719

metrics  of base_train
  metric           unit      first     last   median
  loss                       11.09    2.719    2.801
  learning rate                  0  3.00e-6  2.90e-4
  throughput       M tok/s   0.013     1.10     1.10
    recomputed     M tok/s   0.026     2.20     2.20
  MFU              %          0.58     48.5     48.5
  step time        ms       39,600      476      476
  peak memory      GiB       73.65    73.65    73.65
  rewards/margins                1    0.020        1
  rates, times and memory: 21,390 steady records; 10 warm-up
  left out
  ! throughput: the log prints 1.10 M tok/s, its batch size
    and step time give 2.20 M tok/s (ratio 0.500)
  ! values that are NaN or infinite: loss 37
  ! restarted 2 times; 340 superseded records are left out

failure  cuda_oom | memory | line 14,822 of the log
  torch.OutOfMemoryError: CUDA out of memory. Tried to
  allocate 2.00 GiB. GPU 3 has no room
  seen  cuda_out_of_memory line 14,822
        nccl_watchdog x11 line 14,830-14,842
  the log ended with (12 of the 23 lines kept)
  | frame 10
  | frame 11
  | frame 12
  | frame 13
  | frame 14
  | frame 15
  | frame 16
  | frame 17
  | frame 18
  | frame 19
  |     loss.backward()
  | train.py FAILED

log records  21,602 matched (97.7 %) | 410 ignored (1.9 %)
             88 unmatched (0.4 %) | 2 undecodable (<0.1 %)
near-misses  3  almost match a rule: has the format changed?
             line 733  nanochat@v2 train_step  step 00733/2~
problems     1  values in doubt are left out
             no clock
"""

UNKNOWN_80 = """\
run of an unknown trainer
  grammar   ?@v?

? unknown: no step line was recognised
  ? finite_losses    ? zero_exit_code
  ? has_steps        ? no_oom
  ? steps_monotonic  ? completed
  ? mfu_plausible    ? throughput_consistent

  steps  records  restarts  loss  median speed
      –        –         –     –             –

metrics
  metric           unit   first  last  median  mean  min  max
  loss                        –     –       –     –    –    –
  learning rate               –     –       –     –    –    –
  throughput       tok/s      –     –       –     –    –    –
    recomputed     tok/s      –     –       –     –    –    –
  MFU              %          –     –       –     –    –    –
  step time        s          –     –       –     –    –    –
  peak memory      B          –     –       –     –    –    –
  rewards/margins             –     –       –     –    –    –

failure  ?

log records  ? matched · ? ignored · ? unmatched · ? undecodable
"""

EMPTY = """\
run of an unknown trainer

? unknown: no step line was recognised
  ? finite_losses  ? zero_exit_code  ? has_steps  ? no_oom

log records  ? matched · ? ignored · ? unmatched · ? undecodable
"""


@pytest.mark.parametrize(
    ("document", "width", "more", "want"),
    [
        (HEALTHY, 80, {}, HEALTHY_80),
        (HEALTHY, 120, {}, HEALTHY_120),
        (HEALTHY, 200, {}, HEALTHY_120),  # nothing to gain from more width here
        (failed(), 80, {}, FAILED_80),
        (failed(), 60, {"unicode": False}, FAILED_60_ASCII),
        (nulls(failed()), 80, {"series": None}, UNKNOWN_80),
        ({}, 80, {}, EMPTY),
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
    assert "\x1b[1;31m✗ not healthy: memory ran out\x1b[0m" in painted
    assert "\x1b[33m! values that are NaN or infinite: loss 37\x1b[0m" in painted
    assert re.sub("\x1b\\[[0-9;]*m", "", painted) == shown(failed(), 100)


def verdict(**checks: bool | None) -> str:
    names = {"finite_losses": True, "zero_exit_code": True, "has_steps": True, "no_oom": True}
    lines = shown({"checks": {**names, **checks}}, 120).split("\n")
    end = next(i for i, line in enumerate(lines) if "finite_losses" in line)
    return " | ".join(line.strip() for line in lines[2:end])


@pytest.mark.parametrize(
    ("checks", "want"),
    [
        ({}, "✓ healthy and proven"),
        ({"completed": False}, "✓ healthy and proven"),  # only the four decide
        ({"no_oom": None}, "✓ healthy, not proven | the log does not show whether memory ran out"),
        (
            {"no_oom": None, "zero_exit_code": None, "finite_losses": None},
            "✓ healthy, not proven | the log does not show whether every loss is finite, the exit code or whether memory ran out",
        ),
        ({"has_steps": None}, "? unknown: no step line was recognised"),
        ({"has_steps": False}, "✗ not healthy: no training step was found"),
        (
            {"finite_losses": False, "zero_exit_code": False, "no_oom": None},
            "✗ not healthy: a loss is not finite, the exit code is not zero",
        ),
    ],
)
def test_verdict(checks: dict[str, bool | None], want: str) -> None:
    assert verdict(**checks) == want


@pytest.mark.parametrize(
    ("reason", "want"),
    [
        ("truncated", "✗ truncated: the log stops before its run ends\n"),
        ("child_failed", "✗ not healthy: the run failed · child_failed at line 7\n"),
    ],
)
def test_a_run_that_failed_or_stops_is_not_healthy(reason: str, want: str) -> None:
    checks = dict.fromkeys(("finite_losses", "zero_exit_code", "has_steps", "no_oom"), True)
    assert want in shown({"checks": checks, "failure": {"reason": reason, "line_number": 7}}, 100)


def test_what_explains_a_failure() -> None:
    parties = [{"rank": n, "host": f"node-{n}", "enqueued": 7, "completed": 4} for n in range(8)]
    failure = {
        "reason": "nccl_timeout",
        "line_number": 7,
        "exception": {"frame": {"file": "/src/train.py", "line": 9, "function": "main"}},
        "culprit": {"rank": 2, "host": None, "enqueued": 5, "completed": 4},
        "victims": {"count": 31, "first": parties},
        "retry": {"verdict": "same", "rule": "reason:nccl_timeout"},
        "progress": {"line_number": 20, "silence_s": 1610.0, "stalled": True},
    }
    text = shown({"failure": failure}, 100)
    for line in (
        "raised  /src/train.py:9 in main",
        "first  rank 2 (collective 5 enqueued, 4 completed)",
        "after it  rank 0 on node-0 (collective 7 enqueued, 4 completed)",
        "25 more",
        "retry  run it again as it is  reason:nccl_timeout",
        "stalled  no progress for the last 26 min 50 s since line 20",
    ):
        assert line in text
    assert "node-6" not in text
    assert "stalled" not in shown({"failure": {**failure, "progress": {**failure["progress"], "stalled": False}}}, 100)


@pytest.mark.parametrize(
    ("steps", "want"),
    [
        ({"first": 0, "last": 9, "planned": 10}, "0–9 / 10"),
        ({"first": 0, "last": 9, "planned": None}, "0–9"),
        ({"first": 5, "last": 5, "planned": None}, "5"),
        ({"first": None, "last": None, "planned": 10}, "? / 10"),
        ({"first": None, "last": 9, "planned": None}, "?–9"),
        ({"first": "0", "last": 9.5, "planned": True}, "–"),
    ],
)
def test_steps_of_a_phase(steps: dict[str, Any], want: str) -> None:
    lines = shown({"phases": [{"name": "p", "summary": {"steps": steps}}]}, 100).split("\n")
    row = next(line for line in lines if line.startswith("  p ") and "phase" not in line)
    assert re.split(" {2,}", row.strip())[1] == want


def test_a_tail_shows_what_tells_something_and_both_ends_of_a_long_line() -> None:
    tail = ["", "  ^^^^", "=" * 60, "a" * 50 + " line 17, in forward", "killed", "-" * 9, "  "]
    text = shown({"failure": {"reason": "killed", "message": "killed", "log_tail": tail}}, 60)
    assert text.count("│") == 2
    assert f"│ {'a' * 27}…aaaaaaaa line 17, in forward\n" in text
    assert "(2 of the 7 lines kept)" in text


def test_a_tail_is_bounded_by_the_height() -> None:
    document = {"failure": {"reason": "killed", "log_tail": [f"line {i}" for i in range(50)]}}
    assert [shown(document, 80, height=h).count("│") for h in (6, 16, 24, 100)] == [4, 8, 12, 12]


def test_many_phases_metrics_and_others_are_bounded_and_the_primary_phase_is_kept() -> None:
    summaries = [{"phase": f"phase {i}", "steps": {"record_count": i}} for i in range(40)]
    primary = {
        "phase": "phase 39",
        "steps": {"record_count": 39},
        "metrics": {f"m{i}": {} for i in range(100)},
        "other_metrics": {f"o{i}": {} for i in range(100)},
    }
    phases = [{"name": s["phase"], "summary": s} for s in [*summaries[:-1], primary]]
    text = shown({"summary": primary, "phases": phases}, 100)
    assert "▸ phase 39" in text and "… 28 more phases" in text
    assert "… 60 more metrics" in text and "… 92 more that the registry does not know" in text
    assert len(text.split("\n")) < 80


def test_a_series_that_is_partly_not_finite_says_so() -> None:
    summary = {"metrics": {"loss": statistic("all", 1.0, 9.0, 1.0, 9.0, 5.0, 5.0, nonfinite_count=1)}}
    text = shown({"summary": summary}, 100, series={"loss": [1.0, 9.0, math.nan]})
    assert "▁█×" in text


def test_no_column_for_trends_that_nobody_has() -> None:
    summary = {"metrics": {"loss": statistic("all", *[1.0] * 6)}}
    for series in (None, {}, {"loss": [1.0]}, {"other": [1.0, 2.0]}, {"loss": [math.nan, math.nan]}):
        assert "trend" not in shown({"summary": summary}, 100, series=series)
    assert "trend" in shown({"summary": summary}, 100, series={"loss": [1.0, 2.0]})


def test_the_scope_is_shown_where_the_name_does_not_say_it() -> None:
    values = [1.0] * 6
    metrics = {
        "tokens_per_s": statistic("steady", *values, scope="rank"),
        "mfu_ratio": statistic("steady", *values, scope="global"),
        "tokens_per_s_per_device": statistic("steady", *values, scope="device"),
        "peak_memory_bytes": statistic("steady", *values, scope="device"),
        "step_time_s": statistic("steady", *values, scope="device"),
    }
    text = shown({"summary": {"metrics": metrics}}, 100)
    labels = [re.split(" {2,}", line.strip())[0] for line in text.split("\n") if "1.00" in line or "100" in line or " 1 " in line]
    assert labels == ["throughput (rank)", "MFU", "throughput/device", "peak memory", "step time (device)"]


@pytest.mark.parametrize(
    ("metric", "want"),
    [
        ("loss", "loss"),
        ("step_time_s", "step time"),
        ("peak_memory_allocated_bytes", "peak memory allocated"),
        ("mfu_ratio", "MFU"),
        ("tokens_per_s_per_device", "throughput/device"),
        ("eval_samples_per_s", "eval samples"),
        ("skipped_step_count", "skipped steps"),
        ("num_zeros_count", "num zeros"),
        ("_s", "s"),
    ],
)
def test_metric_label(metric: str, want: str) -> None:
    assert metric_label(metric).strip() == want


def test_a_long_name_of_a_check_does_not_crowd_out_the_others() -> None:
    text = shown({"checks": {"x" * 200: False}}, 80)
    assert f"\n  ✗ {'x' * 31}…\n" in text
    assert f"\n  ? finite_losses{' ' * 21}? zero_exit_code  ? has_steps  ? no_oom\n" in text
