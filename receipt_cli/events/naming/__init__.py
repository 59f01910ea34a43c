"""Name the cells that only another record names: those of a table's rows, by the header before them, and a block's rows.

In: the columns of a rule as scanned. Out: columns like those of any other rule, whose rows are the records of the table,
or the opening lines of the blocks.
"""

from receipt_cli.events.naming.cells import Ledger, Notes, name_cells

__all__ = ["Ledger", "Notes", "name_cells"]
