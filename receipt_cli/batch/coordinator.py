"""Coordinate a batch: derive one receipt per log of an archive into a store.

Two rounds. First every log is hashed, unless its file is known and unchanged: the digest shows which logs are equal, which are
done, and which receipt's captured parts a new one keeps. Then each distinct unfinished log is derived, once. So the store does
not depend on the order of the paths or of the work.

This process keeps little per log: a packed text of the listing, digest and size, and the position of the first log with the
same bytes. Tasks are made when a worker is free, reports when it is their turn.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from receipt_cli.batch.discovery import BY_STEM, Drawn, Labels, kind_of
from receipt_cli.batch.model import Engine, Failure, Identity, LeftOut, Log, Lost, Manner, Report, Task
from receipt_cli.batch.worker import MANNER, definitions_fingerprint, derive_receipt, identify
from receipt_cli.errors import ExitCode, ReceiptError
from receipt_cli.io.compression import samples_name, times_name
from receipt_cli.store.files import Quarantined, Store
from receipt_cli.store.fingerprints import Known, KnownLog, PackedRows
from receipt_cli.store.places import place_files, write_place
from receipt_cli.store.resolve import note_root

Progress = Callable[[str, int, int, int, int], None]
"""(activity, logs done, logs in total, bytes done, bytes in total)"""


class BatchStopped(ReceiptError):
    """The batch cannot continue for a reason other than a log; finished work stays, and the same command resumes."""

    def __init__(self, failure: Failure) -> None:
        again = "fix this, then run the same command to resume"
        super().__init__(failure.error, why=failure.why, try_=again)
        self.exit_code = ExitCode(failure.exit_code)


@dataclass(frozen=True)
class Batch:
    """A batch: ``again`` repeats logs that are done or in quarantine; ``compare`` writes nothing and reports differences.

    ``labels`` name the runs by the paths of their logs.
    """

    store: Path
    engine: Engine
    again: bool = False
    compare: bool = False
    progress: Progress | None = None
    manner: Manner = MANNER
    labels: Labels = BY_STEM
    root: str | None = None
    """Folder that log names are relative to; noted in the store's cache, so that the logs can be found again."""


@dataclass(frozen=True, slots=True)
class Rederived:
    """Result of an archive: files that are not logs, and a report for each other file, both by name."""

    left_out: tuple[LeftOut, ...]
    reports: Iterator[Report]


def rederive(logs: Sequence[Log], batch: Batch) -> Rederived:
    """Derive ``logs``, which must be ordered by name; reports are made lazily, in this order.

    Raises ``OutputError`` if the store cannot be written, and ``BatchStopped``, also while reports are made.
    """
    run = _Run(logs, batch)
    identities, failures, left_out = run.identities()
    if batch.root and not batch.compare:
        run.check_store()
        note_root(batch.store, batch.root)
    return Rederived(left_out, run.reports(identities, failures))


class _Run:
    def __init__(self, logs: Sequence[Log], batch: Batch) -> None:
        self.batch = batch
        self.logs = logs
        self.checked = False
        self.store = Store(batch.store)
        self.definitions = definitions_fingerprint(batch.manner)
        self.known = Known(batch.store, self.definitions, writes=not batch.compare)
        self.stored = PackedRows(_SHA256, 2 * _NUMBER)
        for log, receipts in groupby(self.store.receipts(), key=lambda receipt: receipt.log_sha256):
            runs = [receipt.generation for receipt in receipts]
            self.stored.add(bytes.fromhex(log), b"".join(number.to_bytes(_NUMBER, "big") for number in (runs[-1], len(runs))))
        self.placed = PackedRows(_SHA256 + _NUMBER)
        for path in place_files(self.store.root):
            with contextlib.suppress(ValueError):  # not the name of a place
                self.placed.add(bytes.fromhex(path.name.removesuffix(".json").replace(".", "")))
        self.quarantined = {record.key: record for record in self.store.quarantined()}
        self.keys_of: dict[str, list[str]] = {}
        for record in self.quarantined.values():
            self.keys_of.setdefault(record.path, []).append(record.key)

    def identities(self) -> tuple[_Identities, dict[int, Failure], tuple[LeftOut, ...]]:
        """Return the identity of each log, or its failure, by position; and the files that are not logs."""
        identities = _Identities(len(self.logs))
        failures: dict[int, Failure] = {}
        unknown = array("q")
        left_out: list[LeftOut] = []
        for at, log in enumerate(self.logs):
            known = self.known.identity(log.path, log.stamp) if log.settled else None
            if known is None:
                unknown.append(at)
            else:
                identities.add(at, *known)
        if unknown:
            self.check_store()
        for at, answer in self._work("reading", identify, unknown, self.logs.__getitem__):
            if isinstance(answer, LeftOut):
                left_out.append(answer)
            elif isinstance(answer, Identity):
                identities.add(at, answer.sha256, answer.size_bytes)
                log = self.logs[at]
                if log.settled and answer.steady:
                    self.known.note_path(log.path, log.stamp, answer.sha256, answer.size_bytes)
            else:
                failures[at] = _failure(answer)
        return identities, failures, tuple(sorted(left_out, key=lambda each: each.name))

    def reports(self, identities: _Identities, failures: dict[int, Failure]) -> Iterator[Report]:
        try:
            firsts, others = identities.firsts()
            waiting = bytearray(len(self.logs))
            early: dict[int, Report] = {}  # reports made before their turn
            for at in firsts:
                done = None if self.batch.again else self._done(identities.sha256(at), self.logs[at])
                waiting[at] = done is None
                if done is not None and done.receipt is None:  # a released record must not change the answer
                    early[at] = replace(done, identity=identities.get(at))
            todo = array("q", (at for at in firsts if waiting[at]))
            if todo:
                self.check_store()

            def task(at: int) -> Task:
                logs = tuple(self.logs[each] for each in (at, *others.get(at, ())))
                batch, places = self.batch, tuple(self.batch.labels.place(log.name) for log in logs)
                return Task(identities.sha256(at), logs, store, self.definitions, batch.manner, batch.compare, places)

            store = str(self.batch.store.absolute())
            answers = self._work("deriving", derive_receipt, todo, task)
            for at, log in enumerate(self.logs):
                if at in failures:
                    yield self._failed(log, None, failures[at])
                    continue
                identity = identities.get(at)
                if identity is None:
                    continue
                first = identities.first(at)
                while waiting[first] and first not in early:
                    position, answer = next(answers)
                    early[position] = self._answered(position, answer, identities, others.get(position, ()))
                report = early.get(first)
                if report is None:
                    report = self._done(identity.sha256, self.logs[first])
                    assert report is not None
                    report = replace(report, identity=identity)
                    if report.receipt is not None:
                        self._place(identity.sha256, log)
                elif at == others.get(first, (first,))[-1]:
                    del early[first]
                if at != first:  # its bytes are those of another log
                    report = replace(report, same_as=self.logs[first].name, derived=False)
                report = replace(report, log=log)
                if report.receipt is not None:
                    self._release(report)
                yield report
            next(answers, None)  # reports the last log's progress
        finally:
            self.known.close()

    def _work(
        self, what: str, work: Callable[..., object], positions: Sequence[int], make: Callable[[int], Log] | Callable[[int], Task]
    ) -> Iterator[tuple[int, object]]:
        """Yield (position, answer) of each log; ``make`` turns a position into the item of work."""
        items = Drawn[Log | Task](len(positions), lambda number: make(positions[number]))
        sizes = array("q", (self.logs[at].size_bytes for at in positions))
        total, done = sum(sizes), 0
        report_progress = self.batch.progress or (lambda *_: None)
        if items:
            report_progress(what, 0, len(items), 0, total)
        kinds = array("q", (kind_of(self.logs[at].name) for at in positions))
        for count, (number, answer) in enumerate(self.batch.engine.run(work, items, sizes, kinds), 1):
            if isinstance(answer, Failure) and answer.fatal:
                raise BatchStopped(answer)
            yield positions[number], answer
            done += sizes[number]
            report_progress(what, count, len(items), done, total)
            if count % 64 == 0:
                self.known.flush()

    def _done(self, sha256: str, log: Log) -> Report | None:
        """Return the report of a finished log, which has its receipt or quarantine record already; else None."""
        known, (generation, runs) = self.known.log(_with_times(sha256, log)), self._stored(sha256)
        if known is None or known.generation != (generation if known.generation else 0):
            return None
        if known.generation:
            path = f"receipts/{sha256[:2]}/{sha256}.{generation}.json"
            return Report(_NOBODY, "unchanged", receipt=path, recognised=known.recognised, runs=runs)
        record = self.quarantined.get(sha256)
        return Report(_NOBODY, "quarantined", failure=Failure(record.exit_code, record.error, record.why)) if record else None

    def _stored(self, sha256: str) -> tuple[int, int]:
        """Return (generation, runs) of a log's receipts before the batch, zeros without any."""
        row = self.stored.get(bytes.fromhex(sha256)) or bytes(2 * _NUMBER)
        return int.from_bytes(row[:_NUMBER], "big"), int.from_bytes(row[_NUMBER:], "big")

    def _place(self, sha256: str, log: Log) -> None:
        """Store the place of a log with this digest, unless it is known to be stored."""
        if self.batch.compare:
            return
        place = self.batch.labels.place(log.name)
        if bytes.fromhex(sha256 + place.key) not in self.placed or not self.known.is_placed(sha256, place):
            self.check_store()
            write_place(self.store.root, self.store.scratch, sha256, place)
            self.known.note_placed(sha256, place)

    def _answered(self, at: int, answer: object, identities: _Identities, others: Sequence[int]) -> Report:
        """Return the report of a derived log; ``others`` are positions of logs with the same bytes."""
        log = self.logs[at]
        if not isinstance(answer, Report) or answer.identity is None:
            return self._failed(log, identities.get(at), _failure(answer))
        if self.batch.compare or answer.receipt is None:
            return replace(answer, log=log)
        sha256 = answer.identity.sha256
        for each in (at, *others):  # a worker stored them
            self.known.note_placed(sha256, self.batch.labels.place(self.logs[each].name))
        # A worker that died after it wrote finds its own receipt on the retry: compare with the state before the batch.
        before, _ = self._stored(sha256)
        now = int(answer.receipt.rsplit(".", 2)[-2])
        self.known.note_log(_with_times(sha256, log), KnownLog(now, bool(answer.recognised)))
        return replace(answer, log=log, change="unchanged" if now <= before else "replaced" if before else "written")

    def _failed(self, log: Log, identity: Identity | None, failure: Failure) -> Report:
        """Return the report of a log without a receipt, and put it into quarantine."""
        if failure.gone and not log.named:
            return Report(log, "gone", identity, failure=failure)
        sha256 = identity.sha256 if identity is not None else None
        record = Quarantined(log.name, sha256, log.size_bytes, failure.exit_code, failure.error, failure.why)
        if not self.batch.compare:
            self.check_store()
            self.store.quarantine(record)
            if sha256 is not None and failure.exit_code == ExitCode.BUG:  # other failures are cheap to retry, and may succeed
                self.known.note_log(_with_times(sha256, log), KnownLog(0, False))
        return Report(
            log, "quarantined", identity, derived=True, failure=failure, notes=(failure.detail,) if failure.detail else ()
        )

    def _release(self, report: Report) -> None:
        """Take a log that has its receipt, and its path, out of quarantine."""
        if self.batch.compare or not self.quarantined:
            return
        keys = set(self.keys_of.get(report.log.name, ()))
        if report.identity is not None:
            keys |= {report.identity.sha256}
        for key in keys & self.quarantined.keys():
            self.store.release(key)
            del self.quarantined[key]

    def check_store(self) -> None:
        """Raise ``OutputError`` early if the store is not writable, not after an hour of work."""
        if not self.batch.compare and not self.checked:
            self.store.check_writable()
            self.checked = True


_SHA256, _NUMBER = 32, 8
"""Bytes of a digest, and of a number."""
_NOBODY = Log("", "", False, 0, "", False)


def _with_times(sha256: str, log: Log) -> str:
    """Return the digest of all that a receipt of a log depends on: of the log alone, or with those of the files beside it."""
    folder, name = os.path.split(log.path)
    digests = [sha256]
    for beside in (times_name(name), samples_name(name)):
        try:
            with open(os.path.join(folder, beside), "rb") as file:
                digests.append(hashlib.file_digest(file, "sha256").hexdigest())
        except (OSError, ValueError):
            break
    return sha256 if len(digests) == 1 else hashlib.sha256(" ".join(digests).encode()).hexdigest()


def _failure(answer: object) -> Failure:
    if isinstance(answer, Lost):
        # How it died differs between machines and engines, so it is reported but not stored.
        why = "it died again on a retry with only this log"
        return Failure(int(ExitCode.BUG), "the process that read the log died", why, detail=answer.why)
    assert isinstance(answer, Failure)
    return answer


class _Identities:
    """Digest and size of each of ``count`` logs, by position, in 48 bytes per log."""

    def __init__(self, count: int) -> None:
        self._digests = bytearray(_SHA256 * count)
        self._sizes = array("q", [-1]) * count
        self._first = array("q", [-1]) * count

    def add(self, at: int, sha256: str, size_bytes: int) -> None:
        self._digests[_SHA256 * at : _SHA256 * (at + 1)] = bytes.fromhex(sha256)
        self._sizes[at] = size_bytes

    def sha256(self, at: int) -> str:
        return self._digest(at).hex()

    def get(self, at: int) -> Identity | None:
        return Identity(self.sha256(at), self._sizes[at]) if self._sizes[at] >= 0 else None

    def first(self, at: int) -> int:
        """Return the position of the first log with the same bytes, after ``firsts`` has found it."""
        return self._first[at]

    def firsts(self) -> tuple[array[int], dict[int, array[int]]]:
        """Find equal logs: return the first position of each digest, in order, and first position → other positions."""
        known = sorted((at for at, size in enumerate(self._sizes) if size >= 0), key=self._digest)
        others: dict[int, array[int]] = {}
        for _, group in groupby(known, key=self._digest):
            first, *rest = group
            for at in (first, *rest):
                self._first[at] = first
            if rest:
                others[first] = array("q", rest)
        return array("q", (at for at, first in enumerate(self._first) if at == first)), others

    def _digest(self, at: int) -> bytes:
        return bytes(self._digests[_SHA256 * at : _SHA256 * (at + 1)])
