"""receipt: a training log in, a small, typed, schema-versioned record out."""

__version__ = "0.2.0"
