"""The names of a stream by id, bounded; an id with two names has none."""

from __future__ import annotations

from receipt_cli.gpu_profile.batch import Json
from receipt_cli.gpu_profile.problems import StreamProblems
from receipt_cli.redaction.text import safe_text

MAX_NAME = 2000
"""Longest name kept, in characters."""
_MAX_ENTRIES = 1 << 17
_MAX_CHARACTERS = 32 << 20
"""Most characters of all names in one dictionary."""
_DIGITS = 19


class Dictionary:
    """The names of one kind: ``kernel_dict`` or ``scope_name_dict``. Updates may come anywhere in the stream."""

    def __init__(self, key: str) -> None:
        self.key = key
        self._names: dict[int, str | None] = {}
        self._characters = 0

    def update(self, record: Json, problems: StreamProblems, file: str, line: int) -> None:
        """Add the names of this kind from a ``dictionary_update``."""
        declared = record.get(self.key)
        if declared is None:
            return
        if not isinstance(declared, dict):
            problems.add("unreadable_value", f"{file}: {self.key} is not a dictionary", line=line)
            return
        for text, name in declared.items():
            if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS) or not isinstance(name, str):
                problems.add("unreadable_value", f"{file}: {self.key} has an entry that names no id", line=line, excerpt=text)
            elif not self._put(int(text), name[:MAX_NAME]):
                problems.add("name_twice", f"{file}: {self.key}: id {int(text)} has two names; neither is used", line=line)

    def name(self, identity: int) -> str | None:
        """Return the name of an id, safe for a document; None for an unknown or ambiguous id."""
        name = self._names.get(identity)
        return None if name is None else shown(name)

    def _put(self, identity: int, name: str) -> bool:
        if identity in self._names:
            if self._names[identity] == name:
                return True
            self._names[identity] = None
            return False
        if len(self._names) < _MAX_ENTRIES and self._characters + len(name) <= _MAX_CHARACTERS:
            self._characters += len(name)
            self._names[identity] = name
        return True


def shown(name: str) -> str | None:
    """Return a recorded name, safe for a document; None if nothing of it is left."""
    return safe_text(name, MAX_NAME) or None
