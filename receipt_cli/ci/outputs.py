"""A verdict → the values that later steps and jobs read: GitHub's ``$GITHUB_OUTPUT`` and dotenv files (GitLab)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from receipt_cli.ci.verdict import Verdict

_WORDS = {True: "true", False: "false"}


def list_outputs(document: Mapping[str, Any], verdict: Verdict) -> dict[str, str]:
    """Return names and values, all of a closed set: nothing that a log could have written."""
    baseline = verdict.baseline
    return {
        "passed": _WORDS[verdict.passed],
        "healthy": _WORDS[verdict.healthy],
        "proven": _WORDS[verdict.proven],
        "completed": _WORDS.get(document["checks"].get("completed"), "unknown"),
        "failure_reason": (document.get("failure") or {}).get("reason") or "",
        "comparability": baseline.verdict if baseline is not None else "",
        "failed_count": str(verdict.count("failed")),
        "unknown_count": str(verdict.count("unknown")),
    }


def render_outputs(outputs: Mapping[str, str]) -> str:
    """Return ``name=value`` lines for ``$GITHUB_OUTPUT``."""
    return "".join(f"{name}={value}\n" for name, value in outputs.items())


def render_dotenv(outputs: Mapping[str, str]) -> str:
    """Return ``RECEIPT_NAME=value`` lines for a dotenv report."""
    return render_outputs({f"RECEIPT_{name.upper()}": value for name, value in outputs.items()})
