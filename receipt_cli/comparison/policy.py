"""Decide which differences between two runs block a comparison, cause a warning, or are ignored."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, get_args

from receipt_cli.definitions.strict_yaml import read_yaml
from receipt_cli.errors import DataError

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
