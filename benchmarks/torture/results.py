"""What the tools found out, in one JSON file: each writes the part that is its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine


def note(path: Path, part: str, rows: list[dict[str, Any]]) -> None:
    """Put ``rows`` into the file as its ``part``, with the machine that they were made on; other parts stay."""
    whole = json.loads(path.read_text("utf-8")) if path.exists() else {}
    whole[part] = {"machine": describe_machine(), "rows": rows}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", "utf-8")
