"""Write a drafted grammar as the text of a grammar file, with samples and remarks for a reviewer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import indent
from typing import Any

from receipt_cli.definitions.strict_yaml import write_yaml


def write_draft(
    definition: Mapping[str, Any],
    samples: Mapping[str, Sequence[Mapping[str, Any]]],
    no_match: Sequence[str],
    comment: Sequence[str],
    remarks: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """Return the YAML of ``definition``, the ``samples`` of each rule (``line`` and ``fields``) and ``no_match`` lines.

    The file begins with ``comment``; the ``remarks`` on a rule come right before it.
    """
    text = _remarks(["yaml-language-server: $schema=../../schemas/grammar/v1.0.schema.json", *comment])
    text += write_yaml({key: value for key, value in definition.items() if key != "rules"}, flow=False) + "rules:\n"
    for name, body in definition["rules"].items():
        text += indent(_remarks((remarks or {}).get(name, ())) + write_yaml({name: {**body, "samples": [*samples[name]]}}), "  ")
    return text + (write_yaml({"no_match": [*no_match]}, flow=False) if no_match else "")


def _remarks(texts: Sequence[str]) -> str:
    """Return a one-line comment for each of ``texts``; line breaks in a text become slashes."""
    return "".join(f"# {' / '.join(text.splitlines())}".rstrip() + "\n" for text in texts)
