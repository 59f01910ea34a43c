"""Match records to rules and fold them into columns; neighbouring segments merge in any grouping.

In: blocks of bytes, grammars, the marker catalogue. Out: columns per rule, marker hits and counts of a segment of a log.
Start with ``engine`` (the fold), ``segment`` (its result), ``extraction`` (one record).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "NumberColumn": "columns",
    "POSITION_BITS": "columns",
    "RuleColumns": "columns",
    "place": "columns",
    "Engine": "engine",
    "has_kernel": "engine",
    "Read": "engine",
    "DROPPED": "extraction",
    "Extraction": "extraction",
    "keep_labelled": "extraction",
    "PatternTimeout": "extraction",
    "TIME_BOX_S": "extraction",
    "bind_cells": "extraction",
    "bind_row": "extraction",
    "convert": "extraction",
    "extract": "extraction",
    "read_record": "extraction",
    "read_unregistered": "extraction",
    "MASK": "layout",
    "SegmentBody": "segment",
    "Hits": "segment",
    "Segment": "segment",
    "TAIL_KEPT": "segment",
    "AUTO": "workers",
    "kept_engine": "workers",
    "scan_source": "workers",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
