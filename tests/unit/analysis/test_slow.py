"""``slow/1`` in the formats of trainers, each against what its lines say."""

from pathlib import Path
from typing import Any

import pytest

from receipt_cli.receipts.production import Request, produce
from receipt_cli.render.receipt import render_receipt
from receipt_cli.render.style import Style
from tests.property.test_slow_steps import log, slow_steps

LOGS = Path(__file__).resolve().parents[3] / "fixtures" / "logs"


def nanogpt(slow: dict[int, float], evals: tuple[int, ...] = (), saves: tuple[int, ...] = ()) -> str:
    """A log of nanoGPT, whose step time includes the evaluation and the checkpoint before it."""
    lines = []
    for n in range(60):
        if n in evals:
            lines.append(f"step {n}: train loss 2.5000, val loss 2.6000")
        if n in saves:
            lines.append("saving checkpoint to out-char")
        lines.append(f"iter {n}: loss {4 - n / 50:.4f}, time {100 + n % 3 + slow.get(n, 0):.2f}ms, mfu 10.00%")
    return "\n".join(lines) + "\n"


def megatron(slow: dict[int, tuple[float, float]]) -> str:
    """Megatron-LM's lines with timers: step → ms more in its forward pass, and in the fetching of the batch inside it."""
    lines = []
    for n in range(1, 41):
        forward, fetch = slow.get(n, (0.0, 0.0))
        lines.append(
            f" iteration {n * 10:8d}/    1000 | consumed samples: {n * 40:12d} | elapsed time per iteration (ms): "
            f"{1000 + n % 3 + forward:.1f} | learning rate: 1.500E-04 | global batch size:     4 | lm loss: {9 - n / 50:.6E} | "
            "loss scale: 1.0 | grad norm: 2.000 | number of skipped iterations:   0 | number of nan iterations:   0 |"
        )
        lines.append(
            f"time (ms) | forward-compute: {300 + n % 3 + forward:.2f} | backward-compute: 600.00 | "
            f"backward-params-all-reduce: 10.00 | optimizer: 50.00 | batch-generator: {2 + fetch:.2f}"
        )
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("text", "causes", "verdict"),
    [
        (nanogpt({20: 900, 40: 900}, evals=(20, 40)), {"evaluation": 2}, "evaluation"),
        (nanogpt({20: 900, 40: 900}, saves=(20, 40)), {"checkpoint": 2}, "checkpoint"),
        (nanogpt({20: 900, 40: 900}, evals=(20, 40), saves=(20, 40)), {}, None),  # which of the two?
        (nanogpt({20: 900, 30: 900, 40: 900}, evals=(20, 30, 40), saves=(30,)), {"evaluation": 2}, "evaluation"),
        (nanogpt({20: 900}, evals=(20,)), {}, None),  # once is chance
        (nanogpt({20: 900, 40: 900}, evals=(10, 20, 30, 40)), {}, None),  # half of the evaluations cost nothing
        (nanogpt({20: 900, 40: 900, 25: 900, 31: 900, 47: 900}, evals=(20, 40)), {}, None),  # so are other steps
        (megatron({20: (800, 0), 30: (700, 0)}), {"compute": 2}, "compute"),
        (megatron({20: (800, 800), 30: (700, 700)}), {"data": 2}, "data"),  # the batch is fetched in the forward pass
        (megatron({20: (800, 200), 30: (700, 100)}), {"compute": 2}, "compute"),
        (log({30: ("data_time_s", 2.0), 40: ("communication_time_s", 1.0)}), {"data": 1, "communication": 1}, "data"),
        (
            log({30: ("data_time_s", 2.0), 40: ("communication_time_s", 2.0), 50: ("compute_time_s", 2.0)}),
            {"data": 1, "communication": 1, "compute": 1},
            None,
        ),
    ],
)
def test_the_cause_is_what_the_lines_prove(text: str, causes: dict[str, int], verdict: str | None, tmp_path: Path) -> None:
    found = slow_steps(text, tmp_path)
    assert found is not None
    assert ({name: share["step_count"] for name, share in found["causes"].items()}, found["verdict"]) == (causes, verdict)


def test_a_slow_step_has_its_line_its_times_and_those_of_the_part(tmp_path: Path) -> None:
    found = slow_steps(log({30: ("data_time_s", 2.0)}), tmp_path)
    assert found is not None
    [one] = found["longest"]
    assert one == {
        "step": 30, "line_number": 31, "rank": None, "step_time_s": 2.41, "usual_s": 0.413, "cause": "data",
        "part_s": 2.02, "usual_part_s": 0.021, "slow_ranks": None,
    }  # fmt: skip
    assert found["excess_s"] == pytest.approx(1.997)


def test_the_ranks_that_were_slow_are_named(tmp_path: Path) -> None:
    """Rank 2 waits for its data in step 30, all ranks in step 40."""
    slow: list[dict[int, tuple[str, float]]] = [{40: ("data_time_s", 1.0)} for _ in range(4)]
    slow[2][30] = ("data_time_s", 2.0)
    slow[0][30] = ("communication_time_s", 2.0)
    ranks = [log(steps, rank=rank).splitlines() for rank, steps in enumerate(slow)]
    text = "".join(f"{line}\n" for lines in zip(*ranks, strict=True) for line in lines)
    found = slow_steps(text, tmp_path)
    assert found is not None
    assert {one["step"]: (one["cause"], one["slow_ranks"]) for one in found["longest"]} == {
        30: ("communication", [{"rank": 0, "cause": "communication"}, {"rank": 2, "cause": "data"}]),
        40: ("data", [{"rank": rank, "cause": "data"} for rank in range(4)]),
    }


@pytest.mark.parametrize(
    ("name", "steps", "causes"),
    [
        ("mmcv/epochs-cpu.log", [160, 210, 260], {"data": 3}),  # the first records of epochs
        ("nanogpt/char-nan.log", [60, 80, 100], {"evaluation": 3}),
        ("timm/complete-2024-ema.log", [75], {}),
    ],
)
def test_logs_of_trainers(name: str, steps: list[int], causes: dict[str, int]) -> None:
    found = produce(Request(path=str(LOGS / name))).document["summary"]["slow_steps"]
    assert sorted(one["step"] for one in found["longest"]) == steps
    assert {cause: share["step_count"] for cause, share in found["causes"].items()} == causes


def test_a_page_names_the_cause_and_what_to_look_at(tmp_path: Path) -> None:
    def shown(text: str) -> list[str]:
        (tmp_path / "run.log").write_text(text)
        document: Any = produce(Request(path=str(tmp_path / "run.log"))).document
        page = render_receipt(document, style=Style(color=False, width=140), full=True).splitlines()
        names = ("slow steps", "the slowest", "look at")
        return [" ".join(line.split()) for line in page if line.strip().startswith(names)]

    assert shown(log({30: ("data_time_s", 2.0), 40: ("data_time_s", 1.0)})) == [
        "slow steps 2, 3.00 s beyond the usual · 2 by data",
        "the slowest step 30 took 2.41 s, usually 413 ms · data 2.02 s, usually 21.0 ms · log:31",
        "look at the loader of these steps: its workers, the storage, what the samples are made of",
    ]
    assert shown(log({30: ("data_time_s", 2.0)}, parts=())) == [
        "slow steps 1, 2.00 s beyond the usual · cause not printed",
        "the slowest step 30 took 2.41 s, usually 413 ms · log:31",
        "look at print the time of the parts of a step: data, communication, computing",
    ]
    assert shown(log({})) == []
