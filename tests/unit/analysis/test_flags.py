"""What is odd about the figures of a log is named, with the factor where one explains it; what is not odd is not."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.tools.logs import receipt_of

GRAMMAR = r"""
grammar: figures
version: 1
title: A trainer that prints what it is told to
upstream: https://example.org/figures
trainer: figures
layer: trainer
rules:
  train_step:
    event: step
    literal: 'step '
    pairs:
      start: 'step (?P<step>\d++)(?= \|)'
      cell: '|'
      key: '='
      keys: {time: step_time_s, tps: tokens_per_s, tpd: tokens_per_s_per_device, sps: samples_per_s, mfu: mfu_ratio,
             flops: flops_per_s_per_device, loss: loss}
    fields:
      step: {type: integer}
      loss: {type: number}
      step_time_s: {type: number}
      tokens_per_s: {type: number}
      tokens_per_s_per_device: {type: number}
      samples_per_s: {type: number}
      mfu_ratio: {type: number DEFINITION}
      flops_per_s_per_device: {type: number}
  facts:
    event: header
    literal: 'fact '
    pattern: >-
      fact (?:parameters (?P<parameter_count>\d++)|tokens (?P<tokens_per_step>\d++)|samples (?P<samples_per_step>\d++)|world
      (?P<world_size>\d++)|accumulation (?P<gradient_accumulation_steps>\d++)|flops (?P<flops_per_token>[\d.e+]++)|precision
      (?P<precision>\w++))
    fields:
      parameter_count: {type: integer}
      tokens_per_step: {type: integer}
      samples_per_step: {type: integer}
      world_size: {type: integer}
      gradient_accumulation_steps: {type: integer}
      flops_per_token: {type: number}
      precision: {type: string}
  device:
    event: header
    literal: 'device '
    pattern: 'device (?P<accelerator_name>[^|]{1,60}?) \| (?P<peak_flops_per_s_per_device>[\d.e+]++|inf|none)'
    fields:
      accelerator_name: {type: string}
      peak_flops_per_s_per_device: {type: number, null_if: [inf, none]}
"""

TOKENS = "fact tokens 8192\n"
H100 = "NVIDIA H100 80GB HBM3"


def steps(count: int = 30, **values: str) -> str:
    cells = "".join(f" | {name}={value}" for name, value in {"time": "0.5", **values}.items())
    return "".join(f"step {n}{cells}\n" for n in range(count))


@pytest.fixture
def summary_of() -> Callable[..., dict[str, Any]]:
    """Return the summary of a log in the format above; ``definition`` is that of its MFU."""

    def make(log: str, definition: str | None = None) -> dict[str, Any]:
        said = f", definition: {definition}" if definition else ""
        return receipt_of(log, grammar=GRAMMAR.replace(" DEFINITION", said))["summary"]

    return make


Summary = Callable[..., dict[str, Any]]


@pytest.mark.parametrize(
    ("tps", "more", "factor", "why"),
    [
        ("8192", "fact accumulation 2\n", 2.0, "2 gradient accumulation steps"),
        ("8192", "fact accumulation 4\n", 2.0, "2 times too small"),
        ("8192", "fact world 2\n", 2.0, "2 devices"),
        ("32768", "fact world 2\n", 0.5, "2 times too large"),
        ("16300", "", None, None),  # within the tolerance
        ("11000", "", None, None),  # wrong, by no integer
        ("1490", "", 11.0, None),  # off by 10.996: near enough, for so small an integer
        ("256", "fact accumulation 64\n", 64.0, "64 gradient accumulation steps"),
        ("253", "", None, None),  # off by 64.76, and nothing prints a 65: any ratio is near some integer
    ],
)
def test_a_rate_that_is_off_by_an_integer(
    summary_of: Summary, tps: str, more: str, factor: float | None, why: str | None
) -> None:
    flags = summary_of(TOKENS + more + steps(tps=tps))["flags"]
    if factor is None:
        assert flags == []
        return
    assert [(f["kind"], f["metric"], f["factor"]) for f in flags] == [("off_by_integer_factor", "tokens_per_s", factor)]
    assert flags[0]["reported"] == float(tps) and flags[0]["derived"] == 16384.0
    assert why is None or why in flags[0]["detail"]


def test_rates_of_samples_and_of_a_device_are_checked_too(summary_of: Summary) -> None:
    summary = summary_of("fact samples 16\nfact world 4\n" + TOKENS + steps(sps="8", tpd="4096"))
    assert [(c["metric"], c["derived"], c["consistent"]) for c in summary["consistency"]] == [
        ("tokens_per_s_per_device", 4096.0, True),
        ("samples_per_s", 32.0, False),
    ]
    assert [(f["metric"], f["factor"]) for f in summary["flags"]] == [("samples_per_s", 4.0)]


def test_a_figure_printed_with_one_digit_agrees_within_half_of_it(summary_of: Summary) -> None:
    summary = summary_of("fact samples 1\n" + steps(time="1564", sps="0.001"))
    assert [(c["metric"], c["consistent"]) for c in summary["consistency"]] == [("samples_per_s", True)]


def test_an_mfu_is_recomputed_from_printed_flops_and_the_peak_of_the_definition(summary_of: Summary) -> None:
    log = TOKENS + "fact flops 6e10\nfact world 8\n" + steps(mfu="0.1242")
    summary = summary_of(log, "peak_fixed_989e12")
    found = summary["derived"]["mfu_ratio"]
    assert found["median"] == pytest.approx(6e10 * 16384 / (989e12 * 8), rel=1e-12)
    assert found["definition"] == "figures_flops_over_peak_fixed_989e12"
    assert found["inputs"] == {
        "flops_per_token": 6e10, "flops_convention": "printed", "world_size": 8.0, "world_size_source": "world_size",
        "tokens_per_step": 8192.0, "peak_flops_per_s_per_device": 989e12, "peak_source": "grammar:peak_fixed_989e12",
    }  # fmt: skip
    assert [(c["metric"], c["consistent"]) for c in summary["consistency"]] == [("mfu_ratio", True)]
    assert summary["flags"] == []


@pytest.mark.parametrize(
    "missing",
    ["fact tokens 8192\n", "fact flops 6e10\n", "fact world 8\n", f"device {H100} | none\n"],
)
def test_no_mfu_is_guessed(summary_of: Summary, missing: str) -> None:
    log = f"{TOKENS}fact flops 6e10\nfact world 8\ndevice {H100} | none\n" + steps()
    assert summary_of(log)["derived"]["mfu_ratio"]["inputs"]["peak_source"] == "peaks/v2 h100-sxm"
    assert "mfu_ratio" not in summary_of(log.replace(missing, ""))["derived"]


def test_mfu_by_a_count_of_parameters_is_beside_the_printed_one_and_never_held_against_it(summary_of: Summary) -> None:
    log = f"{TOKENS}fact parameters 10000000000\nfact world 8\ndevice {H100} | 989e12\n" + steps(mfu="0.15")
    summary = summary_of(log)
    assert summary["derived"]["mfu_ratio"]["definition"] == "6n_flops_over_peak_printed"
    assert summary["derived"]["mfu_ratio"]["median"] == pytest.approx(0.1242, abs=1e-4)
    assert summary["consistency"] == [] and summary["flags"] == []


def test_parameters_that_do_not_all_work_give_no_flops(summary_of: Summary) -> None:
    log = f"{TOKENS}fact parameters 10000000000\nfact world 8\ndevice {H100} | none\n"
    assert "flops_per_s_per_device" in summary_of(log + steps(flops="125e12"))["derived"]
    summary = summary_of(log + steps(flops="20e12"))  # six times as many as the trainer counts
    assert "flops_per_s_per_device" not in summary["derived"]
    assert summary["derived"]["mfu_ratio"]["median"] == pytest.approx(20e12 / 989.4e12)
    assert summary["derived"]["mfu_ratio"]["inputs"]["flops_convention"] == "printed"


PEAKS = [
    (f"device {H100} | 989e12\n", None, None),
    (f"device {H100} | 989.4e12\n", None, None),
    (f"device {H100} | 1979e12\n", "sparse_peak", 2.0),
    (f"device {H100} | 312e12\n", "fixed_peak", 312 / 989.4),
    ("device NVIDIA H100 | 1979e12\n", None, None),  # which of three: nobody knows
    (f"fact precision fp32\ndevice {H100} | 494.7e12\n", None, None),  # the peak of another precision
]


@pytest.mark.parametrize(("device", "kind", "factor"), PEAKS)
def test_a_denominator_that_is_not_the_dense_peak(
    summary_of: Summary, device: str, kind: str | None, factor: float | None
) -> None:
    flags = summary_of(device + steps(mfu="0.2"))["flags"]
    assert [f["kind"] for f in flags] == ([kind] if kind else [])
    if kind is not None:
        assert flags[0]["factor"] == pytest.approx(factor, rel=1e-3)
        assert flags[0]["derived"] == pytest.approx(0.2 * flags[0]["factor"])


def test_half_the_mfu_of_the_dense_peak_is_one_with_sparsity(summary_of: Summary) -> None:
    log = f"{TOKENS}fact flops 6e10\nfact world 8\ndevice {H100} | none\n"
    half = 6e10 * 16384 / (989.4e12 * 8) / 2
    kinds = [f["kind"] for f in summary_of(log + steps(mfu=f"{half:.4f}"))["flags"]]
    assert kinds == ["sparse_peak", "peak_unknown"]


def test_three_times_the_flops(summary_of: Summary) -> None:
    flags = summary_of(steps(mfu="0.3"), "18n_flops")["flags"]
    assert [(f["kind"], f["factor"], f["derived"]) for f in flags] == [("other_flops_convention", 1 / 3, pytest.approx(0.1))]
    log = f"{TOKENS}fact parameters 10000000000\nfact world 8\ndevice {H100} | 989e12\n"
    found = 6e10 * 16384 / (989e12 * 8)
    assert [f["kind"] for f in summary_of(log + steps(mfu=f"{found * 3:.4f}"))["flags"]] == ["other_flops_convention"]


def test_an_mfu_above_one_is_counted_in_all_records(summary_of: Summary) -> None:
    log = "step 0 | time=0.1 | mfu=2.5\n" + steps(mfu="0.4").replace("step 0 ", "step 31 ") + "step 40 | time=0.5 | mfu=1.05\n"
    flags = summary_of(log)["flags"]
    assert [(f["kind"], f["reported"], f["count"]) for f in flags] == [("mfu_above_one", 2.5, 2)]


def test_steps_that_no_device_makes(summary_of: Summary) -> None:
    slow = steps(flops="193e12")
    fast = "step 40 | time=0.5 | flops=3000e12\nstep 41 | time=0.5 | flops=917442e12\n"
    flags = summary_of(slow + fast)["flags"]
    assert [(f["kind"], f["reported"], f["count"]) for f in flags] == [("impossible_steps", 917442e12, 1)]
    flags = summary_of("device TPU v5p | none\n" + slow + fast)["flags"]  # 459 TFLOP/s
    assert [(f["kind"], f["count"]) for f in flags] == [("mfu_above_one", 2), ("impossible_steps", 2), ("peak_unknown", None)]
    assert summary_of(slow)["flags"] == []


def test_a_trainer_that_does_not_know_its_device(summary_of: Summary) -> None:
    flags = summary_of("device NVIDIA GeForce GTX 1080 | inf\n" + steps())["flags"]
    assert [(f["kind"], f["count"]) for f in flags] == [("peak_unknown", None)]
    flags = summary_of(steps(mfu="inf"))["flags"]
    assert [(f["kind"], f["count"]) for f in flags] == [("peak_unknown", 30)]


def test_throughput_is_consistent_whatever_the_mfu() -> None:
    log = TOKENS + "fact flops 6e10\nfact world 8\n" + steps(tps="16384", mfu="0.3")
    document = receipt_of(log, grammar=GRAMMAR.replace(" DEFINITION", ", definition: peak_fixed_989e12"))
    assert [c["consistent"] for c in document["summary"]["consistency"]] == [True, False]
    assert document["checks"]["throughput_consistent"] is True
