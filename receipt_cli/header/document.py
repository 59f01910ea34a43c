"""The header document: its empty form, facts → document (``merge``), document → facts."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NoReturn

from receipt_cli.header.values import LEAVES, MAX_ITEMS, OPEN_MAPS, FactCollector, HeaderFact, checked, is_pointer
from receipt_cli.problems import pointer, split_pointer

_TOP = (
    "git", "software", "hardware", "parallelism", "model", "data", "seeds", "flags", "execution", "cost", "cwd",
    "collected_at", "sources",
)  # fmt: skip
_NULL_WHILE_UNKNOWN = "parallelism"
"""The section with fixed keys that is null as a whole if nothing in it is known."""
_ABSENT_WHILE_UNKNOWN = ("/data", "/model/parameter_digest")
"""A section and a key that a header lacks if nothing is known of them; older versions have neither."""
_LEAF_ORDER = {pointer: place for place, pointer in enumerate(LEAVES)}


class ShapeError(ValueError):
    """A JSON text or value does not have the header's form; the message quotes no value."""


def empty_header() -> dict[str, Any]:
    """Return a header with every key of the contract in order and every leaf null."""
    sections = [name for name in _TOP if f"/{name}" not in _ABSENT_WHILE_UNKNOWN]
    return {**{name: None if name == _NULL_WHILE_UNKNOWN else _fixed_keys(name) for name in sections}, "sources": {}}


def _fixed_keys(section: str) -> dict[str, None] | None:
    keys = [name for name in _names_in(section) if f"/{section}/{name}" not in _ABSENT_WHILE_UNKNOWN]
    return dict.fromkeys(keys) if keys else None


@cache
def _names_in(section: str) -> tuple[str, ...]:
    return tuple(split_pointer(pointer)[1] for pointer in LEAVES if pointer.startswith(f"/{section}/"))


def merge(facts: Iterable[HeaderFact]) -> dict[str, Any]:
    """Return the header of ``facts`` in falling priority: the first fact of a pointer wins.

    Keys follow the contract's order, then free keys (seeds, flags, execution) and ``sources`` sorted, so that equal facts
    give equal documents. Facts with the value None are skipped. ``parallelism`` is null or has all its keys. Raises
    ``ValueError`` for a pointer outside the header.
    """
    winners: dict[str, HeaderFact] = {}
    for fact in facts:
        if not is_pointer(fact.pointer):
            raise ValueError(f"{fact.pointer} is not a field of the header")
        if fact.value is not None:
            winners.setdefault(fact.pointer, fact)
    header = empty_header()
    if any(split_pointer(at)[0] == "data" for at in winners):
        header = {name: header.get(name) for name in _TOP}
    for at in sorted(winners, key=_place):
        fact = winners[at]
        _put(header, split_pointer(at), copy.deepcopy(fact.value))
        header["sources"][at] = fact.source
    return header


def _place(pointer: str) -> tuple[int, int, str]:
    return _TOP.index(split_pointer(pointer)[0]), _LEAF_ORDER.get(pointer, 0), pointer


def _put(header: dict[str, Any], keys: tuple[str, ...], value: object) -> None:
    if len(keys) == 1:
        header[keys[0]] = value
        return
    section, name = keys
    if header[section] is None:
        header[section] = _fixed_keys(section) or {}
    header[section][name] = value


def facts_of(document: Mapping[str, Any], source: str) -> tuple[list[HeaderFact], list[str]]:
    """Return the facts of a document with the header's form, and its unknown pointers.

    Null leaves are no facts; ``source`` replaces the document's ``sources``. Raises ``ShapeError`` with the pointer of a
    value of the wrong type.
    """
    facts: list[HeaderFact] = []
    unknown: list[str] = []
    for section, content in document.items():
        at = pointer(str(section))
        if section == "sources" or (content is None and section in _TOP):
            continue
        if at in LEAVES:
            facts.append(_fact(at, content, source))
        elif section not in _TOP:
            unknown.append(at)
        else:
            if not isinstance(content, Mapping) or len(content) > MAX_ITEMS:
                raise ShapeError(f"{at} must be an object of at most {MAX_ITEMS} keys")
            for name, value in content.items():
                leaf = at + pointer(str(name))
                if at not in OPEN_MAPS and leaf not in LEAVES:
                    unknown.append(leaf)
                elif value is not None:
                    facts.append(_fact(leaf, value, source))
    return facts, unknown


def _fact(pointer: str, value: object, source: str) -> HeaderFact:
    try:
        return HeaderFact(pointer, checked(pointer, value), source)
    except ValueError as error:
        raise ShapeError(f"{pointer} {error}") from None


def unknown_note(where: str, unknown: list[str]) -> list[str]:
    """Return at most one note about ignored keys of a document; it names at most eight."""
    if not unknown:
        return []
    more = f" and {len(unknown) - 8} more" if len(unknown) > 8 else ""
    named = ", ".join(pointer[:64].encode("unicode_escape").decode("ascii") for pointer in unknown[:8])
    return [f"{where}: unknown keys ignored: {named}{more}"]


def parse_object(text: str) -> dict[str, Any]:
    """Return the JSON object in ``text``: no duplicate keys, no NaN or infinity.

    Raises ``ShapeError``; its message has line and column and quotes no value.
    """
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise ShapeError(f"not JSON: line {error.lineno} column {error.colno}") from None
    except ShapeError:
        raise
    except (ValueError, RecursionError):
        raise ShapeError("JSON nested too deeply, or a number too long") from None
    if not isinstance(value, dict):
        raise ShapeError("must be a JSON object")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ShapeError("an object has a duplicate key")
    return result


def _no_constant(_: str) -> NoReturn:
    raise ShapeError("NaN and infinity are not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ShapeError("a number is too large")
    return number


LogFact = tuple[str | int | float | bool, int]
"""A value in base units and its line number, counted from 1."""

POINTERS = {
    "git_commit": "/git/commit",
    "git_branch": "/git/branch",
    "python_version": "/software/python",
    "torch_version": "/software/torch",
    "cuda_version": "/software/cuda",
    "world_size": "/parallelism/world_size",
    "data_parallel": "/parallelism/data",
    "tensor_parallel": "/parallelism/tensor",
    "pipeline_parallel": "/parallelism/pipeline",
    "context_parallel": "/parallelism/context",
    "expert_parallel": "/parallelism/expert",
    "model_name": "/model/architecture",
    "parameter_count": "/model/parameter_count",
    "parameter_digest": "/model/parameter_digest",
    "data_name": "/data/name",
    "data_size_samples": "/data/size_samples",
    "tokenizer": "/data/tokenizer",
    "packing_policy": "/data/packing_policy",
    "data_digest": "/data/digest",
    "seed": "/seeds/seed",
    "data_seed": "/seeds/data_seed",
    "cudnn_benchmark": "/flags/cudnn_benchmark",
    "deterministic": "/flags/deterministic",
    "gradient_accumulation_steps": "/flags/gradient_accumulation_steps",
    "micro_batch_size": "/flags/micro_batch_size",
    "optimizer": "/flags/optimizer",
    "precision": "/flags/precision",
    "samples_per_step": "/flags/global_batch_size",
    "start_step": "/flags/start_step",
    "sequence_length": "/flags/sequence_length",
    "tokens_per_step": "/flags/tokens_per_step",
}
"""Name of a log fact → header field."""

_WHOLE_FLAGS = (
    "gradient_accumulation_steps", "micro_batch_size", "samples_per_step", "sequence_length", "start_step",
    "tokens_per_step",
)  # fmt: skip
_TRUTH_FLAGS = ("cudnn_benchmark", "deterministic")
_TRUTHS = {"true": True, "enabled": True, "1": True, "false": False, "disabled": False, "0": False}


def log_facts(facts: Mapping[str, LogFact]) -> tuple[list[HeaderFact], list[str]]:
    """Return the header facts in ``facts`` (name → value and line), each with source ``log:LINE``, and notes.

    ``trainer`` (a name) and ``trainer_version`` form ``/software/trainer``; ``accelerator_name``,
    ``accelerator_memory_bytes`` and ``accelerator_count`` form one entry of ``/hardware/accelerators``. Other names are
    skipped. A value of the wrong type becomes a note.
    """
    collector = FactCollector()
    for name, at in POINTERS.items():
        if name in facts:
            value, line = facts[name]
            whole = name in _WHOLE_FLAGS and isinstance(value, float) and value.is_integer()
            if name in _TRUTH_FLAGS:
                value = _TRUTHS.get(str(value).lower(), value)
            collector.add(at, int(value) if whole else value, f"log:{line}")
    _add_trainer(facts, collector)
    _add_accelerator(facts, collector)
    return collector.facts, collector.notes


def _add_trainer(facts: Mapping[str, LogFact], collector: FactCollector) -> None:
    name, version = facts.get("trainer"), facts.get("trainer_version")
    if name is None:
        if version is not None:
            collector.note(f"log:{version[1]}: trainer_version left out: the trainer is unknown")
    elif version is None:
        collector.add("/software/trainer", name[0], f"log:{name[1]}")
    else:
        collector.add("/software/trainer", f"{name[0]} {version[0]}", f"log:{version[1]}")


def _add_accelerator(facts: Mapping[str, LogFact], collector: FactCollector) -> None:
    keys = ("name", "memory_bytes", "count")
    known = {key: facts[f"accelerator_{key}"] for key in keys if f"accelerator_{key}" in facts}
    if known:
        first_line = next(iter(known.values()))[1]
        entry = {key: round(value) if isinstance(value, float) else value for key, (value, _) in known.items()}
        collector.add("/hardware/accelerators", [entry], f"log:{first_line}")
