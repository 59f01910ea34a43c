"""Turn the results of evaluation programs into evaluation documents: JSON files, and tables in logs."""

from __future__ import annotations

__all__: list[str] = []
