"""Tables of logs in YAML: how a program prints, and what is found in the receipt of its log.

A ``log`` is a line, or a list of lines and of what repeats or leaves out lines: ``for e in range(3)`` or ``if e % 2``. Lines that
are ``redrawn`` are parted by carriage returns. A line is filled as an f-string is: ``loss {3 - e / 10:.4f}`` falls. ``<word>``
stands for what is ``given`` for it: there is a test for each value, of several words for each of their pairs; or ``given`` lists
the words of each test. ``usual`` is what the other words stand for. ``grammar`` is the only one that may read the log.

What is ``found`` is named by its path in the receipt, or by the name of a metric: its first value, its last one, and the number
of its records. ``steps`` are the first, the last, the number of those planned and the number of records; ``metrics`` are
the names of all; ``problems`` are the kinds of those that are told, and ``fields of KIND`` are the fields of each of one kind;
``runs`` are the numbers of records of all runs of the log. What is ``null`` is not there.
"""

import math
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from receipt_cli.receipts.production import Request, produce_all
from tests.tools.logs import receipt_of, written


def rows_of(folder: Path, table: str = "*") -> list[Any]:
    """Return the rows of the tables of a folder, or of one of them, as parameters of a test."""
    found = []
    for path in sorted(folder.glob(f"{table}.yaml")):
        for row in yaml.safe_load(path.read_text("utf-8")):
            given, usual = row.get("given", [{}]), row.get("usual", {})
            if isinstance(given, dict):
                given = [dict(zip(given, values, strict=True)) for values in product(*given.values())]
            for number, words in enumerate(({**usual, **each} for each in given), 1):
                log, wanted, grammar = (_filled(row.get(key), words) for key in ("log", "found", "grammar"))
                case = words.get("case", f"({number})" if len(given) > 1 else "")
                found.append(pytest.param(log, wanted, grammar, id=f"{path.stem}: {row['name']} {case}".rstrip()))
    return found


def _filled(told: Any, words: dict[str, Any]) -> Any:
    """Return ``told`` with what is given for its words."""
    if isinstance(told, list):
        return [_filled(each, words) for each in told]
    if isinstance(told, dict):
        return {_filled(key, words): _filled(each, words) for key, each in told.items()}
    for word, value in words.items() if isinstance(told, str) else ():
        if told == f"<{word}>":
            return _filled(value, words)
        told = told.replace(f"<{word}>", str(value))
    return told


def lines_of(told: Any, names: dict[str, Any] | None = None) -> Iterator[str]:
    """Yield the lines of a log that a row tells; ``names`` are the counters of the loops around them."""
    names = names or {"exp": math.exp}
    if isinstance(told, str):
        yield eval(f"f{told!r}", names)
    elif isinstance(told, list):
        for each in told:
            yield from lines_of(each, names)
    else:
        for clause, inner in told.items():
            kind, _, rest = clause.partition(" ")
            bound, _, values = rest.partition(" in ")
            if kind == "for":
                for value in eval(values, names):
                    own = dict(zip(bound.split(", "), value, strict=True)) if "," in bound else {bound: value}
                    yield from lines_of(inner, {**names, **own})
            elif kind == "redrawn":
                yield "\r".join(lines_of(inner, names))
            elif eval(rest, names):
                yield from lines_of(inner, names)


def check_row(log: Any, found: dict[str, Any], grammar: str | None = None) -> None:
    """Hold the receipt of a log against what is found in it."""
    lines = [*lines_of(log)]
    document = receipt_of(lines, grammar)
    for key, wanted in found.items():
        told = _runs(lines) if key == "runs" else _told(document, key, wanted)
        assert _same(told, wanted), (key, told, wanted, "\n".join(lines)[:2000])


def _runs(lines: list[str]) -> list[int]:
    products = written(lines, "run.log", lambda path: [*produce_all(Request(path, workers=1))])
    return [each.document["summary"]["steps"]["record_count"] for each in products]


def _told(document: dict[str, Any], key: str, wanted: Any) -> Any:
    """Return what a receipt says of ``key``, as many values of a metric as are wanted."""
    summary = document["summary"] or {"steps": {}, "metrics": {}, "other_metrics": {}}
    series = {**summary["metrics"], **summary["other_metrics"]}
    if key == "steps":
        return [summary["steps"].get(name) for name in ("first", "last", "planned", "record_count")]
    if key == "metrics":
        return sorted(series)
    if key == "problems":
        return sorted(document["derivation"]["problems"]["kinds"])
    if key.startswith("fields of "):
        problems = document["derivation"]["problems"]["first"]
        return [problem["fields"] for problem in problems if problem["kind"] == key.removeprefix("fields of ")]
    if key in series:
        values = [series[key][name] for name in ("first", "last", "record_count")]
        return values[: len(wanted)] if isinstance(wanted, list) else series[key]
    assert key.split(".")[0] in document or "." not in key, key
    told: Any = document
    for name in key.split("."):
        told = told.get(name) if isinstance(told, dict) else None
    return told


def _same(told: Any, wanted: Any) -> bool:
    """Return whether what is told is what is wanted; of a mapping more may be told."""
    if isinstance(wanted, dict):
        return isinstance(told, dict) and all(key in told and _same(told[key], value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return isinstance(told, list) and len(told) == len(wanted) and all(map(_same, told, wanted))
    if isinstance(wanted, float) and isinstance(told, int | float):
        return math.isclose(told, wanted, rel_tol=1e-9)
    return bool(told == wanted) and isinstance(told, bool) == isinstance(wanted, bool)
