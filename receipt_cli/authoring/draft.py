"""Write a drafted grammar as the text of a grammar file, with samples and remarks, for review by a person."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_PLAIN = re.compile(r"[A-Za-z_][\w.-]*\Z")
_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n", "none"}


def write_draft(
    definition: Mapping[str, Any],
    samples: Mapping[str, Sequence[Mapping[str, Any]]],
    no_match: Sequence[str],
    comment: Sequence[str],
    remarks: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """Return the YAML of ``definition``, the ``samples`` of each rule (``line`` and ``fields``) and ``no_match`` lines.

    ``comment`` comes first, the ``remarks`` on a rule above it.
    """
    lines = ["# yaml-language-server: $schema=../../schemas/grammar/v1.0.schema.json", *map(_remark, comment)]
    for key, value in definition.items():
        if key != "rules":
            lines.append(f"{key}: {scalar(value)}")
    lines.append("rules:")
    for name, body in definition["rules"].items():
        lines += [f"  {_remark(text)}" for text in (remarks or {}).get(name, ())]
        lines.append(f"  {name}:")
        for key, value in body.items():
            lines += _entry(key, value, 4)
        lines.append("    samples:")
        for sample in samples[name]:
            lines.append(f"      - line: {scalar(sample['line'])}")
            fields = ", ".join(f"{key}: {scalar(value)}" for key, value in sample["fields"].items())
            lines.append(f"        fields: {{{fields}}}")
    if no_match:
        lines += ["no_match:", *(f"  - {scalar(line)}" for line in no_match)]
    return "\n".join(lines) + "\n"


def _remark(text: str) -> str:
    """Return ``text`` as a comment of one line, whatever it contains."""
    return f"# {' / '.join(text.splitlines())}".rstrip()


def _entry(key: str, value: Any, indent: int) -> list[str]:
    blanks = " " * indent
    if isinstance(value, dict) and key in ("fields", "block", "pairs", "mapping", "keys"):
        inner = [line for name, item in value.items() for line in _entry(str(name), item, indent + 2)]
        return [f"{blanks}{scalar(key)}:", *inner] if inner else [f"{blanks}{scalar(key)}: {{}}"]
    if isinstance(value, dict):
        inside = ", ".join(f"{scalar(k)}: {scalar(v)}" for k, v in value.items())
        return [f"{blanks}{scalar(key)}: {{{inside}}}"]
    if isinstance(value, list):
        return [f"{blanks}{scalar(key)}: [{', '.join(scalar(item) for item in value)}]"]
    if key == "pattern" and "\n" in value:
        return [f"{blanks}{scalar(key)}: |-", *(f"{blanks}  {line}" for line in value.split("\n"))]
    return [f"{blanks}{scalar(key)}: {scalar(value)}"]


def scalar(value: Any) -> str:
    """Return ``value`` as a YAML flow scalar that reads back as the same value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, int):
        return str(value)
    text = str(value)
    if _PLAIN.match(text) and text.lower() not in _WORDS:
        return text
    if text.isprintable() and "\n" not in text:
        return "'" + text.replace("'", "''") + "'"
    return json.dumps(text, ensure_ascii=not all(c.isprintable() or c in "\n\t" for c in text))


def _number(value: float) -> str:
    if value != value:
        return ".nan"
    if value in (float("inf"), float("-inf")):
        return ".inf" if value > 0 else "-.inf"
    if value == int(value) and abs(value) < 1 << 53:
        return repr(value) if "e" not in repr(value) else str(int(value))
    text = repr(value)
    mantissa, e, exponent = text.partition("e")
    return (
        text
        if not e
        else f"{mantissa if '.' in mantissa else mantissa + '.0'}e{exponent if exponent[0] in '+-' else '+' + exponent}"
    )
