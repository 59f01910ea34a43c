"""All that the runs of a log give, in a form that two ways of reading it are compared in."""

from pathlib import Path

from receipt_cli.derive import Options, read_log
from receipt_cli.io.joined_parts import Stream
from receipt_cli.io.source import Source
from receipt_cli.receipts.assembly import assemble
from receipt_cli.receipts.series_file import SeriesRows


def told_of(path: Path, options: Options) -> list[tuple[object, ...]]:
    """Return the receipt of each run of a log, its ending, its ranks, all values of its figures and all records, NaN as text."""
    reading = read_log([Stream((Source(str(path)),))], options, workers=1)
    found = [reading.derivation(number) for number in range(len(reading.launches))]
    return [
        (
            repr(assemble(one, run={}, header={}, attachments=[])),
            repr((one.ending, one.ranks)),
            [[(name, list(map(repr, map(float, values)))) for name, values in s.series.items()] for s in one.summaries],
            [(name, repr(values.tolist())) for name, values in SeriesRows(one).arrays().items()],
        )
        for one in found
    ]
