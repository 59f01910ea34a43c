"""Lines with which a trainer begins (``start training``, its printed arguments) → the rule that parts the launches of a log."""

from __future__ import annotations

import re
from typing import Any

from receipt_cli.learn.emit import Induced, literal
from receipt_cli.learn.vocabulary import Vocabulary

BEGINS = (
    r"[^\n]{0,120}?(?<![\w/.])(?P<words>(?:<beginnings> (?:[\w-]{1,20} ){0,2}training|training (?:is |has )?<begun>)(?!\w)"
    r"(?! (?:for )?<counted>)|Namespace\(|sha: [\w/.]{1,40}, status: [^\n,]{1,40}, branch: )[^\n]{0,60}"
)
_TELLING = (b"raining", b"RAINING", b"Namespace(", b", branch: ")
_OF_TRAINING = _TELLING[:2]
PROGRAM = "program_begins"
"""The rule where a log has such lines of several programs: each is a launch, whatever its records look like."""
MAX_SPELLINGS = 4
MAX_KEPT = 64
MAX_LINE = 400
RARE = 3
"""Records of training that a launch has at least, on average: what is printed more often begins no launch."""


class Banners:
    """Collects the lines that begin a launch. Fed buffers of whole records."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._begins = re.compile(vocabulary.spelled(BEGINS).encode(), re.IGNORECASE)
        self._hints = tuple(word.encode() for word in ("namespace(", "sha: ", *vocabulary.beginnings, *vocabulary.begun))
        self.count = 0
        self.programs = 0
        """Lines that a program prints of its arguments or its checkout, before anything else."""
        self.samples: dict[bytes, bytes] = {}

    def take(self, buffer: bytes) -> None:
        """Look for such lines in ``buffer``."""
        for word in _TELLING:
            at = buffer.find(word)
            while at >= 0:
                start, end = buffer.rfind(b"\n", 0, at) + 1, buffer.find(b"\n", at)
                end = len(buffer) if end < 0 else end
                if word not in _OF_TRAINING or self._may_begin(buffer[start : min(end, start + MAX_LINE)]):
                    self._add(self._begins.match(buffer, start, min(end, start + MAX_LINE)))
                at = buffer.find(word, end)

    def _add(self, found: re.Match[bytes] | None) -> None:
        if found is not None:
            self.count += 1
            self.programs += found["words"].endswith((b"Namespace(", b"branch: "))
            if len(self.samples) < MAX_KEPT:
                text = found.group()[found.start("words") - found.start() :].strip()
                self.samples.setdefault(found["words"], text)

    def _may_begin(self, line: bytes) -> bool:
        """True for a line that speaks of a beginning: most that speak of training do not, and the pattern takes its time."""
        lowered = line.lower()
        return any(word in lowered for word in self._hints)


def induce_banner(banners: Banners, records: int) -> Induced | None:
    """Return the rule of the lines that begin a launch, if there is more than one in a log with so many ``records``."""
    if not 1 < banners.count <= records // RARE:
        return None
    spelled = sorted(banners.samples)[:MAX_SPELLINGS]
    pattern = rf"(?<![\w/.])(?:{'|'.join(literal(words) for words in spelled)})[^\n]*+"
    literals = [words.decode("ascii") for words in spelled]
    body: dict[str, Any] = {"event": "header", "literal": literals, "pattern": pattern, "fields": {}}
    name = PROGRAM if banners.programs > 1 else "launch_begins"
    return Induced(name, body, pattern, None, [banners.samples[words] for words in spelled])
