"""Mask secrets and control characters in text that is shown or stored.

In: text from a log, header or document. Out: the same text with ``[redacted:CLASS]`` marks, cut to its bound.
Start with ``text`` (the functions for callers), ``mask`` (the classes of secrets).
"""

from receipt_cli.rooms import doors

PUBLIC = {
    "mask": "count_masks mask_secrets",
    "text": "TAIL_BYTES clean log_tail mask_texts safe_names safe_text",
}
__getattr__, __dir__ = doors(__name__, PUBLIC)
