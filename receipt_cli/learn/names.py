"""Name the numbers of a record by the texts beside them, and say by its name what each number is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from receipt_cli.learn.shapes import Column, Shape
from receipt_cli.learn.tokens import BAR, NUMBER, RATE
from receipt_cli.learn.vocabulary import Vocabulary, normalise, unit_in_name

_DELIMITER = re.compile(r"[|;,\uff0c\uff1b\u3001\uff1a\t{}<>]| [-–—] |[:.] |\]|\) |[ ]{2,}|=> | with ")
_MADE_BY = re.compile(r"(?:\b[a-z]+\.)?\b(?:\w*(?:[Tt]ensor|[Aa]rray)|float\d\d)\([\[ ]{0,3}\Z")
"""What prints a number of a library: ``loss: tensor(0.5, grad_fn=…)``."""
_OPENING = re.compile(r"(?P<sep>[:=]|=>|->)?[ \t]*[\[(<]+[ \t]*\Z")
_SEPARATOR = re.compile(r"[ \t]*(?<!=)(?:[:=\uff1a]{1,3}>?|->)[ \t]*[\"'`]?\Z")
_CELLS = re.compile(r"(?:,[ \t]*|\A)(?P<name>[A-Za-z][A-Za-z_ ]{0,30}),[ \t]*\Z")
"""A name that is a cell of its own, as its number is: ``epoch, 1, loss, 2.8``."""
_ENCLOSED = re.compile(r"(?:\[(?P<name>[A-Za-z][A-Za-z_ ]{0,30})\][ \t]*[:=]?[ \t]*|\b[A-Za-z]\w*\((?P<of>[A-Za-z_]\w*)=)\Z")
"""A name in brackets of its own: ``[step] 3 [loss] 0.5``."""
_WORD = re.compile(r"(?<![\w./-])[A-Za-z]+(?![\w/-]|\.\w)|(?<=[(\[])[A-Za-z]+(?=[)\]])")
_AFTER = re.compile(r" ?([A-Za-z]+) ?/ ?([A-Za-z]+)(?![\w/])")
_BRACKETED = re.compile(r"\s*[(\[]\w+[)\]]\s*\Z")
_CALLED = re.compile(r"[A-Za-z]\(\Z")
_JOINT = re.compile(r"[ \t]*(?:[:=]|is|was)[ \t]*")
_ASIDE = re.compile(r"[ \t]*\([^()]*\)")
_BEHIND = re.compile(r"[ \t]*([A-Za-z][A-Za-z. -]{1,40}?)[ \t]*(?=[,;|)\]]|\Z| (?:after|at) )")
_RATE = re.compile(r"([A-Za-z]+) ?/ ?([A-Za-z]+)")
COUNTED = r"[ \t]*(?:train(?:ing)? )?(?P<word><counted>)(?:\(s\)|e?s)?(?!\w).*?[a-z]{2}"
"""What follows a number that it counts: ``2000 training steps ...``."""
JOINED = r"-(?P<word><counted>)(?!\w)"
"""A counter's word that a hyphen joins to its number: ``0-epoch (4/500)``."""
LEADING = r"(?:<leading>(?:[ \t]+|\Z)){0,3}\Z"
AT = r"(?P<name>[\w/ .-]{1,60}?)[ \t]+<joints>[ \t]+(?P<counter>[A-Za-z_ ]{1,20}?)[ \t#:]*\Z"
LEVEL = r"\A<levels>(?::(?:[\w.]{1,80}:)?|-)(?=\S)"
"""A logger's head that no blank ends: ``INFO:Epoch``, ``INFO-Epoch``."""
MAX_NAME = 400
"""Characters before a number in which its name is looked for."""


@dataclass(frozen=True, slots=True)
class Name:
    """The words beside a number.

    ``text`` is the printed name (may be empty), ``words`` the name normalised; ``sure``: a separator joins name
    and number; ``bracket``: an opening bracket is between them. ``evaluation``: the record, or this part of it, is about
    an evaluation. ``glued``: the unit glued to the number; ``stated``: in brackets in its name;
    ``follows``: a rate such as ``tok/s`` behind it. ``several``: the first of a list of numbers.
    ``behind``: the printed name, where it stands behind the number; ``before``: where the counter parts it from the number.
    """

    text: str
    words: str
    sure: bool = True
    bracket: bool = False
    evaluation: bool = False
    glued: str | None = None
    stated: str | None = None
    follows: str | None = None
    several: bool = False
    behind: str = ""
    before: str = ""

    @property
    def unit(self) -> str | None:
        """The unit as printed, glued to the number or in the name."""
        return self.glued or self.stated

    @property
    def spelled(self) -> list[str]:
        """The words of the name, one by one."""
        return self.words.split()


class Sort(NamedTuple):
    """What the name of a column depends on, beside the texts: its kind, whether its numbers are whole, their units."""

    kind: str
    integer: bool
    ordinal: bool
    unit: str | None

    @classmethod
    def of(cls, column: Column) -> Sort:
        """Return the sort of a column."""
        units = [token.unit for token in column.values if token.unit]
        return cls(column.kind, column.integer, column.ordinal, units[0] if units else None)


def read_names(shape: Shape, vocabulary: Vocabulary, glued: int = -1) -> list[Name]:
    """Return the name of each column of ``shape``.

    ``glued`` is the last column of a progress bar at the beginning of the line, -1 without one: the stage that the bar names
    (``val: 100%|###| 5/5``) does not name the columns after it.
    """
    sorts = tuple([Sort.of(column) for column in shape.columns])
    return _in_company(names_alone(tuple(shape.spoken), sorts, vocabulary, glued), shape, vocabulary)


@lru_cache(maxsize=4096)
def names_alone(literals: Sequence[bytes], sorts: Sequence[Sort], vocabulary: Vocabulary, glued: int) -> Sequence[Name]:
    """Return the names of the columns of a shape by its texts alone. Cached, since logs of one program print the same ones."""
    names: list[Name] = []
    section, spoken = False, vocabulary.evaluation | vocabulary.stages
    for number, column in enumerate(sorts):
        left, right = (literals[at].decode("utf-8", "replace") for at in (number, number + 1))
        text, sure, bracket = "", False, False
        if not number or left.strip() not in ("is", "was"):
            text, sure, bracket = _name(left[-MAX_NAME:], vocabulary)
        inside = _ENCLOSED.search(left) if text.endswith("]") or left.endswith("=") else None
        if inside is not None and (inside["of"] or text.endswith("]")):  # ``Result(epoch=3, loss=2.1)``, ``[loss] 2.1``
            text, sure, bracket = inside[inside.lastindex or 0].strip(), True, bracket and not inside["of"]
        joined = number and sorts[number - 1].integer and not _is_counter(names[-1].text, vocabulary)
        rated = number and text.endswith("/") and text[:-1].rstrip().lower() == names[-1].follows
        if rated or (joined and vocabulary.pattern(JOINED).match(left)):
            text, sure = "", False  # ``0.15 Img/s / 0.018 IOs``: the unit of the number before it
        if not text and (cell := _CELLS.fullmatch(left)) is not None and (number == 0 or left[0] == ","):
            text, sure = cell["name"], True
        if column.kind == NUMBER and bracket and not sure and re.match(r"[)\]][\"']?[:=]", right):
            text = ""  # ``lr(1e-4): 0.01``: the number belongs to the name of the next
        if number and text == left.strip(" :=,\uff1a") and literals[number - 1].rstrip().endswith("第".encode()):
            text = vocabulary.behind_ordinal(text)
        if bracket and not sure and not column.integer and _CALLED.search(left) and right[:1] == ")":
            sure = True  # ``Loss(2.1)``
        several = bracket and right.lstrip().startswith((",", "/")) and not right.lstrip(", ").startswith((")", "]"))
        behind = _behind(right, vocabulary) if not text and column.kind == NUMBER else ""
        early = "" if text or behind or column.kind != NUMBER else _before(literals, number, left, vocabulary)
        words = {word.lower() for word in _WORD.findall(vocabulary.english(left[: left.rfind(text)] if text else left))}
        section = number > glued and (bool(words & spoken) or (section and not words & vocabulary.training))
        if early and names[-1].text.startswith(early) and sorts[number - 1].integer:  # ``Loss on first batch after epoch 3: 0.5``
            names[-1] = replace(names[-1], words=normalise(names[-1].text[len(early) :].strip().partition(" ")[2]))
        english = vocabulary.ordinal(left, right) or _counted(column, left, right, text, vocabulary) or vocabulary.english(text)
        stated = unit_in_name(text)
        if stated is not None and stated.lower() in vocabulary.evaluation | vocabulary.training:
            english, stated = f"{stated} {_BRACKETED.sub('', english)}", None  # ``Loss (train)``
        spelled = set(re.split(r"[^a-z0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", english).lower()))
        evaluated = bool(spelled & vocabulary.evaluation or {*english.lower().split()[:1]} & vocabulary.stages)
        rest = [word for word in normalise(english).split() if word not in vocabulary.evaluation]
        if evaluated and rest and column.integer and counter_of(rest, vocabulary) is not None:
            section = True  # ``validation step 3``: so is what it counts
        if number == 0 and evaluated and not rest and len(sorts) > 1 and sorts[1].kind in (BAR, RATE):
            section = True  # ``Validation:  30%|``: a bar of one, with all that it shows
        unit = (None if column.ordinal else column.unit) or _time_behind(english, right, vocabulary)
        follows = _AFTER.match(("" if unit in SCALES else unit or "") + right) if unit != "%" else None
        rate = f"{follows.group(1)}/{follows.group(2)}".lower() if follows else None
        known = normalise(english or behind or vocabulary.english(early))
        evaluated = section or evaluated
        names.append(Name(text, known, sure or bool(early), bracket, evaluated, unit, stated, rate, several, behind, early))
    return names


def _counted(column: Sort, left: str, right: str, text: str, vocabulary: Vocabulary) -> str:
    """Return the word behind a number that it counts: joined to it, or where the line begins (``After 2000 training steps``).
    A word that is joined to a number whose name (``text``) is a counter's is the name of the next: ``epoch 0-step 10``."""
    whole = column.integer and column.kind == NUMBER
    leads = whole and vocabulary.pattern(LEADING).fullmatch(left.lstrip("-=#* ")) is not None
    found = vocabulary.pattern(COUNTED).match(right) if leads else None
    found = found or (vocabulary.pattern(JOINED).match(right) if whole and not _is_counter(text, vocabulary) else None)
    return found["word"] if found is not None else ""


def _is_counter(text: str, vocabulary: Vocabulary) -> bool:
    return counter_of(normalise(text).split(), vocabulary) is not None


def _before(literals: Sequence[bytes], number: int, left: str, vocabulary: Vocabulary) -> str:
    """Return the name that counters part from its number: ``Training loss at step 300: 0.5``, ``loss in epoch 3 step 20: 1``."""
    if not _JOINT.fullmatch(left):
        return ""
    for at in range(number - 1, max(-1, number - 3), -1):
        text = _ASIDE.sub("", vocabulary.english(literals[at].decode("utf-8", "replace"))[-MAX_NAME:])
        found = vocabulary.pattern(AT, 0).search(text)
        if found is not None and counter_of(normalise(found["counter"]).split(), vocabulary) is not None:
            return _DELIMITER.split(found["name"])[-1].strip()
        if counter_of(normalise(text.strip(" \t,:=")).split(), vocabulary) is None:
            return ""
    return ""


def _behind(right: str, vocabulary: Vocabulary) -> str:
    """Return the name of a loss or a score that stands behind its number: ``0.98 C.E. Loss, 94.3% Accuracy``."""
    found = _BEHIND.match(right)
    last = normalise(found.group(1)).split()[-1:] if found is not None else []
    return found.group(1) if found is not None and last and (last == ["loss"] or last[0] in vocabulary.scores) else ""


@lru_cache(maxsize=4096)
def _name(left: str, vocabulary: Vocabulary) -> tuple[str, bool, bool]:
    """Return the name at the end of ``left``, whether a separator follows the name, and whether an opening bracket does."""
    text = _MADE_BY.sub("", left.rstrip())
    opening = _OPENING.search(text)
    if opening is not None:
        text = text[: opening.start()] + (opening.group("sep") or "")
    separator = _SEPARATOR.search(text)
    if separator is not None:
        text = text[: separator.start()]
    text = text.rstrip().rstrip("\"'`").rstrip()
    unit = re.search(r"\s*[(\[][\w/%.]{1,12}[)\]]\Z", text)
    head = text[: unit.start()] if unit else text
    start = max((found.end() for found in _DELIMITER.finditer(head)), default=0)
    named = vocabulary.pattern(LEVEL).sub("", text[start:].strip(" \t\"'`*#>([.-|="))
    return named, separator is not None, opening is not None


_LOSSES = re.compile(rb"(?<![A-Za-z_])[Ll]oss(?:es)?[ \t]*[:=]?[ \t]*[\[({]?[ \t]*[A-Za-z_]+[ \t]*[:=]?[ \t]*\Z")


def _of_losses(shape: Shape, number: int) -> bool:
    """True for a number among those that one word announces as losses: ``[Loss: box 1.5 || total 2.1]``."""
    opened = [at for at, text in enumerate(shape.literals[: number + 1]) if _LOSSES.search(text)]
    return bool(opened) and not any(b"]" in text for text in shape.literals[opened[-1] + 1 : number + 1])


def _is_sum(shape: Shape, number: int) -> bool:
    """True for a number that those behind it add up to, in every record: ``train==[2.81=1.12 + 1.69]``."""
    places = [number + 1]
    while places[-1] + 1 < len(shape.columns) and shape.literals[places[-1] + 1].strip() == b"+":
        places.append(places[-1] + 1)
    if len(places) < 2 or shape.literals[number + 1].strip() != b"=":
        return False
    columns = [shape.columns[at].numbers for at in (number, *places)]
    rows = [[value for value in row if value is not None] for row in zip(*columns, strict=False)]
    return bool(rows) and all(len(row) == len(columns) and abs(row[0] - sum(row[1:])) <= 1e-3 * abs(row[0]) for row in rows)


def _is_total(shape: Shape, names: Sequence[Name], number: int, vocabulary: Vocabulary) -> bool:
    """True for ``[epoch: 4/200, iter: 325/489] total: 1.35``: a number behind counters that is no time, no sum of rewards.

    No number beside it is called a loss of training as a whole.
    """
    column, name = shape.columns[number], names[number]
    values = [value for value in column.numbers if value is not None]
    rising = all(a <= b for a, b in pairwise(values))
    if column.kind != NUMBER or column.integer or name.unit or name.follows or name.evaluation or not name.sure or rising:
        return False
    words = {word for other in names for word in other.spelled}
    counts = [other for other in names[:number] if counter_of(other.spelled, vocabulary) is not None]
    return bool(counts) and not words & vocabulary.games and not any(other.words in vocabulary.loss for other in names)


def _in_company(names: Sequence[Name], shape: Shape, vocabulary: Vocabulary) -> list[Name]:
    """Return the names, each changed as those beside it tell: a name that comes again after one of an evaluation is of it, too.

    ``Acc 0.5 Loss 2.1 | Val Acc 0.4 Loss 2.3``; ``T_loss`` and ``V_loss``; the total of several losses.
    """
    found: list[Name] = []
    initials = {name.words for name in names}
    for name in names:
        letter, _, rest = name.words.partition(" ")
        if letter in ("t", "v") and {f"t {rest}", f"v {rest}"} <= initials:  # ``T_loss``, ``V_loss``
            name = replace(name, words=f"{'train' if letter == 't' else 'val'} {rest}", evaluation=letter == "v")
        if name.words in vocabulary.sums and (_of_losses(shape, len(found)) or _is_total(shape, names, len(found), vocabulary)):
            name = replace(name, words="total loss")
        elif name.words in vocabulary.training and not name.evaluation and _is_sum(shape, len(found)):
            name = replace(name, words=f"{name.words} loss", several=False, bracket=False)
        after = bool(found) and found[-1].evaluation and bool(name.words)
        twin = after and any(other.words == name.words and not other.evaluation for other in found)
        found.append(replace(name, evaluation=True) if twin else name)
    return _bare_pair(_slashed(found, shape, vocabulary), shape, vocabulary)


def _slashed(names: list[Name], shape: Shape, vocabulary: Vocabulary) -> list[Name]:
    """Return the names where ``train/val 0.27/0.11``, ``train/val acc 0.8/0.7`` or ``Epoch and iter 28 99`` names two numbers."""
    for at, name in enumerate(names[:-1]):
        both = name.words.split(" and ")
        whole = len(both) == 2 and shape.columns[at].integer and shape.columns[at + 1].integer
        if whole and not shape.literals[at + 1].strip(b" ,/") and all(_is_counter(text, vocabulary) for text in both):
            return [*names[:at], replace(name, words=both[0]), replace(names[at + 1], words=both[1], behind=""), *names[at + 2 :]]
        one, other, *rest = (*name.words.split(), "", "")
        behind = shape.literals[at + 1].strip() == b"/" and not (shape.columns[at].integer or shape.columns[at + 1].integer)
        if behind and one in vocabulary.training and other in vocabulary.evaluation:
            what = " ".join(rest).strip() or "loss"
            first = replace(name, words=f"{one} {what}", evaluation=False, several=False, sure=True)
            second = replace(names[at + 1], words=f"{other} {what}", evaluation=True, several=False, sure=True)
            return [*names[:at], first, second, *names[at + 2 :]]
    return names


def _bare_pair(names: list[Name], shape: Shape, vocabulary: Vocabulary) -> list[Name]:
    """Name two numbers training and validation loss if a record calls no number a loss, but prints ``train 0.27 val 0.11``.

    A share of what was validated may stand between: ``Train 0.27 | Val~20% 0.11``.
    """
    called = vocabulary.scores | {"loss"}
    if any(not called.isdisjoint(name.spelled) or name.words in vocabulary.loss for name in names):
        return names
    plain = [c.kind == NUMBER and not c.integer and n.unit is None for c, n in zip(shape.columns, names, strict=True)]
    one = [at for at, name in enumerate(names) if plain[at] and name.words in vocabulary.training]
    told = [at for at, name in enumerate(names) if name.words in vocabulary.evaluation and (plain[at] or name.unit == "%")]
    other = [at + (not plain[at] and not any(name.words for name in names[at + 1 : at + 2])) for at in told]
    if len(one) != 1 or told != [one[0] + 1] or other[0] >= len(names) or not plain[other[0]]:
        return names
    kept = {
        at: replace(names[at], words=f"{names[of].words} loss", evaluation=of != one[0])
        for at, of in ((one[0], one[0]), (other[0], told[0]))
    }
    return [kept.get(at, name) for at, name in enumerate(names)]


STEP, EPOCH = "step", "epoch"
METRIC, LOSS, VALIDATION_LOSS = "metric", "loss", "validation loss"
SCORE, PART, TIMING = "score", "part of a loss", "timing"
TRAINED = 0
"""The rank of a score that is called one of training."""
PLAIN, MEAN, SMOOTH = 100, 200, 50
"""Added to the rank of a loss that is called one of training, or of some records, and where it is called their mean."""
OTHERS = (SCORE, PART, TIMING)
"""Numbers outside the registry that identify a record; they are read under their printed names."""
SCALES = frozenset("KkMGBT")
"""Letters glued to a number that say thousands, millions and so on: ``1.26M tok/s``."""


@dataclass(frozen=True, slots=True)
class Role:
    """The role of a column. ``rank``: the lower, the surer. ``unit``: the printed unit (of ``units``)."""

    kind: str
    rank: int = 0
    metric: str | None = None
    unit: str | None = None


@lru_cache(maxsize=4096)
def read_role(name: Name, kind: str, vocabulary: Vocabulary) -> Role | None:
    """Return the role of a number called ``name``, by its words alone, or None."""
    words = name.spelled
    if not words:
        return _by_unit(name, vocabulary) if kind == NUMBER and not name.evaluation else None
    own = [w for w in words if w not in vocabulary.training and w not in vocabulary.averaging]
    if name.evaluation:
        rest = " ".join(w for w in own if w not in vocabulary.evaluation)
        plain = kind == NUMBER and set(words) & vocabulary.evaluation and rest in vocabulary.validation_loss and name.unit is None
        tested = not set(words) & vocabulary.evaluation - vocabulary.tests
        return Role(VALIDATION_LOSS, metric="test_loss" if tested else "val_loss") if plain else None
    counter = counter_of(words, vocabulary) if _rate_in_name(name.text, vocabulary) is None else None
    if counter is not None and not (name.glued or name.several or name.before):
        return counter
    if kind != NUMBER or (name.bracket and not name.sure):
        return None
    found = _metric(name, vocabulary)
    if found is not None:
        return found
    if set(words) & vocabulary.foreign:
        return None
    if name.unit is None and not name.several:  # ``losses: [2.1, 0.3]`` are parts of it
        trained = [w for w in words if w not in vocabulary.training]
        mean = MEAN + SMOOTH * is_mean(name, vocabulary)
        for base, spelled in ((0, words), (PLAIN, trained), (mean, own)):
            rank = vocabulary.loss_ranks.get(tuple(sorted(spelled)))
            if rank is not None:
                return Role(LOSS, base + rank, "loss")
    return _by_unit(name, vocabulary) or _other(name, own, vocabulary)


def is_mean(name: Name, vocabulary: Vocabulary) -> bool:
    """True where a name says that its number is a mean or a sum of others."""
    return not vocabulary.means.isdisjoint(name.spelled)


def _other(name: Name, own: list[str], vocabulary: Vocabulary) -> Role | None:
    """Return the role of a number outside the registry: a score, a part of a loss, a time."""
    tail = own[-1] if own else ""
    if name.several:
        return None
    scores = vocabulary.scores | vocabulary.grades if name.unit == "%" else vocabulary.scores
    if name.unit in (None, "%") and (" ".join(own) in scores or tail in scores or not vocabulary.rewards.isdisjoint(own)):
        rank = TRAINED if set(name.spelled) & vocabulary.training else TRAINED + 1
        return Role(SCORE, rank, unit="percent" if name.unit == "%" else None)
    if name.unit is None and (
        (tail in vocabulary.loss and len(tail) > 2) or "loss" in {word.rstrip("0123456789") for word in own}
    ):
        return Role(PART)  # ``loss2`` is one of several
    if " ".join(own) in vocabulary.timings or name.words in vocabulary.timings:
        unit = vocabulary.times.get(name.unit or "")
        return Role(TIMING, unit=unit) if unit or name.unit is None else None
    return None


def counter_of(words: Sequence[str], vocabulary: Vocabulary) -> Role | None:
    """Return the counter that the last of ``words`` names; None if a word before it makes it another number (``eval step``)."""
    if len(words) > 1 and words[-1] in vocabulary.numbered:
        words = words[:-1]
    apart = set(words[:-2]) & vocabulary.foreign or set(words) & vocabulary.foreign - {"current", "num"}
    if not words or apart or set(words[:-1]) & vocabulary.things:
        return None  # ``tokens_in_step`` are those of a step
    bare = [w for w in words if w not in vocabulary.training] or words
    if len(bare) > 2 and bare[-2] in vocabulary.joints and bare[-3] in vocabulary.step:
        return None  # ``batch_in_epoch`` counts no epochs, as ``sample_in_epoch`` does not
    if [*words] == ["e"] or bare[-1] in vocabulary.epoch:
        return Role(EPOCH)  # ``[E2] step 9960``
    for size in (3, 2, 1):
        spelling = " ".join(bare[-size:])
        if len(bare) >= size and spelling in vocabulary.step:
            return Role(STEP, vocabulary.step.index(spelling))
    return Role(STEP, len(vocabulary.step)) if len(words) == 1 and words[0] in vocabulary.step_letters else None


def _metric(name: Name, vocabulary: Vocabulary) -> Role | None:
    """Return the registry's metric of that spelling; of a dimension only where the log states the unit."""
    plain = " ".join(word for word in name.spelled if word not in vocabulary.now)
    found = vocabulary.names.get(name.words) or vocabulary.names.get(plain) or _rate_in_name(name.text, vocabulary)
    if found is None:
        return None
    metric, unit = found
    stated = name.unit
    if metric.endswith("_time_s"):
        known = vocabulary.times.get(stated or "", unit if unit in vocabulary.times.values() else None)
        return Role(METRIC, metric=metric, unit=known) if known else None
    if metric.endswith("_ratio"):
        return Role(METRIC, metric=metric, unit="percent") if stated == "%" else None
    if metric.startswith("flops"):
        return Role(METRIC, metric=metric, unit="TFLOPS") if stated and stated.upper().startswith("TFLOP") else None
    if metric.endswith(("_per_s", "_total")):
        if stated is None or stated.split("/")[0].lower() in vocabulary.things:
            return Role(METRIC, metric=metric)
        return Role(METRIC, metric=metric, unit="si") if stated in SCALES else None
    return Role(METRIC, metric=metric) if stated is None and unit is None else None


def _time_behind(text: str, right: str, vocabulary: Vocabulary) -> str | None:
    """Return the unit that a blank parts from the number of a time: ``batch_cost: 0.31 sec``."""
    metric, _ = vocabulary.names.get(normalise(text)) or ("", None)
    found = re.match(r" ([a-z]+)(?=[\s,;|)\]]|\Z)", right) if metric.endswith("_time_s") else None
    return found[1] if found is not None and found[1] in vocabulary.times else None


def _rate_in_name(text: str, vocabulary: Vocabulary) -> tuple[str, str | None] | None:
    """Return the metric and the unit of a name that is a unit: ``tokens/s: 51200``, ``ms/step 120``."""
    found = _RATE.fullmatch(text)
    metric = vocabulary.units.get(f"{found.group(1)}/{found.group(2)}".lower()) if found is not None else None
    return (metric, vocabulary.times.get(found.group(1).lower())) if found is not None and metric is not None else None


def _by_unit(name: Name, vocabulary: Vocabulary) -> Role | None:
    """Return the metric that the unit behind the number names."""
    if name.follows is None or name.follows not in vocabulary.units or set(name.spelled) & vocabulary.foreign:
        return None
    metric = vocabulary.units[name.follows]
    if metric.endswith("_time_s"):
        return None if name.glued in SCALES else Role(METRIC, metric=metric, unit=vocabulary.times[name.follows.split("/")[0]])
    return Role(METRIC, metric=metric, unit="si" if name.glued in SCALES else None)
