"""Inputs of an MFU: FLOPs per token by a named convention, number of devices, and peak FLOP/s of a device."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from receipt_cli.definitions.accelerators import Device, load_peaks
from receipt_cli.events.phases import Phase
from receipt_cli.patterns import compile_later

Facts = Mapping[str, float | str]

PRINTED = "printed"
"""The FLOPs convention of a printed figure: the trainer's own, unknown here."""


class Convention(NamedTuple):
    """FLOPs per token: ``weights`` * parameters + ``attention`` * layers * hidden size * sequence length."""

    name: str
    weights: int
    attention: int


CONVENTIONS = {
    "6n": Convention("6N", 6, 0),
    "6n_12lht": Convention("6N+12LHT", 6, 12),
    "6n_6lht": Convention("6N+6LHT", 6, 6),
    "18n": Convention("18N", 18, 0),
}
"""Conventions by the slug in metric definitions. 6N: two FLOPs per weight forward, four backward. 12LHT: attention over the
whole sequence; 6LHT: over its causal half. 18N: three times 6N."""

SAME_PEAK = 0.01
"""Relative difference up to which two peaks are the same, rounded."""
_NAMED = compile_later(rf"(?:^|_)({'|'.join(sorted(CONVENTIONS, key=len, reverse=True))})_flops(?:_|$)")
_FIXED = compile_later(r"(?:^|_)(?:peak_fixed_|over_)(\d+(?:\.\d+)?e\d+)(?:_|$)")

_MIXTURE = ("moe_aux_loss", "moe_sequence_aux_loss")
_SIZES = ("layer_count", "hidden_size", "sequence_length")
_PARALLEL = ("data_parallel", "tensor_parallel", "pipeline_parallel", "context_parallel")


class TokenFlops(NamedTuple):
    """FLOPs of one token, forward and backward, with slug and name of the convention, and the inputs."""

    value: float
    slug: str
    convention: str
    inputs: dict[str, float | str]


class Peak(NamedTuple):
    """The MFU denominator of one device: FLOP/s, a slug of its kind, and its source.

    ``own``: the trainer's printed MFU uses it.
    """

    flops_per_s: float
    slug: str
    source: str
    own: bool


def positive(facts: Facts, name: str) -> float | None:
    """Return a fact if it is a positive finite number, else None."""
    value = facts.get(name)
    return value if isinstance(value, float) and 0 < value < math.inf else None


def named_convention(definition: str | None) -> str | None:
    """Return the slug of the convention in a metric's definition (``18n`` in ``18n_flops``), or None."""
    found = _NAMED.search(definition or "")
    return found[1] if found else None


def token_flops(
    facts: Facts, parameters: int | None, metrics: Iterable[str], definition: str | None, trainer: str
) -> TokenFlops | None:
    """Return the FLOPs of a token: printed, else by the convention in the MFU's ``definition``, else 6N.

    Attention is added if layers, hidden size and sequence length are known. None if they are unknown, as for a mixture of
    experts, whose parameters do not all work on each token.
    """
    printed = positive(facts, "flops_per_token")
    if printed is not None:
        return TokenFlops(printed, trainer, PRINTED, {"flops_per_token": printed, "flops_convention": PRINTED})
    if not parameters or (positive(facts, "expert_parallel") or 1) > 1 or any(name in _MIXTURE for name in metrics):
        return None
    sizes = {name: value for name in _SIZES if (value := positive(facts, name)) is not None}
    slug = named_convention(definition) or ("6n_12lht" if len(sizes) == len(_SIZES) else "6n")
    if CONVENTIONS[slug].attention and len(sizes) < len(_SIZES):
        slug = "6n"
    convention = CONVENTIONS[slug]
    value = convention.weights * float(parameters)
    inputs: dict[str, float | str] = {"parameter_count": float(parameters)}
    if convention.attention:
        value += convention.attention * math.prod(sizes.values())
        inputs |= sizes
    if not value < math.inf:
        return None
    return TokenFlops(value, slug, convention.name, {"flops_per_token": value, "flops_convention": convention.name, **inputs})


def world_size(facts: Facts) -> tuple[float, str] | None:
    """Return the number of devices and its source; None if unknown, or if sources disagree.

    A count of accelerators is used only without other sources: it may be that of one node.
    """
    found: dict[str, float] = {}
    if (printed := positive(facts, "world_size")) is not None:
        found["world_size"] = printed
    whole, part = positive(facts, "tokens_per_micro_batch"), positive(facts, "tokens_per_micro_batch_per_rank")
    if whole is not None and part is not None:
        found["tokens_per_micro_batch"] = whole / part
    degrees = [positive(facts, name) for name in _PARALLEL]
    if None not in degrees[:3]:
        found["parallelism"] = math.prod(degree or 1.0 for degree in degrees)
    if not found and (count := positive(facts, "accelerator_count")) is not None:
        found["accelerator_count"] = count
    sizes = set(found.values())
    if len(sizes) != 1 or not (size := sizes.pop()).is_integer():
        return None
    return size, next(iter(found))


def device_of(facts: Facts) -> Device | None:
    """Return the device of the peak table named in the log, or None."""
    name = facts.get("accelerator_name")
    return load_peaks().find(name) if isinstance(name, str) else None


def own_peak(facts: Facts, definition: str | None) -> Peak | None:
    """Return the peak that the trainer's MFU uses: fixed by ``definition`` (``peak_fixed_989e12``), or printed; else None."""
    fixed = _FIXED.search(definition or "")
    if fixed is not None:
        return Peak(float(fixed[1]), f"peak_fixed_{fixed[1]}", f"grammar:peak_fixed_{fixed[1]}", True)
    printed = positive(facts, "peak_flops_per_s_per_device")
    return None if printed is None else Peak(printed, "peak_printed", "log", True)


def is_of_another(peak: Peak, facts: Facts) -> bool:
    """Return whether the printed peak belongs to another device than the named one: trainers fall back to a known one."""
    name, device = facts.get("accelerator_name"), device_of(facts)
    if peak.slug != "peak_printed" or not isinstance(name, str):
        return False
    own = () if device is None else (device.flops_per_s, device.sparse_flops_per_s, *(rate for rate, _ in device.conflicts))
    if any(rate is not None and math.isclose(peak.flops_per_s, rate, rel_tol=SAME_PEAK) for rate in own):
        return False
    return any(math.isclose(peak.flops_per_s, other.flops_per_s, rel_tol=SAME_PEAK) for other in load_peaks().devices)


def table_peak(device: Device) -> Peak:
    """Return the peak of a device from the table."""
    return Peak(device.flops_per_s, "peak_table", f"peaks/v{load_peaks().version} {device.id}", False)


def tokens_per_step(facts: Facts) -> float | None:
    """Return the tokens of one optimizer step: printed, or samples times sequence length; None if unknown."""
    printed, samples, length = (positive(facts, name) for name in ("tokens_per_step", "samples_per_step", "sequence_length"))
    if printed is not None or samples is None or length is None:
        return printed
    return samples * length if samples * length < math.inf else None


def phase_facts(phase: Phase, before: Mapping[str, float | str]) -> dict[str, float | str]:
    """Return the facts of the phase, completed by batch and world facts of earlier phases."""
    kept = {k: v for k, v in before.items() if k not in ("parameter_count", "training_time_s", "exit_code")}
    return {**kept, **{name: value for name, (value, _) in phase.facts.items()}}
