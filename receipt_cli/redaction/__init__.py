"""Mask the secrets of a text and clean it for a document.

In: a text, or JSON-like values. Out: the same with ``[redacted:CLASS]`` for each secret (``mask.mask_secrets``), and without
control characters (``text.safe_text``).
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
