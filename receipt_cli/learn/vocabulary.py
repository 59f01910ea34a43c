"""The words for reading an unknown trainer: lookups from ``grammars/generic/v2.yaml`` and the registry's aliases."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from receipt_cli.definitions.metrics import Registry
from receipt_cli.errors import DataError

MAX_SECTION = 80
"""Most characters of a line that begins an evaluation."""
_ASCII_WORDS = re.compile(r"\w+", re.ASCII)
_LETTERS = re.compile(r"[a-z]+")
_PARTS = re.compile(r"[\s_\-./@~]+")
_HUMP = re.compile(r"(?<=[A-Za-z])(?=Loss(?![a-z]))|(?<=[a-z]{2})(?=(?!Error|Exception)[A-Z][a-z]{2})")
_UNIT = re.compile(r"\s*[(\[]\s*([\w/%.]{1,12})\s*[)\]]\s*\Z")


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The words of one version of the generic reading, each list under its name in the file: ``vocabulary.evaluation``.

    ``step`` and ``loss`` are ordered, the surest first. ``names`` maps a normalised spelling to a metric and its unit.
    """

    version: int
    sha256: str
    title: str
    lists: Mapping[str, frozenset[str]]
    step: tuple[str, ...]
    loss: tuple[str, ...]
    ordinals: Mapping[str, str]
    translations: Mapping[str, str]
    names: Mapping[str, tuple[str, str | None]]
    times: Mapping[str, str]
    units: Mapping[str, str]
    answers: Mapping[str, str]
    printed_units: Mapping[str, str]
    evidence: Mapping[str, float]
    margin: float
    reasons: Mapping[str, str]
    min_records: int
    rising: float

    def __getattr__(self, name: str) -> frozenset[str]:
        """Return the list of words that is called ``name`` in the file."""
        found = self.__dict__.get("lists", {}).get(name)
        if found is None:
            raise AttributeError(name)
        words: frozenset[str] = found
        self.__dict__[name] = words
        return words

    def spelled(self, text: str) -> str:
        """Return the pattern ``text``, in which ``<name>`` stands for any word of the list that is called so."""
        return _spelled(self, text)

    def pattern(self, text: str, flags: int = re.IGNORECASE) -> re.Pattern[str]:
        """Return ``text`` compiled as a pattern, in which ``<name>`` stands for any word of the list of that name."""
        return _compiled(self, text, flags)

    def english(self, text: str) -> str:
        """Return ``text`` with the known words of other languages as the English words that they mean."""
        return _english(self, text)

    def ordinal(self, left: str, right: str) -> str:
        """Return the word that counts in ``第 3 轮``, whose texts beside the number are ``left`` and ``right``; else empty."""
        if not left.rstrip().endswith("第"):
            return ""
        behind = right.strip().lower()
        return next((meant for word, meant in self.ordinals.items() if behind.startswith(word)), "")

    def behind_ordinal(self, text: str) -> str:
        """Return the name that begins behind the word that counts: ``训练损失`` of ``轮 训练损失``."""
        word = max((word for word in self.ordinals if text.lower().startswith(word)), key=len, default="")
        return text[len(word) :].strip()

    def section(self, line: str) -> int:
        """Return 1 for a line without a value that begins an evaluation, -1 for one that speaks of training alone, else 0.

        ``Test Error:``, ``--- validating epoch 3 ---``.
        """
        words = set(_LETTERS.findall(self.english(line).lower()))
        if not words & self.evaluation:
            return -bool(words & self.training)
        if len(line) > MAX_SECTION or "=" in line.strip("= \n") or words & (self.training | self.closing):
            return 0
        return not re.search(r"\d", line) or not (words & self.scores or "loss" in words or re.search(r"\d\.\d", line))

    @cached_property
    def loss_ranks(self) -> Mapping[tuple[str, ...], int]:
        """The words of each name of a loss, in alphabetic order, and how sure the name is: 0 the surest."""
        ranked = [(tuple(sorted(name.split())), rank) for rank, name in enumerate(self.loss)]
        return dict(reversed(ranked))

    @cached_property
    def ascii_words(self) -> frozenset[str]:
        """The words to translate that a text of ASCII may contain."""
        return frozenset(word for word in self.translations if word.isascii())

    @cached_property
    def translated(self) -> re.Pattern[str]:
        """The words to translate."""
        inside = one_of(word for word in self.translations if not _has_blanks(word))
        whole = one_of(word for word in self.translations if _has_blanks(word))
        return re.compile(rf"{inside}|(?<!\w){whole}(?!\w)", re.IGNORECASE)


def one_of(words: Iterable[str]) -> str:
    """Return the pattern of any of ``words``, the longest first."""
    return f"(?:{'|'.join(map(re.escape, sorted(set(words), key=lambda word: (-len(word), word))))})"


@lru_cache(maxsize=256)
def _spelled(vocabulary: Vocabulary, text: str) -> str:
    return re.sub(r"(?<!\?P)<([a-z_]+)>", lambda found: one_of(getattr(vocabulary, found[1])), text)


@lru_cache(maxsize=256)
def _compiled(vocabulary: Vocabulary, text: str, flags: int) -> re.Pattern[str]:
    return re.compile(_spelled(vocabulary, text), flags)


@lru_cache(maxsize=4096)
def _english(vocabulary: Vocabulary, text: str) -> str:
    if text.isascii() and vocabulary.ascii_words.isdisjoint(_ASCII_WORDS.findall(text.lower())):
        return text
    return vocabulary.translated.sub(lambda found: f" {vocabulary.translations[found.group().lower()]} ", text)


def _has_blanks(word: str) -> bool:
    """True for a word of a script that parts its words by blanks: Latin, Greek, Cyrillic."""
    return max(word) < "\u0590"


@lru_cache(maxsize=4096)
def normalise(text: str) -> str:
    """Return ``text`` in lower case with one blank between its words (``trainLoss`` is two), without a unit in brackets."""
    return " ".join(_PARTS.sub(" ", _HUMP.sub(" ", _UNIT.sub("", text))).lower().split())


def unit_in_name(text: str) -> str | None:
    """Return the unit in brackets at the end of a printed name, or None."""
    found = _UNIT.search(text)
    return found.group(1) if found else None


def read_vocabulary(text: bytes, where: str) -> dict[str, Any]:
    """Return the definition in ``text``, with the digest of the text, for ``build_vocabulary``. Raises ``DataError``."""
    from receipt_cli.definitions.strict_yaml import read_yaml  # its compiled form needs no YAML

    return read_yaml(text, where, shipped=True) | {"sha256": hashlib.sha256(text).hexdigest()}


def load_vocabulary(text: bytes, where: str, registry: Registry, without: Collection[str] = ()) -> Vocabulary:
    """Return the vocabulary that ``text`` defines. Raises ``DataError``.

    ``without`` names trainers whose spellings are left out, as if they were unknown.
    """
    return build_vocabulary(read_vocabulary(text, where), where, registry, without)


def build_vocabulary(data: Mapping[str, Any], where: str, registry: Registry, without: Collection[str] = ()) -> Vocabulary:
    """Return the vocabulary that ``data``, of ``read_vocabulary``, defines. Raises as ``load_vocabulary``."""
    try:
        if data["grammar"] != "generic" or "rules" in data:
            raise DataError("not a vocabulary for generic reading", where=where)
        lists = {key: _texts(value, key, where) for key, value in data["words"].items()}
        metrics, units, thresholds = _texts(data["metrics"], "metrics", where), data["units"], data["thresholds"]
        unknown = [name for name in (*metrics, *units.values()) if name not in registry.by_name]
        if unknown:
            raise DataError(f"unknown metric {unknown[0]!r}", where=where)
        if not all(type(thresholds[key]) is int and thresholds[key] > 0 for key in ("records", "rising")):
            raise DataError("thresholds must be records and rising, both positive integers", where=where)
        losses = [normalise(alias.spelling) for alias in registry.by_name["loss"].aliases if alias.trainer not in without]
        return Vocabulary(
            version=data["version"],
            sha256=data["sha256"],
            title=data["title"],
            lists={key: frozenset(words) for key, words in lists.items() if key not in ("step", "loss")},
            step=tuple(lists["step"]),
            loss=(*lists["loss"], *losses),
            ordinals={str(word): str(meant) for word, meant in data["ordinals"].items()},
            translations={
                word: meant for meant, spellings in data["translations"].items() for word in _texts(spellings, meant, where)
            },
            names=_names(registry, metrics, without),
            times=data.get("times", {}),
            units=units,
            answers=data.get("answers", {}),
            printed_units=data.get("printed_units", {}),
            evidence={name: float(weight) for name, weight in data.get("evidence", {}).items()},
            reasons=data.get("reasons", {}),
            margin=float(thresholds.get("margin", 0)) / 10,
            min_records=thresholds["records"],
            rising=thresholds["rising"] / 100,
        )
    except (KeyError, AttributeError, TypeError) as error:
        raise DataError("not a vocabulary for generic reading", where=where, why=str(error)) from None


def _texts(value: Any, key: str, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise DataError(f"{key} must be a list of texts", where=where)
    return value


def _names(registry: Registry, metrics: Collection[str], without: Collection[str]) -> dict[str, tuple[str, str | None]]:
    """Return normalised spelling → metric and unit, for the spellings that mean one thing in all trainers."""
    meanings: dict[str, set[tuple[str, str | None]]] = {}
    for metric in registry.metrics:
        own = [(metric.name, None)] if metric.name in metrics else []
        spellings = [*own, *((a.spelling, a.printed_in) for a in metric.aliases if a.trainer not in without)]
        for spelling, unit in spellings:
            meanings.setdefault(normalise(spelling), set()).add((metric.name, unit))
    sure: dict[str, tuple[str, str | None]] = {}
    for spelling, found in meanings.items():
        if len({name for name, _ in found}) == 1 and next(iter(found))[0] in metrics:
            units = {unit for _, unit in found}
            sure[spelling] = (next(iter(found))[0], units.pop() if len(units) == 1 else None)
    return sure
