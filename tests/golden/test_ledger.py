"""The ledger of numeric cells closes: every labelled number of a step or an evaluation is in it, by a tokenizer of its own."""

from __future__ import annotations

import re
import string
from collections import Counter
from pathlib import Path

import pytest

from receipt_cli.derive import read_log
from receipt_cli.grammar.catalog import shipped
from receipt_cli.io.source import Source, Stream
from receipt_cli.records.envelope import plain, without_count
from receipt_cli.scan.extraction import keep_labelled, read_record
from receipt_cli.scan.extraction.model import DROPPED

ROOT = Path(__file__).resolve().parents[2]
LOGS = sorted(path.with_suffix("").with_suffix(".log") for path in (ROOT / "fixtures/logs").glob("*/*.receipt.json"))
CORPUS = sorted((ROOT.parent / "shared" / "corpus").glob("*/*/*.log"))
SMALL = 200_000
"""Bytes of a log that is read line by line in a test."""
SIGNS = frozenset("+-.0123456789")
SOURCES = (".py", ".c", ".cc", ".cpp", ".cu", ".h", ".hpp", ".go", ".rs", ".java", ".lua", ".jl")
LETTERS = string.ascii_letters + "/%"
ENDS = frozenset(" \t,;|)]}\"'<\n")


def labelled(text: str) -> list[tuple[str, int]]:
    """Return label and place of each number in a record, walking over it sign by sign: ``LABEL: NUMBER``, ``LABEL=NUMBER``."""
    found: list[tuple[str, int]] = []
    for at, sign in enumerate(text):
        if sign not in ":=":
            continue
        value = text[at + 1 :].lstrip(" \t")
        place = len(text) - len(value)
        size = next((i for i, c in enumerate(value) if c in ENDS), len(value))
        number = value[:size].rstrip(LETTERS)
        label = text[:at].rstrip(" \t\"'").split(" ")[-1].strip("\"'([{,;|")
        named = label[:1].isalpha() and all(c.isalnum() or c in "._/@%#-" for c in label) and not label.endswith(SOURCES)
        bar = value[:size].endswith("%") and value[size : size + 1] == "|"
        try:
            float(number.replace(",", "") if number[:1] in SIGNS else "x")
        except ValueError:
            continue
        if named and not bar and not value[len(number) : size].startswith("/") and size - len(number) <= 12 and place - at <= 17:
            found.append((label, place))
    return found


def close(path: Path) -> None:
    """Assert that the ledger of a log has what its lines have, one by one, and that no labelled number is outside of it."""
    reading = read_log([Stream((Source(str(path)),))])
    ledger = reading.told.ledger
    rules = {g.ref: [r for r in g.rules if r.table is None and r.block is None] for g in reading.grammars}
    counted: dict[str, Counter[str]] = {"other": Counter(), "dropped": Counter()}
    for record in re.split(rb"[\n\r]", plain(path.read_bytes())):
        for ref in rules:
            tried = [rule for rule in rules[ref] if any(literal in record for literal in rule.literals)]
            read = [(rule, events) for rule in tried if (events := read_record(rule, without_count(record)))]
            keep_labelled(without_count(record), read)
            spans: list[tuple[int, int]] = []
            for _, events in read:
                for event in events:
                    for key in event.unregistered:
                        dropped = key.startswith(DROPPED)
                        counted["dropped" if dropped else "other"][key.split(DROPPED)[-1]] += 1
                    spans += [*event.spans.values(), *event.unregistered_spans.values(), *event.declared, *event.unread]
            keeping = [e.start for rule, events in read if rule.event in ("step", "eval") for e in events]
            text = without_count(record).decode("latin-1")
            for label, place in labelled(text) if keeping and text.isascii() else ():
                assert place < min(keeping) or any(start <= place < end for start, end in spans), (path.name, label, text)
    tables = any(rule.table or rule.block for g in reading.grammars for rule in g.rules)
    versions = Counter(grammar.id for grammar in shipped())
    one = len(reading.launches) == 1 and all(versions[grammar.id] == 1 for grammar in reading.grammars)  # versions share rules
    if one and not tables:
        assert (+ledger.other, +ledger.dropped) == (counted["other"], counted["dropped"]), path.name


def small(path: Path) -> bool:
    return path.is_file() and path.stat().st_size < SMALL


@pytest.mark.parametrize("path", [path for path in LOGS if small(path)], ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_ledger_closes(path: Path) -> None:
    close(path)


@pytest.mark.skipif(not CORPUS, reason="the corpus is not beside the checkout")
def test_ledger_closes_over_the_corpus() -> None:
    for path in [path for path in CORPUS if small(path)][::12]:
        close(path)
