"""Match records to rules and fold them into columns; neighbouring segments merge in any grouping.

In: blocks of bytes, grammars, the marker catalogue. Out: columns per rule, marker hits and counts of a segment of a log.
Start with ``engine`` (the fold), ``segment`` (its result), ``extraction`` (one record).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "columns": "NumberColumn POSITION_BITS RuleColumns TextColumn place",
    "engine": "Engine Read",
    "extraction": (
        "DROPPED Extraction keep_labelled PatternTimeout TIME_BOX_S bind_cells bind_row convert "
        "extract is_other plan_columns read_record read_unregistered Span"
    ),
    "forms": "MARK",
    "number_forms": "number_form scale_of is_plain",
    "presence": "has_kernel",
    "row_texts": "RowTexts places_of with_digits",
    "segment": "ABSENT Doubt RuleKey SegmentBody Hits Segment HEAD_KEPT TAIL_KEPT count_between",
    "workers": "AUTO kept_engine scan_source",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
