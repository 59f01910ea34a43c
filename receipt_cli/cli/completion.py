"""Complete options and arguments in a shell: the values that exist, each with a word of help."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from receipt_cli.cli.commands import summaries
from receipt_cli.cli.settings import find_settings
from receipt_cli.errors import ReceiptError


def _grammars() -> Iterable[tuple[str, str]]:
    from receipt_cli.authoring.site_search import find_site
    from receipt_cli.grammar.catalog import shipped

    found = {grammar.id: grammar.title for grammar in (*shipped(), *find_site().grammars)}
    return sorted(found.items())


def _metrics() -> Iterable[tuple[str, str]]:
    from receipt_cli.definitions.metrics import load_registry

    return [(metric.name, metric.description) for metric in load_registry().metrics]


def _stored() -> list[dict[str, Any]]:
    """List the runs of the store that the settings name; none without a store."""
    from receipt_cli.store.listing import list_runs

    try:
        store = find_settings(os.environ).values.get("store")
        return list_runs(Path(store.value), None) if store is not None else []
    except ReceiptError:  # a key press is no time for errors
        return []


def _lanes() -> Iterable[tuple[str, str]]:
    return [(lane, "lane") for lane in sorted({row["lane"] for row in _stored() if row["lane"]})]


def _runs() -> Iterable[tuple[str, str]]:
    for row in _stored():
        yield from ((text, row["log_path"] or "run") for text in (row["name"], row["run_id"][:12]) if text)


def _commands() -> Iterable[tuple[str, str]]:
    return summaries().items()


VALUES: dict[str, Callable[[], Iterable[tuple[str, str]]]] = {
    "grammar": _grammars,
    "metric": _metrics,
    "lane": _lanes,
    "run": _runs,
    "command": _commands,
}
"""Kind of an argument or option → function that lists its values."""


def completer(kind: str) -> Callable[[str], list[tuple[str, str]]] | None:
    """Return a function that lists the values of a kind with a given beginning; None without a kind."""
    if not kind:
        return None

    def complete(incomplete: str) -> list[tuple[str, str]]:
        if kind == "run" and not incomplete:
            return []  # without values the shell completes files, and a run may be a file
        return [(value, about) for value, about in VALUES[kind]() if value.startswith(incomplete)]

    return complete
