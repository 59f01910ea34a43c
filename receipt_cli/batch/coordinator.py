"""Coordinate a batch: derive one receipt per log of an archive into a store.

Two rounds. First every log is hashed, unless its file is known and unchanged: the digest shows which logs are equal, which
are done, and which receipt's captured parts a new one keeps. Then each distinct log that is not done is derived, once. So the
store does not depend on the order of the paths or of the work.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from receipt_cli.batch.labels import BY_STEM, Labels
from receipt_cli.batch.model import Derived, Engine, Failure, Identity, LeftOut, Log, Lost, Manner, Report, Task
from receipt_cli.batch.worker import MANNER, definitions_fingerprint, derive_receipt, identify
from receipt_cli.errors import ExitCode, ReceiptError
from receipt_cli.store.files import Quarantined, Store
from receipt_cli.store.fingerprints import Known, KnownLog
from receipt_cli.store.places import Place, place_files, place_name, write_place
from receipt_cli.store.resolve import note_root

Progress = Callable[[str, int, int, int, int], None]
"""Called with the activity, logs done and in all, bytes done and in all."""


class BatchStopped(ReceiptError):
    """The batch cannot continue, for a reason other than a log; finished work stays, and the same command resumes."""

    def __init__(self, failure: Failure) -> None:
        again = "fix this; the same command then resumes"
        super().__init__(failure.error, why=failure.why, try_=again)
        self.exit_code = ExitCode(failure.exit_code)


@dataclass(frozen=True)
class Batch:
    """What to do: ``again`` also does what is done or in quarantine; ``compare`` writes nothing and reports the differences.

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
    """Folder that the names of logs are relative to: noted in the store's cache, so that the logs are found again."""


@dataclass(frozen=True, slots=True)
class Rederived:
    """Result of an archive: the files that are not logs, and a report for each other file, both by name."""

    left_out: tuple[LeftOut, ...]
    reports: Iterator[Report]


def rederive(logs: Sequence[Log], batch: Batch) -> Rederived:
    """Derive ``logs``, whose names are in order: the reports are made lazily, in this order.

    Raises ``OutputError`` where the store cannot be written, ``BatchStopped``, also while reports are made.
    """
    return _Run(logs, batch).start()


class _Run:
    """One batch on its way."""

    def __init__(self, logs: Sequence[Log], batch: Batch) -> None:
        self.batch = batch
        self.logs = logs
        self.checked = False
        self.store = Store(batch.store)
        self.definitions = definitions_fingerprint(batch.manner)
        self.known = Known(batch.store, self.definitions, writes=not batch.compare)
        self.generations: dict[str, int] = {}
        self.runs: Counter[str] = Counter()
        for receipt in self.store.receipts():
            self.generations[receipt.log_sha256] = receipt.generation
            self.runs[receipt.log_sha256] += 1
        self.placed = {path.name for path in place_files(self.store.root)}
        self.quarantined = {record.key: record for record in self.store.quarantined()}
        self.keys_of: dict[str, list[str]] = {}
        for record in self.quarantined.values():
            self.keys_of.setdefault(record.path, []).append(record.key)

    def start(self) -> Rederived:
        """Hash the logs, and return the lazy reports."""
        identities, failures, left_out = self._identities()
        if self.batch.root and not self.batch.compare:
            self._check_store()
            note_root(self.batch.store, self.batch.root)
        groups: dict[str, list[int]] = {}
        for at, identity in identities.items():
            groups.setdefault(identity.sha256, []).append(at)
        for positions in groups.values():
            positions.sort()
        reports = self._reports(groups, identities, failures)
        return Rederived(left_out, _in_order(reports, sorted([*identities, *failures])))

    def _identities(self) -> tuple[dict[int, Identity], dict[int, Failure], tuple[LeftOut, ...]]:
        """Return the identity of each log, or its failure, by position; and the files that are not logs."""
        identities: dict[int, Identity] = {}
        failures: dict[int, Failure] = {}
        unknown: list[int] = []
        left_out: list[LeftOut] = []
        for at, log in enumerate(self.logs):
            known = self.known.identity(log.path, log.stamp) if log.settled else None
            if known is None:
                unknown.append(at)
            else:
                identities[at] = Identity(*known)
        if unknown:
            self._check_store()
        for at, answer in self._work("reading", identify, unknown, [self.logs[at] for at in unknown]):
            if isinstance(answer, LeftOut):
                left_out.append(answer)
            elif isinstance(answer, Identity):
                identities[at] = answer
                log = self.logs[at]
                if log.settled and answer.steady:
                    self.known.note_path(log.path, log.stamp, answer.sha256, answer.size_bytes)
            else:
                failures[at] = _failure(answer)
        return identities, failures, tuple(sorted(left_out, key=lambda each: each.name))

    def _reports(
        self, groups: dict[str, list[int]], identities: dict[int, Identity], failures: dict[int, Failure]
    ) -> Iterator[tuple[int, Report]]:
        """Yield a report for each log, with its position, as it is known."""
        try:
            for at, failure in failures.items():
                yield at, self._failed(self.logs[at], None, failure)
            tasks: list[Task] = []
            for sha256, positions in groups.items():
                done = None if self.batch.again else self._done(sha256)
                if done is None:
                    logs = tuple(self.logs[at] for at in positions)
                    store, batch = str(self.batch.store.absolute()), self.batch
                    places = tuple(batch.labels.place(log.name) for log in logs)
                    tasks.append(Task(sha256, logs, store, self.definitions, batch.manner, batch.compare, places))
                else:
                    if done.receipt is not None:
                        self._place(sha256, positions)
                    yield from self._spread(positions, replace(done, identity=identities[positions[0]]))
            if tasks:
                self._check_store()
            firsts = [groups[task.sha256][0] for task in tasks]
            places_of = {at: task.places for at, task in zip(firsts, tasks, strict=True)}
            for at, answer in self._work("deriving", derive_receipt, firsts, tasks):
                identity = identities[at]
                positions = groups[identity.sha256]
                if isinstance(answer, Derived):
                    self._note_places(answer.sha256, places_of[at])
                    yield from self._spread(positions, self._derived(self.logs[at], answer))
                else:
                    yield from self._spread(positions, self._failed(self.logs[at], identity, _failure(answer)))
        finally:
            self.known.close()

    def _work(
        self, what: str, work: Callable[..., object], positions: Sequence[int], items: Sequence[Log] | Sequence[Task]
    ) -> Iterator[tuple[int, object]]:
        """Yield the position of each log, and what its item gave."""
        sizes = [self.logs[at].size_bytes for at in positions]
        total, done = sum(sizes), 0
        report_progress = self.batch.progress or (lambda *_: None)
        if items:
            report_progress(what, 0, len(items), 0, total)
        for count, (number, answer) in enumerate(self.batch.engine.run(work, items, sizes), 1):
            if isinstance(answer, Failure) and answer.fatal:
                raise BatchStopped(answer)
            yield positions[number], answer
            done += sizes[number]
            report_progress(what, count, len(items), done, total)
            if count % 64 == 0:
                self.known.flush()

    def _done(self, sha256: str) -> Report | None:
        """Return the report of a log for which there is nothing to do: its receipt, or its record in quarantine, is there."""
        known, generation = self.known.log(sha256), self.generations.get(sha256, 0)
        if known is None or known.generation != (generation if known.generation else 0):
            return None
        if known.generation:
            path = f"receipts/{sha256[:2]}/{sha256}.{generation}.json"
            return Report(_NOBODY, "unchanged", receipt=path, recognised=known.recognised, runs=self.runs[sha256])
        record = self.quarantined.get(sha256)
        return Report(_NOBODY, "quarantined", failure=Failure(record.exit_code, record.error, record.why)) if record else None

    def _place(self, sha256: str, positions: Sequence[int]) -> None:
        """Store where the logs with this digest are, unless that is known to be stored."""
        if self.batch.compare:
            return
        for at in positions:
            place = self.batch.labels.place(self.logs[at].name)
            name = place_name(sha256, place).rpartition("/")[2]
            if name not in self.placed or not self.known.is_placed(sha256, place):
                self._check_store()
                write_place(self.store.root, self.store.scratch, sha256, place)
                self.known.note_placed(sha256, place)

    def _note_places(self, sha256: str, places: Sequence[Place]) -> None:
        """Keep in the cache that a worker stored the places of the logs with this digest."""
        for place in places if not self.batch.compare else ():
            self.known.note_placed(sha256, place)

    def _spread(self, positions: Sequence[int], report: Report) -> Iterator[tuple[int, Report]]:
        """Yield the report of the first of the logs with the same bytes, and the same report for the others."""
        first = self.logs[positions[0]]
        for at in positions:
            same_as = first.name if at != positions[0] else None
            mine = replace(report, log=self.logs[at], same_as=same_as, derived=report.derived and same_as is None)
            if mine.receipt is not None:
                self._release(mine)
            yield at, mine

    def _derived(self, log: Log, derived: Derived) -> Report:
        change, identity = derived.change, Identity(derived.sha256, derived.size_bytes)
        if not self.batch.compare:
            # A worker that died after it wrote finds its own receipt on the retry: compare with the state before the batch.
            before = self.generations.get(derived.sha256, 0)
            now = int(derived.receipt.rsplit(".", 2)[-2])
            change = "unchanged" if now <= before else "replaced" if before else "written"
            self.known.note_log(derived.sha256, KnownLog(now, derived.recognised))
        found = Report(log, change, identity, derived.receipt, derived.recognised, True, notes=derived.notes)
        return replace(found, differences=derived.differences, runs=derived.runs)

    def _failed(self, log: Log, identity: Identity | None, failure: Failure) -> Report:
        """Return the report of a log that gave no receipt, and put it into quarantine."""
        if failure.gone and not log.named:
            return Report(log, "gone", identity, failure=failure)
        sha256 = identity.sha256 if identity is not None else None
        record = Quarantined(log.name, sha256, log.size_bytes, failure.exit_code, failure.error, failure.why)
        if not self.batch.compare:
            self._check_store()
            self.store.quarantine(record)
            if sha256 is not None and failure.exit_code == ExitCode.BUG:  # other failures are cheap to retry, and may pass then
                self.known.note_log(sha256, KnownLog(0, False))
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

    def _check_store(self) -> None:
        """Raise ``OutputError`` at once where nothing can be written, and not after an hour of work."""
        if not self.batch.compare and not self.checked:
            self.store.check_writable()
            self.checked = True


_NOBODY = Log("", "", False, 0, "", False)


def _failure(answer: object) -> Failure:
    if isinstance(answer, Lost):
        # How it died differs between machines and engines: it is reported, and not stored.
        why = "it died again when the log was tried alone"
        return Failure(int(ExitCode.BUG), "the process that read the log died", why, detail=answer.why)
    assert isinstance(answer, Failure)
    return answer


def _in_order(reports: Iterable[tuple[int, Report]], positions: Sequence[int]) -> Iterator[Report]:
    """Yield the reports in the order of ``positions``, each as soon as those before it are there."""
    waiting: list[tuple[int, Report]] = []
    wanted = iter(positions)
    following = next(wanted, None)
    for item in reports:
        heapq.heappush(waiting, item)
        while waiting and waiting[0][0] == following:
            yield heapq.heappop(waiting)[1]
            following = next(wanted, None)
