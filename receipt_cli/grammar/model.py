"""The model of a grammar: rules, fields, samples, evidence. Patterns compile on first use."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import regex

from receipt_cli.definitions.resources import pack
from receipt_cli.grammar.digit_sensitivity import Compared, digits_compared, tells_place
from receipt_cli.patterns import compile_later

COUNTERS = ("epoch_number", "epoch_step", "epoch_steps", "epochs_planned")
"""Counters of a trainer that counts by epoch: the epoch, the step in it, the steps of an epoch, the planned epochs."""
MOMENTS = ("init_started", "run_started", "run_stopped")
"""Printed start and end times of a benchmark's run, in seconds since 1970."""
STRUCTURAL = frozenset({"step", "planned_steps", "timestamp", "rank", "phase", "status", *COUNTERS, *MOMENTS} - {"run_started"})
FACTS = frozenset(
    {
        "parameter_count", "training_time_s", "run_started", "world_size", "data_parallel", "tensor_parallel",
        "pipeline_parallel", "context_parallel", "expert_parallel", "seed", "tokens_per_step", "samples_per_step",
        "micro_batch_size", "sequence_length", "gradient_accumulation_steps", "flops_per_token",
        "peak_flops_per_s_per_device", "accelerator_name", "accelerator_memory_bytes", "accelerator_count", "model_name",
        "start_step", "exit_code", "torch_version", "cuda_version", "python_version", "trainer_version", "git_commit",
        "git_branch", "precision", "optimizer", "tokens_per_micro_batch", "tokens_per_micro_batch_per_rank",
        "parameter_count_per_rank", "trainer_name", "layer_count", "hidden_size", "data_seed", "deterministic",
        "cudnn_benchmark", "torch_profile", "kernel_table", "kernel_report",
    }
)  # fmt: skip
"""Single values that a run prints about itself; they become header facts or inputs of derived values."""

_SPECIAL = frozenset("()[]{}?*+|^$\\.-#&~ \t\n\r\x0b\f")
"""Characters that must be escaped in a pattern in at least one of its modes."""
_INNER = compile_later(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]")
"""Pattern of an escape or a set in a pattern."""
_INNERMOST = compile_later(r"\([^()]*\)")
_AT_START = compile_later(r"\^(?![*+?{])")

Target = tuple[str, str]
"""(``structural`` | ``fact`` | ``metric`` | ``other`` | ``text``, name)."""


@dataclass(frozen=True, slots=True)
class Field:
    """One value of a rule: its printed form and its meaning."""

    name: str
    type: str
    unit: str | None
    null_if: frozenset[str]
    scope: str | None
    value: regex.Pattern[str] | None
    definition: str | None
    target: Target
    at_least: float | None = None
    """Least value in base units; the rule gives no event for a smaller value."""


class LazyFields(Mapping[str, Field]):
    """The fields of a rule, each made on first use: most shipped rules never read a line."""

    def __init__(self, bodies: Mapping[str, Any], make: Callable[[str], Field]) -> None:
        self.bodies, self._make = bodies, make
        self._made: dict[str, Field] = {}

    def __getitem__(self, name: str) -> Field:
        if name not in self._made:
            if name not in self.bodies:
                raise KeyError(name)
            self._made[name] = self._make(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.bodies)

    def __len__(self) -> int:
        return len(self.bodies)

    def __contains__(self, name: object) -> bool:
        return name in self.bodies

    def __reduce__(self) -> tuple[type[dict[str, Field]], tuple[dict[str, Field]]]:
        return dict, (dict(self),)

    @property
    def bounds(self) -> dict[str, float]:
        """Field → its least value, if it has one."""
        return {name: float(body["at_least"]) for name, body in self.bodies.items() if body and "at_least" in body}

    @property
    def printed(self) -> list[tuple[object, ...]]:
        """The printed form of each field: (name, type, unit, …), equal for two versions that read the same text."""
        keys = ("type", "printed_in", "null_if", "value", "at_least")
        return [(name, *((body or {}).get(key) for key in keys)) for name, body in self.bodies.items()]


@dataclass(frozen=True, slots=True)
class Sample:
    """A line that the rule must read, and exactly the fields that it must give."""

    line: str
    fields: Mapping[str, Any]
    others: Mapping[str, Any]


@dataclass(frozen=True)
class Pairs:
    """Cells of key and value after a start; see ``pairs`` in ``schemas/grammar``."""

    start: str
    cell: str
    key: str
    keys: Mapping[str, str]
    ignore: frozenset[str]
    other: bool
    stop: str | None = None
    requires: frozenset[str] = frozenset()
    forbids: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Mapped:
    """A Python-literal dict or JSON object on a line.

    ``start`` finds its opening brace if not every brace may open it; the groups of ``start`` are fields.
    """

    keys: Mapping[str, str]
    ignore: frozenset[str]
    other: bool
    start: str | None = None
    requires: frozenset[str] = frozenset()
    forbids: frozenset[str] = frozenset()
    where: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """Rows whose cells are named by a header row, which may be repeated with other columns."""

    header: str
    row: str
    keys: Mapping[str, str]
    ignore: frozenset[str]
    other: bool
    skip_cells: int = 0
    cell: str = " "


@dataclass(frozen=True)
class Block:
    """One record over several lines: an optional opening line, then a row for each key."""

    row: str
    gap: int
    keys: Mapping[str, str]
    ignore: frozenset[str]
    other: bool
    open: str | None = None
    requires: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Rule:
    """One printed form of one kind of event."""

    name: str
    event: str
    literals: tuple[bytes, ...]
    pattern: str | None = None
    pairs: Pairs | None = None
    mapping: Mapped | None = None
    table: Table | None = None
    block: Block | None = None
    fields: Mapping[str, Field] = field(default_factory=dict)
    phase: str | None = None
    redraw: bool = False
    companion: bool = False
    counts: str = "step"
    epochs_from: int | None = 1
    """Number of the first epoch; None: 0 if the log has an epoch 0, else 1."""
    repeats: int = 0
    samples: tuple[Sample, ...] = ()

    @property
    def kind(self) -> str:
        """``pattern``, ``pairs``, ``mapping``, ``table`` or ``block``."""
        if self.pattern:
            return "pattern"
        return "pairs" if self.pairs else "mapping" if self.mapping else "table" if self.table else "block"

    @property
    def keyed(self) -> Pairs | Mapped | Table | Block | None:
        """The part of the rule that names its values by printed keys, or None."""
        return self.pairs or self.mapping or self.table or self.block

    @property
    def sources(self) -> tuple[str, ...]:
        """The patterns that find this rule's records."""
        found = [self.pattern]
        found += [self.pairs.start] if self.pairs else []
        found += [self.mapping.start] if self.mapping else []
        found += [self.table.header, self.table.row] if self.table else []
        found += [self.block.open, self.block.row] if self.block else []
        return tuple(source for source in found if source)

    @cached_property
    def reading(self) -> str:
        """Digest of everything that decides how the rule reads text, without the meaning of its values."""
        fields: Sequence[tuple[object, ...]]
        if isinstance(self.fields, LazyFields):
            fields = self.fields.printed
        else:
            fields = [
                (f.name, f.type, f.unit, sorted(f.null_if), f.value.pattern if f.value else None, f.at_least)
                for f in self.fields.values()
            ]
        spec = (self.pattern, self.pairs, self.mapping, self.table, self.block, fields)
        return hashlib.sha256(json.dumps(pack((self.event == "ignored", self.literals, *spec))).encode()).hexdigest()[:16]

    @cached_property
    def anchored(self) -> bool:
        """Whether a pattern of the rule depends on the text before its match, by ``^`` or a negative lookbehind."""
        return self.mapping is None and any("^" in source or "(?<!" in source for source in self.sources)

    @cached_property
    def at_start(self) -> bool:
        """Whether each alternative of the pattern begins with ``^``, so that it only matches at the start of a text."""
        left = _INNER.sub("-", self.pattern or "") if "(?m" not in (self.pattern or "") else ""
        while (outer := _INNERMOST.sub("-", left)) != left:
            left = outer
        return all(_AT_START.match(part) for part in left.split("|"))

    @cached_property
    def bounds(self) -> Mapping[str, float]:
        """Field → its least value, if it has one."""
        if isinstance(self.fields, LazyFields):
            return self.fields.bounds
        return {name: spec.at_least for name, spec in self.fields.items() if spec.at_least is not None}

    @cached_property
    def asked(self) -> list[str]:
        """All patterns that the rule applies to a record: to find it and to split it into cells."""
        asked = [*self.sources, *([self.pairs.stop] if self.pairs and self.pairs.stop else [])]
        return asked + ([self.cells.pattern.decode("ascii")] if self.cells is not None else [])

    @cached_property
    def compared(self) -> Compared | None:
        """The digits that the patterns of the rule compare, or None if they may compare digits anywhere."""
        if self.pairs is not None and any(char.isdigit() for char in self.pairs.cell + self.pairs.key):
            return None
        return Compared.union([Compared(own=frozenset(filter(tells_place, self.asked_texts))), *map(digits_compared, self.asked)])

    @cached_property
    def asks_digits(self) -> bool:
        """Whether keys or values with digits, at any place, decide whether the rule reads a record."""
        return not all(map(tells_place, self.asked_texts))

    @cached_property
    def asked_texts(self) -> frozenset[str]:
        """The keys and values with digits that decide whether the rule reads a record, as texts of ``Compared.own``."""
        asked: Iterable[str] = self.pairs.requires | self.pairs.forbids if self.pairs is not None else ()
        if self.mapping is not None:
            keys = (*self.mapping.requires, *self.mapping.forbids, *self.mapping.where)
            values = chain.from_iterable(one if isinstance(one, list) else (one,) for one in self.mapping.where.values())
            told = (one if isinstance(one, str) else "0" for one in values if not isinstance(one, bool))  # numbers: any spelling
            asked = (*keys, *chain.from_iterable(key.split(".") for key in keys), *told)
        return frozenset(text.encode().lower().decode("latin-1") for text in asked if any(char.isdigit() for char in text))

    @cached_property
    def start(self) -> regex.Pattern[bytes]:
        """The compiled pattern that finds this rule in a record (``pattern``, or ``start`` of ``pairs``)."""
        return compile_pattern(self.pattern or (self.pairs.start if self.pairs else ""))

    @cached_property
    def find(self) -> Callable[..., regex.Match[bytes] | None]:
        """Function that searches a text for ``start``, only at its beginning if ``at_start``."""
        return self.start.match if self.at_start else self.start.search

    @cached_property
    def stop(self) -> regex.Pattern[bytes] | None:
        """The compiled end of the cells of ``pairs``."""
        return compile_pattern(self.pairs.stop) if self.pairs and self.pairs.stop else None

    @cached_property
    def cells(self) -> regex.Pattern[bytes] | None:
        """The compiled pattern of one cell of blank-separated pairs, else None."""
        if self.pairs is None or self.pairs.cell.strip():
            return None
        key = "".join(f"\\{char}" if char in _SPECIAL else char for char in self.pairs.key.strip() or self.pairs.key)
        # A key begins after the last cell or at a run of key characters, so that each run is read once.
        if len(self.pairs.cell) > 1:  # two or more blanks separate cells: keys and values may contain single blanks
            begin = rf"(?:\G ?|(?<![^\s{key}])(?<![^\s{key}] ))"
            name, value = rf"[^\s{key}](?:[^\s{key}]| (?! ))*+", r"\S++(?: (?! )\S++)*+"
        else:
            begin, name, value = rf"(?:\G|(?<![^\s{key}]))", rf"[^\s{key}]++", r"\S++"
        return compile_pattern(rf"{begin}(?P<key>{name})[ \t]*+{key}[ \t]*+(?P<value>{value})")

    @cached_property
    def table_patterns(self) -> tuple[regex.Pattern[bytes], regex.Pattern[bytes]]:
        """The compiled patterns of header rows and of value rows."""
        if self.table is None:
            raise ValueError(f"{self.name} is not a table")
        return compile_pattern(self.table.header), compile_pattern(self.table.row)

    @cached_property
    def opening(self) -> regex.Pattern[bytes] | None:
        """The compiled ``start`` of a mapping, whose match ends with the brace, or None."""
        return compile_pattern(self.mapping.start) if self.mapping and self.mapping.start else None

    @cached_property
    def block_patterns(self) -> tuple[regex.Pattern[bytes] | None, regex.Pattern[bytes]]:
        """The compiled patterns of opening lines (None without them) and of rows."""
        if self.block is None:
            raise ValueError(f"{self.name} is not a block")
        return compile_pattern(self.block.open) if self.block.open else None, compile_pattern(self.block.row)


COMPANION = "companion"
"""``RuleHead.event`` of a rule that only adds values to a step."""


class RuleHead(NamedTuple):
    """The part of a rule that an engine needs before it finds a literal; if ``reading`` is "", ask ``Rule.reading``."""

    name: str
    event: str
    literals: tuple[bytes, ...]
    reading: str = ""


@dataclass(frozen=True)
class Evidence:
    """Content of a log that proves or rules out one of several meanings of the same text."""

    seen: str | None = None
    metric: str | None = None
    equals: str | None = None


@dataclass(frozen=True)
class Grammar:
    """One version of one trainer format."""

    id: str
    version: int
    title: str
    upstream: str
    trainer: str
    layer: str
    completion: str
    rules: tuple[Rule, ...]
    ignore: tuple[Rule, ...]
    no_match: tuple[str, ...]
    proves: tuple[Evidence, ...]
    excludes: tuple[Evidence, ...]
    sha256: str
    where: str
    eras: tuple[str, ...] = ()

    @cached_property
    def ref(self) -> str:
        """``id@vN``."""
        return f"{self.id}@v{self.version}"

    @cached_property
    def heads(self) -> tuple[RuleHead, ...]:
        """The heads of the rules, then of the ignore rules."""
        rules = (*self.rules, *self.ignore)
        return tuple([RuleHead(r.name, COMPANION if r.companion else r.event, r.literals) for r in rules])

    def rule(self, number: int) -> Rule:
        """Return the rule whose head has this index in ``heads``."""
        return (*self.rules, *self.ignore)[number]

    def restore_later(
        self, heads: tuple[RuleHead, ...], restore: Callable[[], tuple[tuple[Rule, ...], tuple[Rule, ...]]]
    ) -> None:
        """Set ``heads`` now, and the rules and ignore rules by ``restore`` on first use."""
        made = vars(self)
        made.update(heads=heads, _restore=restore)
        del made["rules"], made["ignore"]

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """Restore the rules on their first use."""
            if name not in ("rules", "ignore"):
                raise AttributeError(name)
            made = vars(self)
            made["rules"], made["ignore"] = made["_restore"]()
            return made[name]

        def __getstate__(self):
            return {name: getattr(self, name) for name in self.__match_args__}


def compile_pattern(pattern: str) -> regex.Pattern[bytes]:
    """Return an ASCII pattern compiled for bytes. Raises ``regex.error`` or ``UnicodeEncodeError``."""
    return regex.compile(pattern.encode("ascii"))
