"""Name the cells that only another record names: cells of table rows by the header row, rows of blocks by their keys.

In: the columns of a rule as scanned. Out: columns like those of any other rule, whose records are the rows of a table or the
opening lines of blocks.
"""

from receipt_cli.events.naming.cells import Ledger, Notes, name_cells

__all__ = ["Ledger", "Notes", "name_cells"]
