"""Secrets of a text → masks that name their class: see ``mask.mask_secrets``."""
