"""Time every shipped pattern on its worst records: python -m benchmarks.patterns [--rows 20]

For each rule, marker and pattern in code, ``receipt_cli.authoring.redos`` makes records of 64 KiB from the pattern itself. The
table has the CPU time of the worst record and the exponent of its growth with length. Patterns in code are called as in the
code (``match`` from the beginning, or a search). Then records that contain literals of all rules are read.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import inspect
import json
import pkgutil
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import receipt_cli
from receipt_cli.authoring.redos import HOSTILE_BOUND_S, HOSTILE_BYTES, Attack, pattern_attacks, rule_attacks, worst_growth
from receipt_cli.definitions.failure_markers import load_catalogue
from receipt_cli.grammar.catalog import shipped
from receipt_cli.learn.names import MAX_NAME
from receipt_cli.records import envelope
from receipt_cli.records import heuristics as looks
from receipt_cli.redaction import text as redact
from receipt_cli.scan.engine import Engine
from receipt_cli.scan.extraction import extract
from receipt_cli.scan.extraction.model import PatternTimeout

RESULT = Path(__file__).resolve().parents[1] / "build" / "patterns.json"
BOX_S = 2
"""CPU seconds after which a call of a pattern in code is aborted."""
MOST_FOUND = 1000
_FLAGS = re.I | re.X | re.S | re.M
_READERS: tuple[tuple[str, Callable[[bytes], object], str], ...] = (
    ("envelope.unwrap", envelope.unwrap, "envelope"),
    ("envelope.starts", envelope.starts, "envelope"),
    ("envelope.read_rank", envelope.read_rank, "envelope"),
    ("envelope.read_clock", envelope.read_clock, "envelope"),
    ("looks.metric_lines", lambda record: looks.metric_lines(record, 3), "looks"),
    ("looks.count_step_lines", lambda record: looks.count_step_lines(record, 3), "looks"),
    ("redact.log_tail", redact.log_tail, "mask"),
    ("redact.mask_secrets", lambda record: redact.mask_secrets(record.decode("latin-1")), "mask"),
)
"""(name, function that searches a whole record with several patterns, module of these patterns)."""


_BOUNDED = {
    "flight.files._NAME": 255,  # a file's name
    "learn.naming._OPENING": MAX_NAME,
    "learn.naming._SEPARATOR": MAX_NAME,
    "learn.vocabulary._UNIT": MAX_NAME,
    "marker_lint._TOKEN": 4096,  # a pattern of ours
    "running.interpreter._FIRST_LINE": 4096,
    "masking.mask._NAME_BEFORE": 400,  # at most 40 characters before a name, and the name, which it takes at once
    "masking.stated._NAME": 128,  # the name of a field
    "masking.wrapped._NO_REST": 400,
}
"""Pattern in code that never gets a whole record → its longest input."""


class Row(NamedTuple):
    """One pattern: CPU seconds of its worst record of 64 KiB, extrapolated if shorter ones took too long, and that record."""

    seconds: float
    exponent: float
    name: str
    made: str


class _Late(Exception):
    """A call was aborted."""


def measure(name: str, call: Callable[[Attack, int], object], attacks: list[Attack], size: int = HOSTILE_BYTES) -> Iterator[Row]:
    """Yield the row of one pattern; none without attacks."""
    found = worst_growth(call, attacks, size, HOSTILE_BOUND_S, full=True)
    if found is not None:
        yield Row(found.at(size), found.exponent, name, found.attack.describe())


def rules() -> Iterator[Row]:
    """Yield a row for each rule of the shipped grammars."""
    for grammar in shipped(with_samples=True):
        for rule in (*grammar.rules, *grammar.ignore):

            def call(attack: Attack, size: int, rule: Any = rule) -> None:
                with contextlib.suppress(PatternTimeout):
                    extract(rule, attack.record(size))

            yield from measure(f"{grammar.ref} {rule.name}", call, rule_attacks(rule))


def markers() -> Iterator[Row]:
    """Yield a row for each marker of the catalogue."""
    for marker in load_catalogue().markers:
        source, needed = marker.pattern.pattern.decode("latin-1"), marker.literals[0].decode("latin-1")
        made = pattern_attacks(source, flags=marker.pattern.flags & _FLAGS, needed=needed)
        yield from measure(f"marker {marker.id}", lambda attack, size, m=marker: m.search(attack.record(size)), made)


def patterns_in_code() -> dict[str, tuple[re.Pattern[Any], frozenset[str]]]:
    """Return name → compiled pattern and its called methods, for the patterns of all modules."""
    found: dict[str, tuple[re.Pattern[Any], frozenset[str]]] = {}
    for info in pkgutil.walk_packages(receipt_cli.__path__, "receipt_cli."):
        if info.name.endswith(("__main__", "._native")) or ".ray_engine" in info.name:
            continue
        try:
            module = importlib.import_module(info.name)
        except ImportError:
            continue  # needs an extra
        called: dict[str, set[str]] = {}
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if not isinstance(node, ast.Attribute):
                continue
            holder = node.value
            if isinstance(holder, ast.Name | ast.Attribute):
                called.setdefault(holder.id if isinstance(holder, ast.Name) else holder.attr, set()).add(node.attr)
        for name, value in vars(module).items():
            for place, pattern in _compiled(value, name, 0):
                methods = frozenset(called.get(name, ())) & {
                    "match",
                    "fullmatch",
                    "search",
                    "finditer",
                    "findall",
                    "sub",
                    "split",
                }
                if name in called or place != name or not isinstance(value, re.Pattern):
                    found.setdefault(f"{info.name.removeprefix('receipt_cli.')}.{place}", (pattern, methods))
    return found


def _compiled(value: object, name: str, depth: int) -> Iterator[tuple[str, re.Pattern[Any]]]:
    if hasattr(value, "groupindex") and hasattr(value, "finditer"):
        yield name, value  # type: ignore[misc]
    elif depth < 3 and isinstance(value, dict):
        for key, item in value.items():
            yield from _compiled(item, f"{name}[{key!s:.20}]", depth + 1)
    elif depth < 3 and isinstance(value, tuple | list | frozenset):
        for number, item in enumerate(value):
            yield from _compiled(item, f"{name}[{number}]", depth + 1)


def _boxed(call: Callable[[], object]) -> None:
    """Run ``call`` for at most ``BOX_S`` CPU seconds; Python's engine handles signals while it matches."""
    signal.setitimer(signal.ITIMER_PROF, BOX_S)
    try:
        call()
    except _Late:
        pass
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _attacks_on(pattern: re.Pattern[Any]) -> list[Attack]:
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    return pattern_attacks(source, flags=pattern.flags & _FLAGS)


def in_code() -> Iterator[Row]:
    """Yield a row for each pattern in code, called as in its module."""
    for name, (pattern, methods) in patterns_in_code().items():
        anchored = bool(methods) and methods <= {"match", "fullmatch"}
        text = isinstance(pattern.pattern, str)

        def search(data: Any, pattern: re.Pattern[Any] = pattern, anchored: bool = anchored) -> None:
            if anchored:
                pattern.match(data)
                return
            for count, _ in enumerate(pattern.finditer(data)):
                if count >= MOST_FOUND:
                    return

        def call(attack: Attack, size: int, text: bool = text, search: Callable[[Any], None] = search) -> None:
            data = attack.text(size) if text else attack.record(size)
            _boxed(lambda: search(data))

        size = _BOUNDED.get(name, HOSTILE_BYTES)
        told = f"{name} ({'match' if anchored else 'search'}{'' if size == HOSTILE_BYTES else f', {size} bytes'})"
        yield from measure(told, call, _attacks_on(pattern), size)


def readers() -> Iterator[Row]:
    """Yield a row for each function that searches a whole record."""
    known = patterns_in_code()
    for name, function, module in _READERS:
        made = [attack for place, (pattern, _) in known.items() if place.startswith(module) for attack in _attacks_on(pattern)]

        def call(attack: Attack, size: int, function: Callable[[bytes], object] = function) -> None:
            record = attack.record(size)
            _boxed(lambda: function(record))

        yield from measure(name, call, made)


def whole_records() -> Iterator[Row]:
    """Yield a row for each record with literals of all rules and markers, filled up in several ways."""
    engine = Engine(shipped(), load_catalogue(), by_layout=False)
    gates = b" ".join(sorted({*engine.rules_by_literal, *engine.markers_by_literal})).decode("latin-1")
    fillers = (" ", "0", "a", "a ", "a:1 ", "a=1 ", "1,", "| ", ": ", "{", '"', "'", "(", "[", "=", "\x01")
    for attack in (Attack(gates, filler, "") for filler in fillers):

        def call(attack: Attack, size: int) -> None:
            engine.finish(engine.scan([attack.record(size) + b"\n"]))

        yield from measure("all rules and markers", call, [attack])


def main() -> int:
    """Print the table; return 1 if a pattern exceeds its bound."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.patterns", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--only", choices=["rules", "markers", "code", "readers"], help="one part of the table")
    parser.add_argument("--whole", action="store_true", help="also records that pass all gates at once")
    options = parser.parse_args()
    signal.signal(signal.SIGPROF, _break_off)
    parts = {"rules": rules, "markers": markers, "code": in_code, "readers": readers}
    rows = [row for name, part in parts.items() if options.only in (None, name) for row in part()]
    rows.sort(reverse=True)
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps([row._asdict() for row in rows], indent=1) + "\n", "utf-8")
    late = [row for row in rows if row.seconds > HOSTILE_BOUND_S]
    print(f"{len(rows)} patterns, CPU seconds for the worst record of {HOSTILE_BYTES} bytes; bound {HOSTILE_BOUND_S}")
    _show(rows[: options.rows])
    if options.whole:
        made = sorted(whole_records(), reverse=True)
        print("\nrecords that pass all gates")
        _show(made[: options.rows])
    return 1 if late else 0


def _show(rows: list[Row]) -> None:
    for row in rows:
        print(f"{row.seconds:9.4f}  n^{row.exponent:4.2f}  {row.name:46}  {row.made}")


def _break_off(*_: object) -> None:
    raise _Late


if __name__ == "__main__":
    sys.exit(main())
