"""FLOPs of a token by convention, devices of a job, the peak of a device: from what a log says of itself, or nothing."""

import math

import pytest

from receipt_cli.analysis.flops import named_convention, own_peak, token_flops, world_size

Facts = dict[str, float | str]
SIZES: Facts = {"layer_count": 12.0, "hidden_size": 768.0, "sequence_length": 1024.0}
ATTENTION = 12 * 768 * 1024

FLOPS: list[tuple[str, Facts, int | None, str | None, float | None, str | None]] = [
    ("printed wins", {"flops_per_token": 3.5e9, **SIZES}, 1000, None, 3.5e9, "printed"),
    ("6N", {}, 1000, None, 6000.0, "6N"),
    ("6N with attention where all sizes are known", SIZES, 1000, None, 6000.0 + 12 * ATTENTION, "6N+12LHT"),
    ("one size missing", {"layer_count": 12.0, "hidden_size": 768.0}, 1000, None, 6000.0, "6N"),
    ("causal attention, as a grammar names it", SIZES, 1000, "6n_6lht_flops", 6000.0 + 6 * ATTENTION, "6N+6LHT"),
    ("named, but a size is missing", {}, 1000, "6n_6lht_flops", 6000.0, "6N"),
    ("18N, as a grammar names it", SIZES, 1000, "18n_flops", 18000.0, "18N"),
    ("nothing", {}, None, None, None, None),
    ("experts", {"expert_parallel": 8.0}, 1000, None, None, None),
    ("a printed figure that is none", {"flops_per_token": math.inf}, None, None, None, None),
]


@pytest.mark.parametrize(
    ("facts", "parameters", "definition", "value", "convention"), [row[1:] for row in FLOPS], ids=[row[0] for row in FLOPS]
)
def test_flops_of_a_token(
    facts: Facts, parameters: int | None, definition: str | None, value: float | None, convention: str | None
) -> None:
    found = token_flops(facts, parameters, (), definition, "toy")
    assert (value, convention) == (None, None) if found is None else (found.value, found.convention) == (value, convention)
    if found is not None:
        assert found.inputs["flops_per_token"] == value and found.inputs["flops_convention"] == convention


def test_a_loss_of_experts_says_that_not_every_parameter_works() -> None:
    assert token_flops({}, 1000, ["loss", "moe_aux_loss"], None, "toy") is None


WORLDS: list[tuple[str, Facts, tuple[float, str] | None]] = [
    ("printed", {"world_size": 8.0}, (8.0, "world_size")),
    (
        "from micro-batches",
        {"tokens_per_micro_batch": 524288.0, "tokens_per_micro_batch_per_rank": 65536.0},
        (8.0, "tokens_per_micro_batch"),
    ),
    ("from degrees", {"data_parallel": 4.0, "tensor_parallel": 2.0, "pipeline_parallel": 1.0}, (8.0, "parallelism")),
    (
        "context counts",
        {"data_parallel": 4.0, "tensor_parallel": 2.0, "pipeline_parallel": 1.0, "context_parallel": 2.0},
        (16.0, "parallelism"),
    ),
    ("a degree is missing", {"data_parallel": 4.0, "tensor_parallel": 2.0}, None),
    ("accelerators, where nothing else speaks", {"accelerator_count": 4.0}, (4.0, "accelerator_count")),
    ("accelerators of a node", {"accelerator_count": 4.0, "world_size": 16.0}, (16.0, "world_size")),
    (
        "two that differ",
        {"world_size": 8.0, "data_parallel": 4.0, "tensor_parallel": 1.0, "pipeline_parallel": 1.0},
        None,
    ),
    ("no whole number", {"tokens_per_micro_batch": 100.0, "tokens_per_micro_batch_per_rank": 64.0}, None),
    ("nothing", {}, None),
]


@pytest.mark.parametrize(("facts", "want"), [row[1:] for row in WORLDS], ids=[row[0] for row in WORLDS])
def test_devices_of_a_job(facts: Facts, want: tuple[float, str] | None) -> None:
    assert world_size(facts) == want


@pytest.mark.parametrize(
    ("definition", "convention", "peak"),
    [
        (None, None, None),
        ("peak_fixed_989e12", None, 989e12),
        ("ema_0.9_over_312e12_peak", None, 312e12),
        ("18n_flops", "18n", None),
        ("6n_6lht_flops", "6n_6lht", None),
        ("6n_12lht_flops_over_peak_fixed_312e12", "6n_12lht", 312e12),
        ("peak_from_device_table", None, None),
        ("ema_0.95_debiased", None, None),
    ],
)
def test_what_a_definition_names(definition: str | None, convention: str | None, peak: float | None) -> None:
    own = own_peak({}, definition)
    assert (named_convention(definition), None if own is None else own.flops_per_s) == (convention, peak)


def test_the_peak_of_the_definition_wins_over_the_printed_one() -> None:
    facts: Facts = {"peak_flops_per_s_per_device": 2.25e15}
    fixed, printed = own_peak(facts, "peak_fixed_989e12"), own_peak(facts, None)
    assert fixed is not None and (fixed.flops_per_s, fixed.source) == (989e12, "grammar:peak_fixed_989e12")
    assert printed is not None and (printed.flops_per_s, printed.source) == (2.25e15, "log")
    assert own_peak({}, None) is None
