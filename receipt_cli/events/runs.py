"""Read the records of a log and find its runs: a list of passes, in their order, that defines what a run is.

A pass decides one thing about each record, from the printed text and from the passes before it:

1. ``ranks.rank_of``: which process printed it.
2. ``epochs.count_epochs``: whether it is a step record, and its step if the trainer counts by epoch.
3. ``copies.without_copies``, ``ranks.led_of``: whether another process printed it, too.
4. ``step_numbers.number_steps``: its step if only the progress bar beside it shows one.
5. ``counters.set_aside``: whether its counter is wrong, or another writer's.
6. ``launches.split_launches``, ``banners.part_starts``: to which run it belongs. The modules name the signs of another.

``phases.split_phases`` then decides to which phase and attempt of the run a record belongs. If its step goes back and 6 found no
other run, it begins another attempt (``attempts``), which supersedes the earlier records at or beyond that step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from receipt_cli.definitions.failure_markers import Catalogue
from receipt_cli.events.banners import find_banners, part_starts
from receipt_cli.events.copies import without_copies
from receipt_cli.events.counters import set_aside
from receipt_cli.events.epochs import count_epochs
from receipt_cli.events.launches import Launch, split_launches
from receipt_cli.events.naming import Ledger, Notes, name_cells
from receipt_cli.events.ranks import led_of, rank_of
from receipt_cli.events.step_numbers import number_steps
from receipt_cli.events.table import EventTable, Source, log_of
from receipt_cli.grammar.model import MOMENTS, Grammar, Rule
from receipt_cli.io.source import Stream
from receipt_cli.problems import Problem
from receipt_cli.scan.columns import RuleColumns
from receipt_cli.scan.engine import Engine
from receipt_cli.scan.segment import SegmentBody

RESULTS = ("eval", "end")


class ReadEvents(NamedTuple):
    """The ``table`` of all records, the ``problems`` of cells without a name, and the ``ledger``: how many cells were read.

    ``more``: how many further rows without an opening line are in no problem."""

    table: EventTable
    problems: list[Problem]
    more: int
    ledger: Ledger


def read_events(engine: Engine, body: SegmentBody, grammars: Sequence[Grammar]) -> ReadEvents:
    """Return the events that ``grammars`` read, in log order.

    The results and times that a benchmark's harness prints beside the trainer of the first grammar are of the trainer's run.
    """
    problems: list[Problem] = []
    more = 0
    read: list[tuple[Grammar, Rule, RuleColumns]] = []
    ledger = Ledger()
    for grammar in grammars:
        notes = Notes(grammar, ledger, body.copied)
        beside = grammar.layer == "benchmark" and grammar is not grammars[0]
        rules = [
            rule for rule in grammar.rules if not beside or rule.event in RESULTS or not rule.fields.keys().isdisjoint(MOMENTS)
        ]
        scanned = [(rule, columns) for rule in rules if (columns := engine.columns(body, grammar, rule)) is not None]
        ledger.take(columns for _, columns in scanned)
        owner = grammars[0] if beside else grammar
        read += [(owner, rule, name_cells(notes, rule, columns)) for rule, columns in scanned]
        found, beyond = notes.problems()
        problems += found
        more += beyond
    return ReadEvents(EventTable(log_of(Source.of(*each) for each in read)), problems, more, ledger)


def find_runs(
    table: EventTable, body: SegmentBody, catalogue: Catalogue, streams: Sequence[Stream]
) -> tuple[EventTable, list[Launch]]:
    """Return the records of all ranks with their steps, and the runs in log order, at least one.

    The log is read again if steps go back, or if it has no step and several failures. Raises ``InputError``.
    """
    every = count_epochs(table.having(rank=rank_of(table)))
    kept = without_copies(every)
    kept = set_aside(number_steps(kept.where(~led_of(kept))))
    banners = find_banners(kept, streams)
    launches = part_starts(split_launches(kept, body, catalogue, banners), body, catalogue, streams)
    return every, [launch._replace(banners=tuple(sorted(at for at in banners if banners[at]))) for launch in launches]
