"""What a phase achieved: realised throughput, identities of its figures, the spread of its step times, its checkpoints."""

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest

from receipt_cli.documents.validate import validate_document
from receipt_cli.numeric.statistics import quantiles
from tests.tools.logs import receipt_of

START = datetime(2026, 3, 8, 11, 0, 0)


def megatron(gaps: list[float], *, printed_ms: float = 10_000.0, lines: dict[int, str] | None = None) -> str:
    """Return a log in Megatron's format of 128 samples a step: ``gaps`` are the seconds between its records."""
    at, out = START, list[str]()
    for number, gap in enumerate([0.0, *gaps], 1):
        at += timedelta(seconds=gap)
        out.append(
            f" [{at:%Y-%m-%d %H:%M:%S}] iteration {number:8}/     500 | consumed samples: {number * 128:12} | "
            f"elapsed time per iteration (ms): {printed_ms:.1f} | learning rate: 2.883286E-04 | global batch size:   128 | "
            f"lm loss: {8 - number / 100:.6E} | loss scale: 1.0 | grad norm: 0.986 | "
            "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        )
        out.append((lines or {}).get(number, ""))
    return "".join(out)


def forgather(gaps: list[float], rate: float) -> str:
    """Return a table in Forgather's format: 16,384 tokens a step, a row every 100 steps, ``gaps`` seconds apart."""
    names = ("step", "epoch", "loss", "grad", "maxg", "lr", "tokens", "total_tok", "tok/s", "mfu", "peak_mem")
    at, out = START, [f"{START:%Y-%m-%d %H:%M:%S} " + " ".join(f"{name:>11}" for name in names) + "\n"]
    for number, gap in enumerate([0.0, *gaps], 1):
        at += timedelta(seconds=gap)
        cells = (number * 100, f"{number / 100:.5f}", f"{3 - number / 50:.5f}", "0.6434", "1.3072", "2.00e-04", "1,638,400")
        cells += (f"{number * 1.6384:.3f}M", f"{rate:,.0f}", "27.6%", "2.437 GiB")
        out.append(f"{at:%Y-%m-%d %H:%M:%S} " + " ".join(f"{cell:>11}" for cell in cells) + "\n")
    return "".join(out)


def torchspec(rate: float, arrived: float, wait: float, pool: int) -> str:
    """Return bars of TorchSpec that print no step time of their own."""
    bar = (
        "Training:  10%|#         | {i}/50 [00:12<07:15,  {rate:.2f}s/step, loss={loss:.3f}, acc=0.312, acc_len=1.03, "
        "thru={arrived:.1f}, I=25.0, T=12.3, wait={wait:.1f}s, pool={pool}, epoch=1/3]\n"
    )
    return "".join(bar.format(i=i, rate=rate, loss=2 / i, arrived=arrived, wait=wait, pool=pool) for i in range(1, 51))


def identities(document: dict[str, Any]) -> dict[str, Any]:
    assert not [finding for finding in validate_document(document) if finding.severity == "error"]
    return {one["name"]: one for one in document["summary"]["identities"]}


def test_realised_throughput_has_the_silence_in_its_divisor() -> None:
    document = receipt_of(megatron([10.0] * 30 + [310.0] + [10.0] * 29))
    found = document["summary"]["realised"]
    assert (found["duration_s"], found["step_count"], found["samples"]) == (900.0, 60, 60 * 128.0)
    assert found["samples_per_s"] == 60 * 128 / 900
    assert found["tokens"] is None and found["tokens_per_s"] is None


@pytest.mark.parametrize(("pause", "holds"), [(12.0, True), (600.0, False)])
def test_the_printed_rate_is_realised_unless_the_steps_waited(pause: float, holds: bool) -> None:
    log = forgather([12.0] * 20 + [pause] + [12.0] * 20, 1638400 / 12)
    one = identities(receipt_of(log))["realised_tokens_per_s"]
    assert one["holds"] is holds
    assert one["left"] == round(1638400 / 12) and one["right"] == pytest.approx(41 * 1638400 / (40 * 12 + pause), rel=1e-3)


def test_stamps_of_whole_seconds_do_not_show_a_short_run() -> None:
    assert receipt_of(megatron([1.0] * 19))["summary"]["realised"] is None
    assert receipt_of(megatron([1.0] * 20))["summary"]["realised"]["duration_s"] == 20.0


def nanochat(accumulation: int, dt_ms: float = 500.0, *, total_of: float = 1.0) -> str:
    head = (
        "Tokens / micro-batch / rank: 4 x 4096 = 16,384\nTokens / micro-batch: 131,072\n"
        "Total batch size 262,144 => gradient accumulation steps: 2\nNumber of parameters: 873,462,784\n"
    )
    rate = 262_144 / accumulation / dt_ms * 1000
    steps = "".join(
        f"step {i:05d}/00400 ({i / 4:.2f}%) | loss: {9 - i / 100:.4f} | lrm: 1.00 | dt: {dt_ms:.2f}ms | tok/sec: {rate:,.0f} | "
        f"mfu: 18.0 | total time: {max(0, i - 10) * dt_ms / 60000 * total_of:.2f}m\n"
        for i in range(400)
    )
    return head + steps


@pytest.mark.parametrize(("accumulation", "holds"), [(1, True), (2, False)])
def test_tokens_of_a_step(accumulation: int, holds: bool) -> None:
    one = identities(receipt_of(nanochat(accumulation)))["tokens_of_a_step"]
    assert (one["right"], one["holds"]) == (262_144.0, holds)


@pytest.mark.parametrize(("total_of", "holds"), [(1.0, True), (0.5, False)])
def test_step_times_add_up_to_the_printed_total(total_of: float, holds: bool) -> None:
    assert identities(receipt_of(nanochat(1, total_of=total_of)))["sum_of_step_times"]["holds"] is holds


def test_the_tail_of_the_step_times() -> None:
    found = receipt_of(megatron([10.0] * 90 + [60.0] + [10.0] * 9))["summary"]["step_times"]
    assert (found["source"], found["record_count"], found["p50_s"], found["p99_s"]) == ("printed", 91, 10.0, 10.0)
    stamped = forgather([12.0] * 30 + [120.0] + [12.0] * 9, 1e5)
    found = receipt_of(stamped)["summary"]["step_times"]
    assert (found["source"], found["record_count"], found["p50_s"], found["p90_s"]) == ("timestamps", 40, 0.12, 0.12)
    assert found["p99_s"] > 0.6 and found["mad_s"] == 0.0


def test_records_without_a_step_have_no_step_times() -> None:
    """Ten batches lie between two of these records."""
    places = [(epoch, batch) for epoch in (1, 2, 3) for batch in range(0, 50, 10)]
    log = [f"2026-05-01 10:{n:02d}:00 INFO Epoch {e} | iter {b} | loss {3 - n / 9:.4f}\n" for n, (e, b) in enumerate(places)]
    summary = receipt_of("".join(log))["summary"]
    assert (summary["steps"]["record_count"], summary["step_times"]) == (15, None)


def test_quantiles_are_those_of_numpy() -> None:
    values = [float(i * 7919 % 1009) for i in range(2000)]
    shares = (0.0, 0.05, 0.5, 0.99, 1.0)
    assert quantiles(values, shares) == pytest.approx(np.quantile(values, shares).tolist(), abs=1e-9)
    assert quantiles(np.array(values * 20), shares) == quantiles(values * 20, shares)
    assert quantiles([3.0], shares) == [3.0] * 5


def test_checkpoints() -> None:
    saved = "  successfully saved checkpoint at iteration {:7d} to out\n".format
    log = megatron([10.0] * 10 + [40.0] + [10.0] * 9, lines={5: saved(5), 11: saved(11)})
    found = receipt_of(log)["summary"]["checkpoints"]
    assert (found["count"], found["last_step"], found["unsaved_step_count"]) == (2, 11, 10)
    assert [one["step"] for one in found["latest"]] == [5, 11]
    assert found["latest"][1]["duration_s"] == 30.0
    assert found["last_line"] == found["latest"][1]["line_number"]


def test_lines_about_one_checkpoint_count_once() -> None:
    saved = "".join(f"[rank{rank}]:   successfully saved checkpoint at iteration       5 to out\n" for rank in range(4))
    found = receipt_of(megatron([10.0] * 12, lines={5: saved}))["summary"]["checkpoints"]
    assert (found["count"], found["last_step"]) == (1, 5)


@pytest.mark.parametrize("count", [30, 300])
def test_a_rank_that_is_slower_straggles(count: int) -> None:
    lines = [
        f"[rank{rank}]: [receipt] step={step}/{count} loss={5 - step / 1000} "
        f"step_time_s={1.5 if rank == 2 else 1.0 + step % 2 / 100}\n"
        for step in range(count)
        for rank in range(4)
    ]
    ranks = receipt_of("".join(lines))["summary"]["ranks"]
    assert {name: rank["straggles"] for name, rank in ranks.items()} == {"0": False, "1": False, "2": True, "3": False}
    assert (ranks["2"]["median_step_time_s"], ranks["1"]["median_step_time_s"]) == (1.5, 1.005)


@pytest.mark.parametrize(
    ("rate", "arrived", "wait", "pool", "verdict"),
    [
        (3.4, 4.7, 2.1, 0, "inference"),
        (2.0, 8.2, 2.1, 0, "inference"),
        (9.0, 1.1, 7.5, 0, "inference"),
        (1.3, 12.3, 2.1, 0, "training"),  # all that training can take arrives
        (1.3, 4.7, 0.02, 0, "training"),  # two polls are no wait
        (3.4, 4.7, 2.1, 24, "unknown"),  # it waits though samples are there
    ],
)
def test_an_empty_pool_that_training_waits_for_decides(rate: float, arrived: float, wait: float, pool: int, verdict: str) -> None:
    assert receipt_of(torchspec(rate, arrived, wait, pool))["summary"]["bottleneck"]["verdict"] == verdict


TRAINERS = {
    "trl": "{{'loss': {loss}, 'grad_norm': 1.0, 'learning_rate': 1e-05, 'rewards/acc': {score}, 'epoch': {epoch}}}\n",
    "custom": "{{'loss': {loss}, 'learning_rate': 1e-05, 'my_score': {score}, 'epoch': {epoch}}}\n",
    "kto": "{{'loss': {loss}, 'grad_norm': 1.0, 'learning_rate': 1e-05, 'logps/chosen': {score}, 'epoch': {epoch}}}\n",
}


@pytest.mark.parametrize(("name", "key"), [("trl", "rewards/acc"), ("custom", "my_score"), ("kto", "logps/chosen")])
def test_a_closing_mean_is_no_record(name: str, key: str) -> None:
    lines = [TRAINERS[name].format(loss=1 - i / 10, score=0.5 + i / 10, epoch=i / 4) for i in range(1, 5)]
    lines.append(f"{{'train_runtime': 10.0, 'train_samples_per_second': 1.0, 'train_loss': 0.75, '{key}': 0.75, 'epoch': 1.0}}\n")
    summary = receipt_of("".join(lines))["summary"]
    found = {**summary["metrics"], **summary["other_metrics"]}[key]
    assert (found["record_count"], found["last"], summary["steps"]["record_count"]) == (4, 0.9, 4)
    assert summary["training_time_s"] == 10.0
    assert summary["other_metrics"]["train_loss"]["last"] == 0.75


@pytest.mark.parametrize("records", [40, 30_000])
def test_the_peak_of_a_device_is_compared_in_logs_of_any_length(records: int) -> None:
    head = "[titan] 2026-05-09 21:25:00,000 - root - INFO - "
    peak = f"{head}CUDA capacity: NVIDIA H100 80GB HBM3 with 79.11GiB memory\n"
    peak += f"{head}Peak FLOPS used for computing MFU: 9.890e+14\n"
    tail = "grad_norm:  0.1009  memory: 60.20GiB(76.10%)  tps: 7,150  tflops: 415.38  mfu: 42.00%\n"
    steps = "".join(f"{head}step: {n:2}  loss: {9 - n / 40_000:.5f}  {tail}" for n in range(1, records + 1))
    identities = receipt_of(peak + steps)["summary"]["identities"]
    [found] = [one for one in identities if one["name"] == "mfu_times_peak"]
    assert found["holds"] is True


@pytest.mark.parametrize(
    ("later", "reached"),
    [
        ("", None),
        (" 19%|█▉        | 96/500 [00:10<01:00,  9.50it/s]", 96),
        ("out of time at step:97/500", 97),
        (" 24%|██▍       | 96/400 [00:10<01:00,  9.50it/s]", None),  # of another loop
        (" 21%|██        | 105/500 [00:10<01:00,  9.50it/s]", None),  # more than a stride: records are missing
        ("again from step 85/500", None),
    ],
)
def test_a_later_line_shows_the_step_that_was_reached(later: str, reached: int | None) -> None:
    saved = "[receipt] checkpoint step=60\n"
    log = "".join(f"[receipt] step={n}/500 loss={5 - n / 100}\n" + saved * (n == 60) for n in range(10, 100, 10))
    document = receipt_of(f"{log}{later}\n")
    summary = document["summary"]
    assert (summary["steps"]["last"], summary["steps"].get("reached")) == (90, reached)
    assert summary["checkpoints"]["unsaved_step_count"] == (reached or 90) - 60
    assert validate_document(document) == []


def test_a_later_evaluation_shows_the_step_that_was_reached() -> None:
    log = "".join(f"step:{n}/400 train_loss:{5 - n / 100:.4f} train_time:{n}ms step_avg:1.00ms\n" for n in range(20, 200, 20))
    steps = receipt_of(log + "step:187/400 val_loss:3.1500 train_time:187ms step_avg:1.00ms\n")["summary"]["steps"]
    assert (steps["last"], steps["reached"]) == (180, 187)


@pytest.mark.parametrize(("stride", "last", "step"), [(40, 40, 45), (10, 40, 45), (10, 30, 30)])
def test_a_checkpoint_that_names_its_epoch_is_at_its_end(stride: int, last: int, step: int) -> None:
    stamp = "2026-03-08 11:00:00,123 - mmcv - INFO - "
    rest = "lr: 1.000e-03, eta: 0:10:00, time: 0.300, data_time: 0.010, memory: 900, loss: 2.5000"
    log = [f"{stamp}Epoch [1][{n}/45]\t{rest}" for n in range(stride, last + 1, stride)]
    saved = receipt_of("\n".join([*log, f"{stamp}Saving checkpoint at 1 epochs", ""]))["summary"]["checkpoints"]
    assert saved["last_step"] == step  # else a record is missing: a lower bound
