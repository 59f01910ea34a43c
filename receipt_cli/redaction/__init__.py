"""Mask secrets and control characters in text that is shown or stored.

In: text from a log, header or document. Out: the same text with ``[redacted:CLASS]`` marks, cut to its bound.
Start with ``text`` (the functions for callers), ``mask`` (the classes of secrets).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "count_masks": "mask",
    "mask_secrets": "mask",
    "TAIL_BYTES": "text",
    "clean": "text",
    "log_tail": "text",
    "mask_texts": "text",
    "safe_names": "text",
    "safe_text": "text",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
