"""Decide which differences between two runs block a comparison, and whether the runs are comparable."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeAlias, get_args

from receipt_cli.definitions.strict_yaml import read_yaml
from receipt_cli.documents.diff import differences
from receipt_cli.errors import DataError
from receipt_cli.problems import pointer, split_pointer, value_at

Severity = Literal["block", "warn", "ignore"]

MAX_RULES = 1000


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules for the fields of two receipts: the first pattern that matches a field's JSON pointer decides.

    ``unknown`` is the severity if one side lacks a blocking field; ``resolution`` is the least relative difference of a
    metric that gets a verdict, in addition to the limit by the printed digits.
    """

    rules: tuple[tuple[str, Severity], ...]
    unknown: Severity = "warn"
    resolution: float = 0.0

    def severity(self, pointer: str) -> Severity:
        """Return the severity of a difference at ``pointer``."""
        return next((severity for pattern, severity in self.rules if fnmatchcase(pointer, pattern)), "warn")


_BLOCK = (
    "/header/hardware/accelerators",
    "/header/parallelism/*",
    "/header/model/*",
    "/header/flags/precision",
    "/header/flags/*dtype*",
    "/header/flags/*batch*",
    "/header/flags/sequence_length",
    "/header/flags/*seq_len*",
    "/header/flags/tokens_per_step",
    "/header/flags/gradient_accumulation_steps",
    "/summary/phase",
    "/summary/parameter_count",
    "/summary/steady_state/rule",
)
_IGNORE = (
    "/run/name",
    "/run/started_at",
    "/run/finished_at",
    "/run/exit_code",
    "/header/git/commit",
    "/header/git/branch",
    "/header/git/message",
    "/header/seeds/*",
    "/header/cost",
    "/header/cwd",
    "/header/collected_at",
)
DEFAULT = Policy((*((pattern, "block") for pattern in _BLOCK), *((pattern, "ignore") for pattern in _IGNORE)))
"""Hardware, parallelism, model, precision, batch and sequence length block. Commit, seed and name are ignored: runs are
compared because these differ. Every other field warns."""


def read_policy(text: bytes, where: str) -> Policy:
    """Return the policy in a YAML text; its rules come before the default rules. Raises ``DataError``.

    Keys: ``block``, ``warn``, ``ignore`` (lists of JSON pointers with ``*``), ``unknown`` (a severity), ``resolution`` (a ratio).
    """
    data = read_yaml(text, where)
    known = {*get_args(Severity), "unknown", "resolution"}
    strange = sorted(set(map(str, data)) - known)
    if strange:
        raise DataError(f"unknown key {strange[0]!r} in a policy", where=where, why=f"known: {', '.join(sorted(known))}")
    rules: list[tuple[str, Severity]] = []
    for severity in get_args(Severity):
        patterns = data.get(severity, [])
        if not isinstance(patterns, list) or not all(isinstance(p, str) and p.startswith("/") for p in patterns):
            raise DataError(f"{severity} is not a list of JSON pointers", where=where, try_=f'{severity}: ["/header/cwd"]')
        rules += [(pattern, severity) for pattern in patterns]
    if len(rules) > MAX_RULES:
        raise DataError(f"{len(rules)} rules are too many for a policy", where=where, why=f"at most {MAX_RULES}")
    unknown, resolution = data.get("unknown", DEFAULT.unknown), data.get("resolution", DEFAULT.resolution)
    if unknown not in get_args(Severity):
        raise DataError(f"unknown must be one of {', '.join(get_args(Severity))}", where=where)
    if isinstance(resolution, bool) or not isinstance(resolution, int | float) or not 0 <= resolution < 1:
        raise DataError("resolution must be a ratio from 0 to 1", where=where)
    return Policy((*rules, *DEFAULT.rules), unknown, float(resolution))


Verdict = Literal["comparable", "caveats", "not_comparable"]
Document: TypeAlias = Mapping[str, Any]

_WHOLE = frozenset({("header", "hardware", "accelerators"), ("header", "cost"), ("header", "execution")})
"""Objects that are compared as a whole."""
_ORIGINS = ("header", "sources")
"""Path of the sources of header values, which are not compared."""
_DECIDES = ("/header/flags/", "/header/execution/")
"""Prefixes of fields that affect numerics."""
_NEEDED = ("/header/hardware/accelerators", "/header/flags/precision", "/header/flags/sequence_length")
"""Fields that cause a caveat if both runs lack them."""


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """A field in which two runs differ; ``a`` or ``b`` is None if that side lacks it."""

    pointer: str
    severity: Severity
    a: object
    b: object

    @property
    def unknown(self) -> bool:
        """Whether a side lacks the field."""
        return self.a is None or self.b is None

    @property
    def decides(self) -> bool:
        """Whether runs that differ in it are not alike: the policy blocks it, or it affects numerics and is not ignored."""
        return self.severity == "block" or (self.severity != "ignore" and self.pointer.startswith(_DECIDES))

    def __str__(self) -> str:
        return f"{self.pointer} is unknown on one side" if self.unknown else f"{self.pointer} differs"


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether two runs are comparable, the reasons against it, and their differing fields in receipt order."""

    verdict: Verdict
    reasons: tuple[str, ...]
    differences: tuple[FieldDifference, ...]


def judge(a: Document, b: Document, policy: Policy) -> Judgement:
    """Return the judgement whether the receipts ``a`` and ``b`` are of comparable runs."""
    fields = tuple(_fields(a, b, policy))
    blocking = [f"{f.pointer} differs" for f in fields if f.severity == "block"]
    doubtful = [f for f in fields if f.severity == "warn"]
    weak = [str(field) for field in doubtful]
    unknown = [at for at in _NEEDED if value_at(a, split_pointer(at)) is value_at(b, split_pointer(at)) is None]
    weak += [f"{at} is unknown on both sides" for at in unknown]
    weak += _readings(a, b)
    verdict: Verdict = "not_comparable" if blocking else "caveats" if weak else "comparable"
    return Judgement(verdict, (*blocking, *weak), fields)


def _fields(a: Document, b: Document, policy: Policy) -> Iterator[FieldDifference]:
    sides = [describe_run(document) for document in (a, b)]
    for place in dict.fromkeys([*sides[0], *sides[1]]):
        left, right = (side.get(place) for side in sides)
        if not differences(left, right):
            continue
        severity = policy.severity(place)
        if severity == "block" and (left is None or right is None):
            severity = policy.unknown
        yield FieldDifference(place, severity, left, right)


_DEGREES = ("data", "tensor", "pipeline", "context")
"""Degrees of parallelism whose product is the number of ranks."""


def count_ranks(document: Document) -> int | None:
    """Return the number of ranks of a run: as stated, else the product of its degrees of parallelism; None if unknown."""
    degrees: Mapping[str, int | None] = document["header"]["parallelism"] or {}
    sizes = [size for kind in _DEGREES if (size := degrees.get(kind)) is not None]
    return degrees.get("world_size") or (math.prod(sizes) if len(sizes) == len(_DEGREES) else None)


def listed(names: Sequence[str]) -> str:
    """Return the first three names, and how many more there are."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def describe_run(document: Document) -> dict[str, Any]:
    """Return JSON pointer → value of the fields that describe a run's configuration, not its results."""
    fields = {pointer("run", key): document["run"].get(key) for key in ("lane", "preset")}
    _leaves(("header",), document["header"], fields)
    summary = document.get("summary") or {}
    fields["/summary/phase"] = summary.get("phase")
    fields["/summary/parameter_count"] = summary.get("parameter_count")
    fields["/summary/steady_state/rule"] = (summary.get("steady_state") or {}).get("rule")
    return fields


def _leaves(path: tuple[str, ...], value: Any, fields: dict[str, Any]) -> None:
    if isinstance(value, Mapping) and path not in _WHOLE:
        for key, item in value.items():
            if (*path, key) != _ORIGINS:
                _leaves((*path, key), item, fields)
    else:
        fields[pointer(*path)] = value


def _readings(a: Document, b: Document) -> Iterator[str]:
    """Yield differences of grammars and derivation rules, which may read the same text differently."""
    first, second = (document["derivation"] for document in (a, b))
    if first["rules"] != second["rules"]:
        yield f"derived by other rules: {first['rules']} and {second['rules']}"
    used = [", ".join(f"{g['id']}@v{g['version']}" for g in part["grammars"]) for part in (first, second)]
    if used[0] != used[1]:
        yield f"read by other grammars: {used[0] or 'none'} and {used[1] or 'none'}"
    elif any(g["sha256"] != h["sha256"] for g, h in zip(first["grammars"], second["grammars"], strict=True)):
        yield "read by other bytes of the same grammar"
