"""Lines that tell that a program begins (``start training``), or of a checkpoint (``Saving model to a.pt``) → rules for them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from receipt_cli.learn.emit import Induced, literal
from receipt_cli.learn.vocabulary import Vocabulary

BEGINS = (
    r"[^\n]{0,120}?(?<![\w/.])(?P<words>(?:<beginnings> (?:[\w-]{1,20} ){0,2}training|training (?:is |has )?<begun>)(?!\w)"
    r"(?! (?:for )?<counted>)|Namespace\(|sha: [\w/.]{1,40}, status: [^\n,]{1,40}, branch: )[^\n]{0,60}"
)
SAVES = (
    r"[^\n]{0,80}?(?<![\w/.'\"`])(?P<words><writes> (?:<which> ){0,3}<kept> <into> |<snapshots> (?:was )?<written> <into> )"
    r"(?=\S)[^\n]{0,200}"
)
PROGRAM = "program_begins"
"""The rule where a log has such lines of several programs: each is a launch, whatever its records look like."""
_OF_PROGRAMS = (b"Namespace(", b", branch: ")
MAX_SPELLINGS = 4
MAX_LINE = 400
RARE = 3
"""Records of training that a launch has at least, on average: what is printed more often begins no launch."""


class Notices:
    """Collects the lines that match one pattern, such as those that announce an evaluation. Fed buffers of whole records."""

    def __init__(self, pattern: re.Pattern[bytes], telling: Sequence[bytes], needed: Sequence[bytes] = ()) -> None:
        """Each line has a text of ``telling`` and, in lower case, one of ``needed``; only such lines are matched."""
        self._pattern, self._telling, self._needed = pattern, telling, needed
        self.count = 0
        self.programs = 0
        """Lines that a program prints of its arguments or its checkout, before anything else."""
        self.samples: dict[bytes, bytes] = {}

    def take(self, buffer: bytes) -> None:
        """Look for such lines in ``buffer``."""
        behind = 0
        for at in sorted(at for text in self._telling for at in _places(buffer, text)):
            if at < behind:
                continue
            start, behind = buffer.rfind(b"\n", 0, at) + 1, buffer.find(b"\n", at)
            behind = len(buffer) if behind < 0 else behind
            line = buffer[start : min(behind, start + MAX_LINE)]
            lowered = line.lower() if self._needed else line
            found = self._pattern.match(line) if not self._needed or any(text in lowered for text in self._needed) else None
            if found is not None:
                self.count += 1
                self.programs += found["words"].endswith(_OF_PROGRAMS)
                if len(self.samples) < MAX_SPELLINGS:
                    self.samples.setdefault(found["words"], found.group()[found.start("words") :].strip())

    def rule(self, name: str, event: str, before: str, behind: str = "") -> Induced:
        """Return the rule of these lines; ``before`` and ``behind`` are patterns of what is around their words."""
        spelled = sorted(self.samples)
        pattern = rf"{before}(?:{'|'.join(literal(words) for words in spelled)}){behind}[^\n]*+"
        literals = [words.decode("ascii") for words in spelled]
        body: dict[str, Any] = {"event": event, "literal": literals, "pattern": pattern, "fields": {}}
        return Induced(name, body, pattern, None, [self.samples[words] for words in spelled])


def _places(buffer: bytes, text: bytes) -> Iterator[int]:
    """Yield the offsets of ``text``, once in each line."""
    at = buffer.find(text)
    while at >= 0:
        yield at
        end = buffer.find(b"\n", at)
        at = buffer.find(text, end) if end >= 0 else -1


def banners(vocabulary: Vocabulary) -> Notices:
    """Return the collector of the lines that begin a launch."""
    needed = tuple(word.encode() for word in ("namespace(", "sha: ", *vocabulary.beginnings, *vocabulary.begun))
    return Notices(_compiled(BEGINS, vocabulary), (b"raining", b"RAINING", *_OF_PROGRAMS), needed)


def saves(vocabulary: Vocabulary) -> Notices:
    """Return the collector of the lines that tell of a saved checkpoint."""
    telling = tuple(word[1:].encode() for word in sorted(vocabulary.writes | vocabulary.written))  # in either case
    return Notices(_compiled(SAVES, vocabulary), telling)


def _compiled(pattern: str, vocabulary: Vocabulary) -> re.Pattern[bytes]:
    return re.compile(vocabulary.spelled(pattern).encode(), re.IGNORECASE)


def induce_banner(found: Notices, records: int) -> Induced | None:
    """Return the rule of the lines that begin a launch, if there is more than one in a log with so many ``records``."""
    name = PROGRAM if found.programs > 1 else "launch_begins"
    return found.rule(name, "header", r"(?<![\w/.])") if 1 < found.count <= records // RARE else None


def induce_saves(found: Notices, records: int) -> Induced | None:
    """Return the rule of the lines about checkpoints in a log with so many ``records`` of training; None if there are more."""
    return found.rule("checkpoint", "checkpoint", r"(?<![\w/.'\"`])", r"(?=\S)") if 0 < found.count <= records else None
