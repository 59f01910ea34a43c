"""What a shell completes after an option or in place of an argument: the values that exist, each with a word of help."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def _grammars() -> Iterable[tuple[str, str]]:
    from receipt_cli.authoring.site_search import find_site
    from receipt_cli.grammar.catalog import shipped

    found = {grammar.id: grammar.title for grammar in (*shipped(), *find_site().grammars)}
    return sorted(found.items())


def _metrics() -> Iterable[tuple[str, str]]:
    from receipt_cli.definitions.metrics import load_registry

    return [(metric.name, metric.description) for metric in load_registry().metrics]


VALUES: dict[str, Callable[[], Iterable[tuple[str, str]]]] = {"grammar": _grammars, "metric": _metrics}
"""Each kind of values that an argument or option ``completes``, and what lists them."""


def completer(kind: str) -> Callable[[str], list[tuple[str, str]]] | None:
    """Return what lists the values of a kind that begin with what is typed so far; None for values that nobody can list."""
    if not kind:
        return None

    def complete(incomplete: str) -> list[tuple[str, str]]:
        return [(value, about) for value, about in VALUES[kind]() if value.startswith(incomplete)]

    return complete
