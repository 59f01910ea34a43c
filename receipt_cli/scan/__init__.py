"""scan."""

from receipt_cli.rooms import doors

PUBLIC = {
    "NumberColumn": "columns",
    "POSITION_BITS": "columns",
    "RuleColumns": "columns",
    "place": "columns",
    "Engine": "engine",
    "Extraction": "extraction",
    "PatternTimeout": "extraction",
    "TIME_BOX_S": "extraction",
    "bind_cells": "extraction",
    "bind_row": "extraction",
    "convert": "extraction",
    "extract": "extraction",
    "read_record": "extraction",
    "MASK": "layout",
    "SegmentBody": "segment",
    "Hits": "segment",
    "Segment": "segment",
    "TAIL_KEPT": "segment",
    "AUTO": "workers",
    "scan_source": "workers",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
