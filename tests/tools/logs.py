"""What is read of a log that a test made."""

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from receipt_cli.derive import Derivation, Options, derive
from receipt_cli.io.source import Source
from receipt_cli.receipts.production import Request, produce
from tests.tools.toy_trainer import GRAMMAR

Found = TypeVar("Found")
Log = str | bytes | Iterable[str]
"""Its text or its lines."""


def line(step: int, loss: float) -> str:
    """Return a line of nanoGPT."""
    return f"iter {step}: loss {loss:.4f}, time {100 + step % 7}.00ms, mfu 40.00%"


def receipt_of(log: Log, grammar: str | None = None, exit_code: int | None = None, **options: Any) -> dict[str, Any]:
    """Return the receipt of a log; ``grammar`` names a grammar or is the text of one, ``exit_code`` what the caller knows."""
    options = {"exit_code": exit_code, "workers": 1, **options}
    if grammar is not None and "\n" in grammar:
        return written(grammar, "v1.yaml", lambda path: receipt_of(log, path, **options))
    return written(log, "run.log", lambda path: produce(Request(path, grammar=grammar, **options)).document)


TOY = (
    GRAMMAR.replace("toy bar ", "toy gauge ").replace("toy frame ", "toy bar ").replace("peak_memory_allocated_", "peak_memory_")
)
TOY += "ignore:\n  saving: {literal: 'toy saving', pattern: 'toy saving', samples: ['toy saving']}\n"


def toy_receipt(log: Log, exit_code: int | None = None) -> dict[str, Any]:
    """Return the receipt of a log in the format of ``TOY``."""
    return receipt_of(log, TOY, exit_code)


def derived_of(log: Log, grammar: str | None = None) -> Derivation:
    """Return what is derived of a log."""
    return written(log, "run.log", lambda path: derive(Source(path), Options(grammar=grammar)))


def learned_of(log: Log) -> Derivation:
    """Return what is learned of a log."""
    return derived_of(log, "generic")


def written(given: Log, name: str, read: Callable[[str], Found]) -> Found:
    """Return what is read of a file of this name."""
    text = given if isinstance(given, str | bytes) else "".join(f"{line}\n" for line in given)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return read(str(path))
