"""Fast path of the events: records that need no ``Event`` object each stay rows of their columns.

In: the columns of the chosen grammars. Out: ``rows.CompactRows``: the rows to make events of, and the others as arrays.

Law: the receipt is the one that single objects give, to the last bit. ``events.build`` alone imports this package.
"""
