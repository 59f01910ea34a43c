"""What is read of a log that a test made."""

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from receipt_cli.derive import Derivation, Options, derive
from receipt_cli.io.source import Source
from receipt_cli.receipts.production import Request, produce

Found = TypeVar("Found")


def line(step: int, loss: float) -> str:
    """Return a line of nanoGPT."""
    return f"iter {step}: loss {loss:.4f}, time {100 + step % 7}.00ms, mfu 40.00%"


def receipt_of(log: str | Iterable[str], folder: Path | None = None) -> dict[str, Any]:
    """Return the receipt of a log that is given as its text or its lines."""
    return _written(log, folder, lambda path: produce(Request(path=path, workers=1)).document)


def learned_of(log: str | Iterable[str], folder: Path | None = None) -> Derivation:
    """Return what is learned of a log that is given as its text or its lines."""
    return _written(log, folder, lambda path: derive(Source(path), Options(grammar="generic")))


def _written(log: str | Iterable[str], folder: Path | None, read: Callable[[str], Found]) -> Found:
    with tempfile.NamedTemporaryFile("w", suffix=".log", dir=folder, encoding="utf-8") as file:
        file.write(log if isinstance(log, str) else "".join(f"{line}\n" for line in log))
        file.flush()
        return read(file.name)
