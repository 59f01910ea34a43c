"""Secrets of a text → masks that name their class: see ``mask.mask_secrets``."""

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
