"""Match records to rules and fold them into columns; neighbouring segments merge in any grouping.

In: blocks of bytes, grammars, the marker catalogue. Out: columns per rule, marker hits and counts of a segment of a log.
Start with ``engine`` (the fold), ``segment`` (its result), ``extraction`` (one record).
"""
