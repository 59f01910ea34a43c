"""Lines that tell of a saved checkpoint (``Saving checkpoint to out/10.pt``) → the rule that reads them."""

from __future__ import annotations

import re
from typing import Any

from receipt_cli.learn.emit import Induced, literal
from receipt_cli.learn.vocabulary import Vocabulary

SAVES = (
    r"[^\n]{0,80}?(?<![\w/.'\"`])(?P<words><writes> (?:<which> ){0,3}<kept> <into> |<snapshots> (?:was )?<written> <into> )"
    r"(?=\S)[^\n]{0,200}"
)
MAX_SPELLINGS = 4
MAX_LINE = 400


class Saves:
    """Collects the lines that tell of a saved checkpoint. Fed buffers of whole records."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._saves = re.compile(vocabulary.spelled(SAVES).encode(), re.IGNORECASE)
        self._telling = tuple(word[1:].encode() for word in sorted(vocabulary.writes | vocabulary.written))  # in either case
        self.count = 0
        self.samples: dict[bytes, bytes] = {}

    def take(self, buffer: bytes) -> None:
        """Look for such lines in ``buffer``."""
        behind = 0
        for at in sorted(at for word in self._telling for at in _places(buffer, word)):
            if at < behind:
                continue
            start = max(buffer.rfind(b"\n", 0, at), buffer.rfind(b"\r", 0, at)) + 1
            end = buffer.find(b"\n", at)
            behind = len(buffer) if end < 0 else end
            found = self._saves.match(buffer, start, min(behind, start + MAX_LINE))
            if found is not None:
                self.count += 1
                if len(self.samples) < MAX_SPELLINGS:
                    self.samples.setdefault(found["words"], found.group()[found.start("words") - found.start() :].strip())


def _places(buffer: bytes, word: bytes) -> list[int]:
    """Return the offsets of ``word``, once in each line."""
    places: list[int] = []
    at = buffer.find(word)
    while at >= 0:
        places.append(at)
        end = buffer.find(b"\n", at)
        at = buffer.find(word, end) if end >= 0 else -1
    return places


def induce_saves(saves: Saves, records: int) -> Induced | None:
    """Return the rule of the lines about checkpoints in a log with so many ``records`` of training; None if there are more."""
    if not 0 < saves.count <= records:
        return None
    spelled = sorted(saves.samples)
    pattern = rf"(?<![\w/.'\"`])(?:{'|'.join(literal(words) for words in spelled)})(?=\S)[^\n]*+"
    literals = [words.decode("ascii") for words in spelled]
    body: dict[str, Any] = {"event": "checkpoint", "literal": literals, "pattern": pattern, "fields": {}}
    return Induced("checkpoint", body, pattern, None, [saves.samples[words] for words in spelled])
