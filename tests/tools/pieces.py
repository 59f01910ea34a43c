"""Long arrays are looked at in pieces: small ones, for tests whose logs are short."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from receipt_cli.analysis import records
from receipt_cli.events import counters, table
from receipt_cli.events.naming import cells
from receipt_cli.numeric import ordinals, spill

SMALL = 7


@contextmanager
def small_pieces() -> Iterator[None]:
    """Look at few records at a time, everywhere."""
    with ExitStack() as stack:
        for module in (cells, counters, ordinals, spill, table):
            stack.enter_context(patch.object(module, "PIECE", SMALL))
        stack.enter_context(patch.object(records, "MOST", SMALL))
        stack.enter_context(patch.object(table, "BLOCK", SMALL))
        yield
