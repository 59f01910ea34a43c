"""The file ``<log>.times`` beside a log: when each piece of the log came. Format ``receipt-times/1`` (``docs/times.md``).

A head of fixed size, then entries, which are only appended. The head has two seals: digests of the log and of the entries up
to a size. They are written in turns, so that one of them holds whenever the writer is killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from dataclasses import asdict, dataclass
from hashlib import sha256

from receipt_cli.errors import OutputError, system_errors
from receipt_cli.io.protobuf import varint

MAGIC = b"receipt-times/1\n"
SEAL_BYTES = 240
HEAD_BYTES = len(MAGIC) + 2 * SEAL_BYTES
LAUNCH, END, FOLLOWED = 1, 2, 3
"""Kinds of marks: a command was started, or has ended; a log was followed whose command was not seen to start."""
EXACT_MS = 12288
"""Milliseconds from which on a span is rounded to a 512th, or less, of itself; two bytes hold up to ``LONG_MS``."""
COARSE, STEPS = 24, 512
LONG_MS = EXACT_MS << 8
LONG_CODE = 1 << 14
"""First code of whole seconds beyond ``LONG_MS``."""
SHARE, PER_LINE = 0.03, 3
"""Most bytes of entries: a share of the log, or bytes for each record of the log, whichever is more."""
FREE = 64
"""Bytes of entries for each launch that do not count."""
SEALED_S = 1.0
"""Seconds after which entries are written and sealed."""
_ENDS = re.compile(rb"\n|\r(?!\n)|\x08+")
_PIECE = 1 << 20


def code_of(span_ms: int) -> tuple[int, int]:
    """Return the code of a span of time, and the milliseconds that it stands for."""
    if span_ms < EXACT_MS:
        return span_ms, span_ms
    if span_ms >= LONG_MS:
        seconds = (span_ms - LONG_MS) // 1000
        return LONG_CODE + seconds, LONG_MS + 1000 * seconds
    power = (span_ms // EXACT_MS).bit_length() - 1
    steps = span_ms // (COARSE << power)
    return EXACT_MS + power * STEPS + steps - STEPS, steps * (COARSE << power)


@dataclass(frozen=True, slots=True)
class Seal:
    """Sizes and digests up to which a file of times is whole: of the log, and of the entries."""

    log_bytes: int
    log_sha256: str
    entry_bytes: int
    entries_sha256: str

    def line(self) -> bytes:
        """Return the seal as it stands in the head."""
        return json.dumps(asdict(self), separators=(",", ":")).encode().ljust(SEAL_BYTES - 1) + b"\n"

    @classmethod
    def read(cls, line: bytes) -> Seal | None:
        """Return the seal in a line of the head, None if it is not whole."""
        try:
            seal = cls(**json.loads(line))
        except (ValueError, TypeError, RecursionError):
            return None
        sizes = (seal.log_bytes, seal.entry_bytes)
        return seal if all(type(size) is int and size >= 0 for size in sizes) and isinstance(seal.log_sha256, str) else None


def sealed_entries(data: bytes) -> tuple[Seal, bytes] | None:
    """Return the newest seal of a file of times that fits its entries, and these entries; None without one."""
    if not data.startswith(MAGIC):
        return None
    lines = (data[at : at + SEAL_BYTES] for at in (len(MAGIC), len(MAGIC) + SEAL_BYTES))
    seals = [seal for line in lines if (seal := Seal.read(line)) is not None]
    for seal in sorted(seals, key=lambda seal: -seal.entry_bytes):
        entries = data[HEAD_BYTES : HEAD_BYTES + seal.entry_bytes]
        if len(entries) == seal.entry_bytes and sha256(entries).hexdigest() == seal.entries_sha256:
            return seal, entries
    return None


def _lock(descriptor: int) -> None:
    """Lock a file, if its file system has locks. Raises ``BlockingIOError`` if another process writes it."""
    import fcntl  # not on Windows, where nothing is recorded

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise
    except OSError:
        return


class TimesWriter:
    """Writes the times of one launch. It belongs to the process that writes the log.

    Times are seconds of a monotonic clock. A failure ends the file and not the log: ``problem`` says why, "" while it is
    written.
    """

    def __init__(
        self,
        path: str,
        log: int,
        *,
        append: bool,
        pause_s: float,
        now: float,
        wall: float,
        known: int | None = None,
    ) -> None:
        """Begin a launch at ``now``, in seconds since 1970 at ``wall``, of the log that the descriptor ``log`` is open for.

        Output that came within ``pause_s`` may have one time. With ``append`` the file goes on if it fits the log, else it begins
        anew, and what the log has already gets no time: its first ``known`` bytes, if it is followed from there on and looked at
        every ``pause_s``. Raises ``OutputError``.
        """
        self.problem = ""
        self._log_digest, self._entry_digest = sha256(), sha256()
        self._log_bytes = self._entry_bytes = self._records = self._seals = 0
        with system_errors(OutputError, "cannot write the times", path):
            self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            _lock(self.descriptor)
            skipped = self._go_on(log, os.fstat(log).st_size if known is None else known) if append else 0
            os.ftruncate(self.descriptor, HEAD_BYTES + self._entry_bytes)
            os.pwrite(self.descriptor, MAGIC, 0)
        self._pending = bytearray()
        self._held: tuple[int, int] | None = None
        """Bytes without an entry yet, and when the last of them came [ms]."""
        self._start, self._time = now, 0
        self._own_bytes = self._sealed_bytes = 0
        self._line_begins = True
        self._sealed_at = now
        self._mark(LAUNCH if known is None else FOLLOWED, round(1000 * wall), skipped, max(1, round(1000 * pause_s)))
        self._free = self._entry_bytes + len(self._pending) + FREE
        self._seal(now)

    def _go_on(self, log: int, size: int) -> int:
        """Read the first ``size`` bytes of the log and what the file has; return how many of these bytes have no time."""
        data = bytearray()
        while piece := os.pread(self.descriptor, _PIECE, len(data)):
            data += piece
        found = sealed_entries(bytes(data))
        if found is not None and found[0].log_bytes <= size:
            seal, entries = found
            self._hash(log, seal.log_bytes)
            if self._log_digest.hexdigest() == seal.log_sha256:
                self._entry_digest.update(entries)
                self._entry_bytes = len(entries)
        fits = self._log_bytes if self._entry_bytes else 0
        self._hash(log, size)
        return size - fits

    def _hash(self, log: int, end: int) -> None:
        while self._log_bytes < end and (piece := os.pread(log, min(_PIECE, end - self._log_bytes), self._log_bytes)):
            self._log_digest.update(piece)
            self._log_bytes += len(piece)

    @property
    def waiting(self) -> bool:
        """Whether there is something to seal."""
        return not self.problem and self._log_bytes > self._sealed_bytes

    def add(self, data: bytes | memoryview, now: float) -> None:
        """Note that ``data``, the next bytes of the log, came at ``now``; an earlier time than the last counts as the last."""
        if self.problem or not len(data):
            return
        text = bytes(data)
        came = max(self._time if self._held is None else self._held[1], round(1000 * (now - self._start)))
        if self._held is not None and came > self._held[1] and text[0] in b"\n\r\x08" and not self._line_begins:
            self._settle()  # what came before is a whole record
        self._held = (0 if self._held is None else self._held[0]) + len(text), came
        self._log_digest.update(text)
        self._log_bytes += len(text)
        self._own_bytes += len(text)
        self._line_begins = text[-1] in b"\n\r\x08"
        ends = len(_ENDS.findall(text))
        self._records += ends
        if ends:
            self._settle()

    def _settle(self) -> None:
        """Make an entry of what is held, unless there are too many: then it gets the time of what comes next."""
        spent = self._entry_bytes + len(self._pending) - self._free
        self._entry(int(max(PER_LINE * self._records, SHARE * self._own_bytes)) - spent)

    def _entry(self, room: int = 1 << 10) -> None:
        """Make an entry of what is held if it takes at most ``room`` bytes."""
        if self._held is not None:
            code, span = code_of(self._held[1] - self._time)
            entry = varint(code) + varint(self._held[0])
            if len(entry) <= room:
                self._time += span
                self._pending += entry
                self._held = None

    def _mark(self, *numbers: int, span_ms: int = 0) -> None:
        code, span = code_of(span_ms)
        self._pending += b"".join(map(varint, (code, 0, *numbers)))
        self._time += span

    def tick(self, now: float) -> None:
        """Seal the entries if the last seal is older than ``SEALED_S``."""
        if self.waiting and now - self._sealed_at >= SEALED_S:
            self._seal(now)

    def close(self, now: float, *, ended: bool = True) -> None:
        """Note the end of the launch, if it has ``ended``, and close the file."""
        if not self.problem:
            self._entry()
            if ended:
                self._mark(END, span_ms=max(0, round(1000 * (now - self._start)) - self._time))
            self._seal(now)
        if self.descriptor >= 0:
            with contextlib.suppress(OSError):
                os.close(self.descriptor)
        self.descriptor = -1

    def _seal(self, now: float) -> None:
        """Write the entries, and then the seal in place of the older one."""
        self._sealed_at, self._sealed_bytes = now, self._log_bytes
        data = bytes(self._pending)
        try:
            if os.pwrite(self.descriptor, data, HEAD_BYTES + self._entry_bytes) < len(data):
                raise OSError("no space")
            self._entry_digest.update(data)
            self._entry_bytes += len(data)
            self._pending.clear()
            seal = Seal(self._log_bytes, self._log_digest.hexdigest(), self._entry_bytes, self._entry_digest.hexdigest())
            os.pwrite(self.descriptor, seal.line(), len(MAGIC) + SEAL_BYTES * (self._seals % 2))
            self._seals += 1
        except OSError as error:
            self.problem = error.strerror or str(error)
