"""Read the events of a log from the columns of the chosen grammars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from receipt_cli.events.naming import Ledger, Notes, name_cells
from receipt_cli.events.table import EventTable, Source, log_of
from receipt_cli.grammar.model import Grammar, Rule
from receipt_cli.problems import Problem
from receipt_cli.scan.columns import RuleColumns
from receipt_cli.scan.engine import Engine
from receipt_cli.scan.segment import SegmentBody


class ReadEvents(NamedTuple):
    """The ``table`` of all records, the ``problems`` of naming cells, how many rows without an opening line have none of these
    (``more``), and the ``ledger``, which counts cells."""

    table: EventTable
    problems: list[Problem]
    more: int
    ledger: Ledger


def read_events(engine: Engine, body: SegmentBody, grammars: Sequence[Grammar]) -> ReadEvents:
    """Return the events that ``grammars`` read, in log order."""
    problems: list[Problem] = []
    more = 0
    read: list[tuple[Grammar, Rule, RuleColumns]] = []
    ledger = Ledger()
    for grammar in grammars:
        notes = Notes(grammar, ledger, body.copied)
        scanned = [(rule, columns) for rule in grammar.rules if (columns := engine.columns(body, grammar, rule)) is not None]
        ledger.take(columns for _, columns in scanned)
        read += [(grammar, rule, name_cells(notes, rule, columns)) for rule, columns in scanned]
        found, beyond = notes.problems()
        problems += found
        more += beyond
    return ReadEvents(EventTable(log_of(Source.of(*each) for each in read)), problems, more, ledger)
