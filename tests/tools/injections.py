"""Foreign events for healthy logs: one is put into a log, and whatever of the receipt changes is judged.

For ``tests/property/test_injections.py`` and ``python -m benchmarks.inject``. A ``Kind`` says what is put where, and what may
change. The numbers of a foreign event are known, so a figure that shows one of them is found wherever it stands.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import receipt_cli
from receipt_cli.errors import ReceiptError
from receipt_cli.records.envelope import head_ends

HIGH, LOW, FAR = "83.1906", "0.000219", "761943"
"""A loss and a step that no log has: too large, too small, too far."""
JUMP = 20_000
ENOUGH = 8
"""Records with a loss that a log needs."""
_NUMBER = re.compile(rb"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\d.])")
_DRAWN = re.compile(rb"\x1b|\r(?!\Z)")
_TIME = re.compile(rb"(\d{2}):(\d{2}):(\d{2})")
_MILLISECONDS = re.compile(rb"(\d+(?:\.\d+)?)( ?)ms\b")
_RATE = re.compile(rb"(\d{4,})(?:\.\d+)?(?= ?(?:tok|tokens|samples|words|images)/s)")

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "logs"
Figures = dict[str, Any]
Lines = list[bytes]
Make = Callable[["Log", random.Random], Lines | None]


class Place(NamedTuple):
    """A record: its line in the log, from 0, and where its loss, its step and its own text begin in it."""

    at: int
    text: bytes
    loss: tuple[int, int]
    step: tuple[int, int] | None
    begin: int
    value: float

    def made(self, loss: str | None = None, step: int | None = None, before: str = "") -> bytes:
        """Return the record's text with another loss, another step, or words before it."""
        edits = [(self.begin, self.begin, before.encode())]
        edits += [(*self.loss, loss.encode())] if loss is not None else []
        edits += [(*self.step, str(step).encode())] if step is not None and self.step is not None else []
        text = self.text
        for start, end, new in sorted(edits, reverse=True):
            text = text[:start] + new + text[end:]
        return text

    @property
    def number(self) -> int | None:
        """The step as it is printed."""
        return None if self.step is None else int(self.text[slice(*self.step)])


class Log(NamedTuple):
    """A healthy log: its lines, its records, and what its receipt states."""

    name: str
    lines: tuple[bytes, ...]
    records: tuple[Place, ...]
    stated: Stated

    @property
    def middle(self) -> int:
        """The number of a record in the middle, whose loss is neither the least nor the greatest."""
        losses = [record.value for record in self.records]
        near = sorted(range(3, len(losses) - 3), key=lambda number: abs(2 * number - len(losses)))
        return next(number for number in near if min(losses) < losses[number] < max(losses))

    def with_lines(self, at: int, *new: bytes | str) -> Lines:
        """Return the lines with ``new`` ones before line ``at``; they end as those of the log do."""
        end = b"\r" if self.lines[0].endswith(b"\r") else b""
        made = [line.encode() if isinstance(line, str) else line for line in new]
        return [*self.lines[:at], *(line.removesuffix(b"\r") + end for line in made), *self.lines[at:]]

    def instead(self, lines: Mapping[int, bytes]) -> Lines:
        """Return the lines with others in the place of some."""
        return [lines.get(number, line) for number, line in enumerate(self.lines)]


class Stated(NamedTuple):
    """What a receipt states: its figures by their pointers, its problems, and the figures that these make null."""

    figures: Figures
    problems: Counter[tuple[str, str]]
    named: frozenset[str]


class Kind(NamedTuple):
    """A kind of foreign event. ``make`` returns the lines of the log with it, None where the log has no place for it."""

    says: str
    make: Make
    may: re.Pattern[str] | None = None
    """Figures that may change without a word: what the event really changes."""
    told: bool = False
    """Whether the log contradicts itself, which the receipt has to say."""


class Verdict(NamedTuple):
    """What became of a receipt: a word of ``VERDICTS``, and the figures with both values."""

    word: str
    changed: Mapping[str, tuple[Any, Any]]
    problems: tuple[str, ...]


VERDICTS = ("unchanged", "null", "refused", "named", "missing", "unnamed", "restart", "NAMED!", "WRONG", "WRONG!")
"""From the best to the worst. ``null``: figures are null, and named; ``refused``: no receipt; ``named``: a figure changed beside
a new problem; ``missing``: figures or records are lost, and nothing says so; ``unnamed``: a contradiction that nothing tells;
``restart``: only restarts were invented; ``WRONG``: a figure changed in silence; ``NAMED!`` and ``WRONG!``: the foreign number
stands as a figure, beside a new problem and in silence."""
GOOD = frozenset(VERDICTS[:4])
KINDS: dict[str, Kind] = {}


def read_stated(path: Path) -> Stated:
    """Return what the receipt of a log states."""
    return stated_by(receipt_cli.read(path).receipt.to_dict())


def stated_by(document: Mapping[str, Any]) -> Stated:
    """Return what a receipt states of its primary phase, apart from the places of figures."""
    shown = {name: (document["summary"] or {}).get(name) or {} for name in _STATED}
    figures = {**_leaves(shown, "/summary"), **_leaves(document["checks"], "/checks")}
    figures["/failure"] = (document["failure"] or {}).get("reason")
    figures["/launches"] = ((document["derivation"].get("launches") or {}).get("count")) or 1
    problems = document["derivation"]["problems"]["first"]
    kinds = Counter((problem["kind"], re.sub(r"\d+", "#", problem["detail"] or "")) for problem in problems)
    return Stated(figures, kinds, frozenset(field for problem in problems for field in problem["fields"]))


_STATED = ("steps", "metrics", "other_metrics", "derived", "checkpoints")
_PLACES = re.compile(r"places$|_lines?$|^id$|^latest$|^inputs$")


def _leaves(value: Any, at: str) -> Figures:
    if isinstance(value, Mapping):
        parts = [_leaves(part, f"{at}/{key}") for key, part in value.items() if not _PLACES.search(key)]
        return {path: leaf for part in parts for path, leaf in part.items()}
    return {at: value}


def log_of(name: str, data: bytes, path: Path) -> Log | None:
    """Return a log, written to ``path`` and read; None unless it is healthy and has enough records on lines of their own."""
    path.write_bytes(data)
    lines = tuple(data.removesuffix(b"\n").split(b"\n"))
    try:
        run = receipt_cli.read(path)
    except ReceiptError:
        return None
    document = run.receipt.to_dict()
    records = []
    for record in run.records():
        text = lines[record.line - 1] if record.line <= len(lines) else b""
        if record.event == "step" and "loss" in record.metrics and not _DRAWN.search(text) and len(text) < 4000:
            records += _places(record.line - 1, text, record.metrics["loss"], record.step)
    doubted = document["failure"] or {"generic_reading"} < {"generic_reading", *document["derivation"]["problems"]["kinds"]}
    labels = Counter(label for label in {place: _label(place) for place in records}.values() if label)
    usual = max(labels, key=lambda label: labels[label], default=b"")
    if 2 * labels[usual] > len({place.at for place in records}):
        records = [place for place in records if _label(place) == usual]
    else:
        records = list({place.at: _begun(place._replace(step=None)) for place in reversed(records)}.values())[::-1]
    lonely = len({place.at for place in records}) == len(records)
    if doubted or not lonely or len(records) < ENOUGH or len({place.value for place in records}) < 4:
        return None
    return Log(name, lines, tuple(records), stated_by(document))


def _places(at: int, text: bytes, loss: float, step: int | None) -> list[Place]:
    """Return a record once for each number on its line that may be its step."""
    numbers = list(_NUMBER.finditer(text))
    losses = [number.span() for number in numbers if math.isclose(float(number[0]), loss, rel_tol=1e-12)]
    if not losses:
        return []
    cell = next((span for span in losses if re.search(rb"(?i)loss\W*\Z", text[: span[0]])), losses[0])
    steps = [number.span() for number in numbers if number[0].isdigit() and int(number[0]) == step and number.span() != cell]
    return [_begun(Place(at, text, cell, span, 0, loss)) for span in steps or [None]]


def _begun(place: Place) -> Place:
    """Return a record with the place at which its text begins, behind what a logger puts before it."""
    first = min(place.loss[0], place.step[0] if place.step is not None else place.loss[0])
    begin = max((end for end in head_ends(place.text) if end <= first), default=0)
    return place._replace(begin=begin + len(place.text[begin:first]) - len(place.text[begin:first].lstrip()))


def _label(place: Place) -> bytes | None:
    """Return what precedes the step of a record."""
    return None if place.step is None else re.sub(rb"[\d\s]+", b"", place.text[max(0, place.step[0] - 8) : place.step[0]])


def judge(log: Log, name: str, path: Path) -> Verdict | None:
    """Put a kind of event into a log, and judge its receipt; None where the log has no place for it."""
    kind = KINDS[name]
    lines = kind.make(log, random.Random(f"{name} {log.name}"))
    if lines is None:
        return None
    path.write_bytes(b"\n".join(lines) + (b"" if name == "cut_at_end" else b"\n"))
    try:
        after = read_stated(path)
    except ReceiptError as error:
        return Verdict("refused", {}, (str(error)[:120],))
    return verdict_of(kind, log.stated, after)


def verdict_of(kind: Kind, before: Stated, after: Stated) -> Verdict:
    """Compare what two receipts state."""
    changed = {}
    for path in {**before.figures, **after.figures}:
        was, became = before.figures.get(path), after.figures.get(path)
        if was != became and not (isinstance(was, float) and _same(became, was)):
            changed[path] = (was, became)
    new = tuple(sorted(kind for kind, _ in after.problems - before.problems if kind != "generic_reading"))
    foreign = [float(number) for number in (HIGH, LOW, FAR)]
    rest = {path: both for path, both in changed.items() if kind.may is None or not kind.may.search(path)}
    shown = {path: both for path, both in rest.items() if any(_same(both[1], number) for number in foreign)}
    silent = {path: both for path, both in rest.items() if both[1] is not None}
    restarts = all(re.search(r"restart_count|superseded_count|steps_monotonic|/launches", path) for path in silent)
    lost = any(path.endswith("/loss/record_count") and _less(both) for path, both in changed.items())
    told = bool(new) or "/summary/steps/restart_count" in changed or any("nonfinite_count" in path for path in changed)
    if shown:
        word = "NAMED!" if new else "WRONG!"
    elif silent:
        word = "named" if new else "restart" if restarts else "WRONG"
    elif kind.told and not told and not changed:
        word = "unnamed"
    elif (lost or rest) and not told:
        word = "missing"
    else:
        word = "null" if rest or lost else "unchanged"
    return Verdict(word, shown or silent or rest or changed, new)


def _same(value: Any, number: float) -> bool:
    return value.__class__ in (int, float) and math.isclose(value, number, rel_tol=1e-9)


def _less(both: tuple[Any, Any]) -> bool:
    return None not in both and both[1] < both[0]


# The kinds.

MESSAGES = ("copied 4 shards to the cache", "free disk space: 211 GB", "heartbeat 17", "token refreshed after 3 tries")
WORDS = ("Profiler ", "Rehearsal ", "Burn-in: ", "Smoke test ", "autotuner: ", "[calibrate] ", "Dummy batch ", "Baseline model ")
WRITERS = ("Teacher ", "Discriminator ", "EMA model ", "Frozen baseline ", "[reward model] ", "proxy: ")
SETS = ("holdout ", "Validation ", "dev-other ", "CV fold ", "heldout: ", "Test set ")
NONFINITE = ("nan", "NaN", "-nan", "nan.0", "NaN.", "-nan(ind)", "1.#QNAN", "1.#INF", "-inf", "+Inf", "Infinity", "(nan)", "NA")
ABSENT = ("null", "None", "--", "N/A")
NANOGPT = "iter {step}: loss {loss}, time 98.12ms, mfu 21.40%"
SCRIPT = "round {step} of 900 | objective loss {loss} | lr 2.0e-04"
_FEWER = r"record_count$|/(?:mean|median)$|/steps/superseded_count$"
"""What one record less changes of all its figures."""
_LESS = _FEWER + "|nonfinite_count"
_LOST = _FEWER + r"|/(?:metrics|other_metrics|derived)/(?!loss/)"
"""What may change where a record is lost, which may hold the least or the greatest of another figure."""
_DIGITS = r"printed_digits/(?:least|greatest)$"
"""What a number printed otherwise, or one less, changes of its column."""
_AGAIN = r"^(?!/summary/(?:steps|metrics/loss)/(?:first|last|record_count)$)"
"""What may change where records are printed again."""


def kind(says: str, may: str | None = None, told: bool = False) -> Callable[[Make], Make]:
    """Enter a function into the table of kinds, by its name."""

    def enter(make: Make) -> Make:
        KINDS[make.__name__] = Kind(says, make, None if may is None else re.compile(may), told)
        return make

    return enter


@kind("a message with a number among the records")
def message(log: Log, draw: random.Random) -> Lines:
    return log.with_lines(log.records[log.middle].at, draw.choice(MESSAGES))


@kind("two records below a heading that says nothing is trained, before the first one")
def rehearsal(log: Log, draw: random.Random) -> Lines:
    two = [record.made(HIGH) for record in log.records[:2]]
    return log.with_lines(log.records[0].at, "--- rehearsal, no weights are updated ---", *two, "--- rehearsal is over ---")


@kind("a record with words before it, before the first one")
def words_before_first(log: Log, draw: random.Random) -> Lines:
    return log.with_lines(log.records[0].at, log.records[0].made(HIGH, before=draw.choice(WORDS)))


@kind("a search for the learning rate: eight records with words before them, before the first one")
def rate_search(log: Log, draw: random.Random) -> Lines:
    tries = [record.made(f"{9 + number * 7}.5081", before="lr search: ") for number, record in enumerate(log.records[:7])]
    last = log.records[7].made(HIGH, before="lr search: ")
    return log.with_lines(log.records[0].at, *tries, last, "lr search: best learning rate 2.4e-04")


@kind("a check at step 0 before the first record", may=r"/steps/|record_count")
def check_at_zero(log: Log, draw: random.Random) -> Lines | None:
    if not log.records[0].number:
        return None
    made = log.records[0].made(HIGH, step=0, before="sanity run: ")
    return log.with_lines(log.records[0].at, "Running sanity check ...", made, "Sanity check done")


@kind("a benchmark of the trained model: five records with words before them, behind the last one")
def benchmark_behind(log: Log, draw: random.Random) -> Lines:
    five = [record.made(HIGH, before="[bench] ") for record in log.records[:5]]
    return log.with_lines(log.records[-1].at + 1, "Timing the finished model", *five)


@kind("another model's record at the step of a middle one")
def other_model(log: Log, draw: random.Random) -> Lines:
    record = log.records[log.middle]
    return log.with_lines(record.at + draw.choice([0, 1]), record.made(LOW, before=draw.choice(WRITERS)))


@kind("another model's record at a step that the run does not print")
def other_model_between(log: Log, draw: random.Random) -> Lines | None:
    number = log.middle
    one, two = log.records[number].number, log.records[number + 1].number
    if one is None or two is None or two - one < 2:
        return None
    return log.with_lines(log.records[number].at + 1, log.records[number].made(LOW, step=one + 1, before=draw.choice(WRITERS)))


def _with_each(log: Log, behind: int, make: Callable[[int, Place], bytes]) -> Lines:
    made = {record.at: make(number, record) for number, record in enumerate(log.records)}
    lines = []
    for number, line in enumerate(log.lines):
        lines += ([line, made[number]] if behind else [made[number], line]) if number in made else [line]
    return lines


@kind("another model's record before every one")
def other_model_each(log: Log, draw: random.Random) -> Lines:
    words = draw.choice(WRITERS)
    return _with_each(log, 0, lambda number, record: record.made(f"{0.31 + number / 9000:.4f}", before=words))


@kind("another model's record behind every one")
def other_model_behind_each(log: Log, draw: random.Random) -> Lines:
    words = draw.choice(WRITERS)
    return _with_each(log, 1, lambda number, record: record.made(f"{0.31 + number / 9000:.4f}", before=words))


@kind("a second process that prints every record, too, without a label", told=True)
def second_writer(log: Log, draw: random.Random) -> Lines:
    return _with_each(log, 1, lambda number, record: record.made(HIGH))


@kind("four records of a process with a label beside those without one")
def labelled_writer(log: Log, draw: random.Random) -> Lines:
    few = range(log.middle, min(log.middle + 4, len(log.records) - 1))
    lines = list(log.lines)
    for number in reversed(few):
        lines.insert(log.records[number].at, f"[rank{draw.choice([2, 5])}]: ".encode() + log.records[number].made(HIGH))
    return lines


@kind("four records of a second process without a label", told=True)
def unlabelled_writer(log: Log, draw: random.Random) -> Lines:
    lines = list(log.lines)
    for number in reversed(range(log.middle, min(log.middle + 4, len(log.records) - 1))):
        lines.insert(log.records[number].at + 1, log.records[number].made(HIGH))
    return lines


@kind("the first six records of another run of the same program, in the middle", told=True)
def pasted_run(log: Log, draw: random.Random) -> Lines:
    return log.with_lines(log.records[log.middle].at, *(record.made(HIGH) for record in log.records[:6]))


def _other(log: Log, step: int, loss: str) -> str:
    form = SCRIPT if log.name.startswith(("nanogpt", "modded-nanogpt", "autoresearch")) else NANOGPT
    return form.format(step=step, loss=loss)


@kind("seven records of another program in the middle")
def other_program(log: Log, draw: random.Random) -> Lines:
    seven = [_other(log, 10 * number, f"{79 + number}.5081" if number < 6 else HIGH) for number in range(7)]
    return log.with_lines(log.records[log.middle].at, *seven)


@kind("one record of another program in the middle")
def other_record(log: Log, draw: random.Random) -> Lines:
    return log.with_lines(log.records[log.middle].at, _other(log, int(FAR), LOW))


@kind("a sentence about the best result of an earlier run")
def earlier_best(log: Log, draw: random.Random) -> Lines:
    said = (f"best so far of run 7: step {FAR}, loss {LOW}", f"(baseline at step {FAR} had loss {LOW}, see old/run.log)")
    return log.with_lines(log.records[log.middle].at, draw.choice(said))


@kind("a warning that quotes a record of an earlier log")
def quoted(log: Log, draw: random.Random) -> Lines:
    record = log.records[log.middle]
    old = record.made(LOW, step=int(FAR))[record.begin :].decode("utf-8", "replace").strip()
    said = (f'UserWarning: expected a line such as "{old}"', f"note: the last line of old.log was `{old}`")
    return log.with_lines(record.at, draw.choice(said))


@kind("lines that a search found in an earlier log, before the training")
def searched(log: Log, draw: random.Random) -> Lines:
    found = [record.made(LOW, step=int(FAR))[record.begin :] for record in log.records[:2]]
    return log.with_lines(log.records[0].at, *(f"runs/prev/out.log:{40 + n}:".encode() + old for n, old in enumerate(found)))


@kind("a configuration with names of figures, a line each, before the training")
def settings_dump(log: Log, draw: random.Random) -> Lines:
    return log.with_lines(log.records[0].at, "settings:", f"  step: {FAR}", f"  loss: {LOW}", "  epoch: 4", "  momentum: 0.9")


@kind("a configuration on one line in the middle")
def settings_line(log: Log, draw: random.Random) -> Lines:
    return log.with_lines(log.records[log.middle].at, f"Config(step={FAR}, loss={LOW}, epochs=4, name='x')")


@kind("a checkpoint of another run that is loaded before the training")
def loaded(log: Log, draw: random.Random) -> Lines:
    said = (f"Restored weights of step {FAR} (loss {LOW})", f"=> loaded checkpoint 'a.pt' (step {FAR}, loss {LOW})")
    return log.with_lines(log.records[0].at, draw.choice(said))


@kind("a middle record once more with another loss", told=True)
def twice_middle(log: Log, draw: random.Random) -> Lines:
    record = log.records[log.middle]
    return log.with_lines(record.at + 1, record.made(HIGH))


@kind("the first record with another loss before it", told=True)
def twice_first(log: Log, draw: random.Random) -> Lines:
    return log.with_lines(log.records[0].at, log.records[0].made(HIGH))


@kind("the last record once more with another loss", told=True)
def twice_last(log: Log, draw: random.Random) -> Lines:
    return log.with_lines(log.records[-1].at + 1, log.records[-1].made(HIGH))


@kind("a sentence that corrects a record")
def correction(log: Log, draw: random.Random) -> Lines:
    record = log.records[log.middle]
    return log.with_lines(record.at + 1, f"erratum: the loss of step {record.number or 5} is {LOW}")


@kind("a resumption: three records again with a little other losses", may=_AGAIN)
def resumed(log: Log, draw: random.Random) -> Lines | None:
    number = log.middle
    if log.records[number].number is None or log.records[number].number == log.records[number - 1].number:
        return None
    again = [record.made(f"{record.value * 1.0007:.4f}") for record in log.records[number - 2 : number + 1]]
    return log.with_lines(log.records[number].at + 1, "Resuming from the last checkpoint", *again)


@kind("a middle record whose step is far too high", may=_LOST)
def step_far(log: Log, draw: random.Random) -> Lines | None:
    record = log.records[log.middle]
    return None if record.number is None else log.instead({record.at: record.made(step=int(FAR))})


@kind("a last record whose step is far too high", told=True, may=_FEWER)
def last_step_far(log: Log, draw: random.Random) -> Lines | None:
    record = log.records[-1]
    return None if record.number is None else log.instead({record.at: record.made(step=int(FAR))})


@kind("a counter that begins again in the middle", told=True, may="")
def counter_again(log: Log, draw: random.Random) -> Lines | None:
    if any(record.number is None for record in log.records):
        return None
    half = log.middle
    moved = {r.at: r.made(step=log.records[n].number) for n, r in enumerate(log.records[half:])}
    return log.instead(moved)


@kind("times in seconds instead of milliseconds from the middle on", may="_s/" + _DIGITS)
def seconds(log: Log, draw: random.Random) -> Lines | None:
    def convert(found: re.Match[bytes]) -> bytes:
        return str(float(found[1]) / 1000).encode() + found[2] + b"s"

    return _from_middle(log, lambda record: _MILLISECONDS.sub(convert, record.text))


@kind("a rate in thousands from the middle on", may="")
def thousands_of_rate(log: Log, draw: random.Random) -> Lines | None:
    return _from_middle(log, lambda record: _RATE.sub(lambda found: b"%.3fk" % (float(found[1]) / 1000), record.text))


def _from_middle(log: Log, make: Callable[[Place], bytes]) -> Lines | None:
    made = {record.at: make(record) for record in log.records[log.middle :]}
    return None if all(log.lines[at] == line for at, line in made.items()) else log.instead(made)


def _spelled(log: Log, loss: str) -> Lines:
    record = log.records[log.middle]
    return log.instead({record.at: record.made(loss)})


@kind("a middle loss with a comma that parts thousands", may=_LOST + "|/loss/max$|" + _DIGITS)
def thousands(log: Log, draw: random.Random) -> Lines | None:
    return None if b"," in _spaced(log) else _spelled(log, "4,083.1906")


def _spaced(log: Log) -> bytes:
    """Return what parts the loss from what is around it: a comma there parts cells."""
    record = log.records[log.middle]
    return record.text[max(0, record.loss[0] - 1) : record.loss[0]] + record.text[record.loss[1] : record.loss[1] + 1]


def _decimal(record: Place) -> bytes:
    return record.made(record.text[slice(*record.loss)].decode().replace(".", ","))


@kind("decimal commas in all losses", may=_LESS)
def decimal_commas(log: Log, draw: random.Random) -> Lines | None:
    return None if b"," in _spaced(log) else log.instead({record.at: _decimal(record) for record in log.records})


@kind("decimal commas in losses from the middle on", may=_LESS)
def decimal_commas_half(log: Log, draw: random.Random) -> Lines | None:
    return None if b"," in _spaced(log) else _from_middle(log, _decimal)


@kind("a middle loss that is not finite, in any spelling", may=_LOST + "|nonfinite_count|finite_losses|/failure|" + _DIGITS)
def nonfinite(log: Log, draw: random.Random) -> Lines:
    return _spelled(log, draw.choice(NONFINITE))


@kind("a middle loss that is absent", may=_LOST + "|nonfinite_count|" + _DIGITS)
def absent(log: Log, draw: random.Random) -> Lines:
    return _spelled(log, draw.choice(ABSENT))


@kind("an evaluation in the form of the records behind every fifth one", may=r"/metrics/(?:val|test)_loss/|/other_metrics/eval/")
def evaluations(log: Log, draw: random.Random) -> Lines:
    words, lines = draw.choice(SETS), list(log.lines)
    for record in reversed(log.records[::5]):
        lines.insert(record.at + 1, record.made(LOW, before=words))
    return lines


def _cut(record: Place, draw: random.Random) -> bytes:
    """Return a record up to within its loss: to the point, or to the first digit behind it."""
    point = record.text.find(b".", *record.loss)
    return record.text[: point + draw.choice([1, 2])]


def _cuttable(record: Place) -> bool:
    return b"." in record.text[slice(*record.loss)] and record.loss[1] - record.text.find(b".", *record.loss) > 3


@kind("a log that ends within its last loss", may=_LOST + r"|/last$|/min$|/checks/completed|/failure|/steps/")
def cut_at_end(log: Log, draw: random.Random) -> Lines | None:
    record = log.records[-1]
    return [*log.lines[: record.at], _cut(record, draw)] if _cuttable(record) else None


@kind("a middle record that is cut within its loss", may=_LOST)
def cut_in_middle(log: Log, draw: random.Random) -> Lines | None:
    record = log.records[log.middle]
    return log.instead({record.at: _cut(record, draw)}) if _cuttable(record) else None


@kind("a middle record that a collector breaks within its loss", may=_LOST)
def wrapped(log: Log, draw: random.Random) -> Lines | None:
    record = log.records[log.middle]
    if not _cuttable(record):
        return None
    begun = _cut(record, draw)
    return [*log.lines[: record.at], begun, record.text[len(begun) :], *log.lines[record.at + 1 :]]


@kind("two writers on one line: a record that is cut within its loss, and a whole one", may=_LOST)
def torn(log: Log, draw: random.Random) -> Lines | None:
    number = log.middle
    one, two = log.records[number : number + 2]
    if not _cuttable(one) or two.at != one.at + 1:
        return None
    return [*log.lines[: one.at], _cut(one, draw) + two.text, *log.lines[two.at + 1 :]]


@kind("a middle line twice")
def line_twice(log: Log, draw: random.Random) -> Lines:
    record = log.records[log.middle]
    return log.with_lines(record.at + 1, record.text)


@kind("every line twice")
def lines_twice(log: Log, draw: random.Random) -> Lines:
    return [line for line in log.lines for _ in range(2)]


@kind("a clock that is an hour back from the middle on", may="goodput|time_s")
def clock_back(log: Log, draw: random.Random) -> Lines | None:
    middle = log.records[log.middle].at
    if not all(_TIME.search(record.text[: record.begin]) for record in log.records):
        return None

    def earlier(found: re.Match[bytes]) -> bytes:
        return b"%02d:%s:%s" % (max(int(found[1]) - 1, 0), found[2], found[3])

    return [*log.lines[:middle], *(_TIME.sub(earlier, line, count=1) for line in log.lines[middle:])]


@kind("a long line of text with figures within it")
def long_line(log: Log, draw: random.Random) -> Lines:
    text = "state " + "0f3a9c " * 20_000 + f" step: {FAR}, loss: {LOW} " + "77ab02 " * 20_000
    return log.with_lines(log.records[log.middle].at, text)


@kind("a middle loss in colour from its point on", may=_FEWER)
def coloured(log: Log, draw: random.Random) -> Lines | None:
    record = log.records[log.middle]
    whole, point, part = record.text[slice(*record.loss)].decode().partition(".")
    return _spelled(log, f"{whole}\x1b[36m{point}{part}\x1b[0m") if part else None


@kind("a frame of a bar before a middle record, on its line")
def frame_before(log: Log, draw: random.Random) -> Lines:
    record = log.records[log.middle]
    bar = f"Copying:  40%|{'█' * 4}{' ' * 6}| 4/10 [00:02<00:03,  2.01it/s]"
    return log.instead({record.at: bar.encode() + record.text})


@kind("a bar of an evaluation with its own loss, drawn again and again")
def evaluation_bar(log: Log, draw: random.Random) -> Lines:
    form = "Evaluating:  {}%|{}| {}/4 [00:0{}<00:00,  1.00it/s, loss={}]"
    frames = [form.format(25 * n, ("█" * n).ljust(4), n, n, LOW) for n in range(1, 5)]
    return log.with_lines(log.records[log.middle].at, "\r".join(frames))


@kind("the best result at the end")
def best_at_end(log: Log, draw: random.Random) -> Lines:
    said = (f"Best loss {LOW} at step {FAR}", f"best epoch {FAR} (loss: {LOW})")
    return log.with_lines(log.records[-1].at + 1, draw.choice(said))


@kind("source that a shell prints, with the words of a record")
def source(log: Log, draw: random.Random) -> Lines:
    said = f'logger.info(f"step {FAR} loss {LOW}")'
    return log.with_lines(log.records[log.middle].at, "+ sed -n 41,43p loop.py", f"    {said}", "    optimizer.zero_grad()")


# Scripts of our own.


def scripts(count: int = 48) -> Iterator[tuple[str, bytes]]:
    """Yield ten logs of small scripts, whose losses fall and never repeat."""
    losses = [5.2031 - 0.0617 * number + 0.0413 * (number % 3) for number in range(count)]
    forms: Sequence[tuple[str, str, Callable[[int, float], str]]] = (
        ("brackets", "", lambda n, x: f"[{n + 1}/{count}] loss={x:.4f} lr=1.0e-03"),
        ("epochs", "", lambda n, x: f"Epoch {n + 1:03d} | train loss {x:.4f} | val loss {x + 0.2137:.4f} | {30 + n % 4}s"),
        ("updates", "", lambda n, x: f"2026-03-04 10:{n:02d}:07 INFO train - update={20 * n + 20} loss={x:.4f} wps={9034 + n}"),
        ("objects", "", lambda n, x: json.dumps({"iteration": 5 * n + 5, "train_loss": round(x, 4), "lr": 0.0003})),
        ("commas", "iter,train_loss,lr\n", lambda n, x: f"{n + 1},{x:.4f},0.0003"),
        ("columns", "  iter      loss        lr\n", lambda n, x: f"{n + 1:6d}  {x:8.4f}  0.000300"),
        ("bars", "", lambda n, x: f"Epoch {n + 1}: 100%|{'█' * 10}| 40/40 [00:0{2 + n % 7}<00:00, 4.31it/s, loss={x:.4f}]"),
        ("dicts", "", lambda n, x: f"{{'step': {4 * n + 4}, 'loss': {x:.4f}, 'time': 0.3{n % 10}1}}"),
        ("averages", "", lambda n, x: f"E{n // 12 + 1:02d} step {n + 1} - Loss {x:.4f} (avg {x + 0.0301:.4f}) - 0.2{n % 9} s/it"),
        ("words", "", lambda n, x: f"Train: step {10 * n + 10} loss {x:.4f} acc 0.{400 + n} {150 + n % 6}ms"),
    )
    for name, head, form in forms:
        yield f"script/{name}", (head + "".join(form(n, x) + "\n" for n, x in enumerate(losses))).encode()


HEALTHY = (
    "nanogpt/char-ok", "nanochat/base-accum2-gradnorm-2025-11", "hf-trainer/printer-v5", "mlx-lm/lora", "flair/tagger",
    "jsonl/step", "litgpt/tinyllama-2023", "receipt-emit/plain-loop", "megatron-lm/2024-throughput-done",
    "maxtext/step-2024-eval", "litgpt/pretrain-one-batch-a-step", "forgather/rates-beside-loss", "lerobot/complete",
    "joeynmt/v1-two-epochs", "llm-c/train-gpt2cu-d12", "openpcdet/complete", "verl/sft-2026", "detectron2/console-complete",
    "torchvision/classification-cpu",
)  # fmt: skip
"""Fixtures that are healthy."""
SCRIPTS = dict(scripts())


def healthy_logs(names: Sequence[str], folder: Path) -> dict[str, Log]:
    """Return the logs of these names, of fixtures and scripts."""
    texts = {name: SCRIPTS.get(name) or (FIXTURES / f"{name}.log").read_bytes() for name in names}
    found = {name: log_of(name, text, folder / "run.log") for name, text in texts.items()}
    assert None not in found.values()
    return {name: log for name, log in found.items() if log is not None}
