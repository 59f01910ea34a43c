"""What a log says of a run's identity before its first record: seed, data, tokenizer, packing, digests, precision, devices.

Grammars read these facts of the trainers they know. Here they are read from the lines that any script prints, under labels that
mean one thing only; the line must be about nothing else. A fact that two lines state differently is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from receipt_cli.events.streams import Gathered
from receipt_cli.events.table import EventTable
from receipt_cli.patterns import compile_later
from receipt_cli.records.envelope import plain, starts

Facts = Mapping[str, tuple[float | str, int]]
"""Name of a fact → its value and the line that prints it."""
LONGEST = 400
"""Bytes of a line that may be about one fact only."""
LONGEST_OPTIONS = 20_000
"""Bytes of a line that may state all options, the seed among them."""
MOST_SEED = 2**64
_SET = rb"\s*+(?:[:=]|\.{3,200}+)\s*+"
_HEX = rb"(?:sha256:|0x)?([0-9a-fA-F]{6,128}+)$"
_NAME = rb"""['"]?((?=[^\s'",]{0,200}[A-Za-z])(?:\.{0,2}[\w/:@+~-]){2,200}+)['"]?,?(?:\.{3,200}+(?:updated|default))?+$"""
"""A word with a letter; GPT-NeoX says behind dots where the value of an option is from."""
_WORDS = (
    b"data", b"seed", b"samples", b"precision", b"tokenizer", b"world", b"hash", b"digest", b"checksum", b"sha256",
    b"fingerprint", b"packing", b"examples",
)  # fmt: skip
_RULES: tuple[tuple[str, re.Pattern[bytes]], ...] = tuple(
    (name, compile_later(pattern, re.IGNORECASE))
    for name, pattern in (
        (
            "parameter_digest",
            rb"(?:initial[ _])?(?:model[ _])?(?:param(?:eter)?s?|weights?|model)[ _](?:hash|digest|checksum|sha256)"
            rb"(?:[ _](?:after|at)[ _]init(?:iali[sz]ation)?)?" + _SET + _HEX,
        ),
        ("packing_policy", rb"packing(?:[ _](?:policy|strategy))?" + _SET + rb"['\"]?([A-Za-z][\w.-]{1,63}+)['\"]?,?$"),
        ("packing_policy", rb"\[packing\] policy=([A-Za-z][\w.-]{1,63}+)(?: |$)"),
        ("data_name", rb"(?:train(?:ing)?[ _])?(?:data ?set|data)(?:[ _]name)?" + _SET + _NAME),
        ("data_name", rb"data_path" + _SET + rb"\['([^'\s,]{2,200}+)'\]$"),
        ("tokenizer", rb"tokenizer(?:[ _]name)?" + _SET + _NAME),
        ("tokenizer_model", rb"tokenizer_model" + _SET + _NAME),
        ("tokenizer_type", rb"tokenizer_type" + _SET + _NAME),
        (
            "data_size_samples",
            rb"num(?:ber)?(?:[ _]of)?[ _]train(?:ing)?[ _](?:samples|examples)" + _SET + rb"(\d[\d,_]{0,20}+)$",
        ),
        ("world_size", rb"world[ _]size" + _SET + rb"(\d{1,7}+)$"),
        (
            "precision",
            rb"(?:training[ _])?precision"
            + _SET
            + rb"['\"]?((?:bf16|fp16|fp32|fp8|16|32)(?:-(?:mixed|true))?|b?float(?:16|32))['\"]?,?$",
        ),
    )
)
_DATA_DIGEST = compile_later(
    rb"((?:packed[ _]rows?|data(?:set)?|(?:data|sample)[ _]order|permutation|shuffle|first[ _]batch|fim|fill-in-the-middle)"
    rb"(?:[ _][a-z]{1,20}+){0,2}?)[ _](?:hash|digest|checksum|sha256|fingerprint)" + _SET + _HEX,
    re.IGNORECASE,
)
_NO_NAMES = frozenset({
    "true", "false", "none", "null", "yes", "no", "on", "off", "enabled", "disabled", "loaded", "loading", "ready", "done", "ok",
    "train", "training", "test", "val", "valid", "validation", "eval", "default", "auto", "unknown", "n/a",
})  # fmt: skip
"""Words behind such a label that name nothing."""

_ADJECTIVES = rb"(?:(?:using|setting|set|with|a|an|the|fixed|global|random|manual|master|base|rng|numpy|torch|training)\s++){0,4}"
_ALONE = compile_later(
    rb"(?:[-*>]\s|\[rank: \d{1,6}\]\s)?" + _ADJECTIVES + rb"(?:random|manual|rng)?_?seed(?:\s++(?:is\s|value|number))?"
    rb"(?:\s++(?:set\s)?(?:to|as)\b)?\s*+[:=]?\s*+(\d{1,20})\s*+\.?$",
    re.IGNORECASE,
)
_NAMESPACE = compile_later(rb"\bNamespace\(")
_SETTING = compile_later(rb"[(,]\s?(?:random_|manual_)?seed=(\d{1,20})(?=[,)])")


def _may_state(text: bytes) -> bool:
    lowered = text.lower()
    return any(word in lowered for word in _WORDS)


def with_identity(facts: Facts, gathered: Gathered, events: EventTable) -> Facts:
    """Return the facts of the first run of a log with those that its first lines state and no rule has read.

    A line must be about nothing else. Only the seed may also be an option in a namespace or a JSON object of all options: a seed
    further inside, such as that of a data set, is not the run's.
    """
    if not events or len(gathered.streams) > 1:
        return facts
    head = gathered.heads[0]
    if not _may_state(head):
        return facts
    figures = events.of_sources(lambda source: source.is_step or bool(source.metrics))
    until = next((row.line for row in figures if row.is_step or row.metrics), None)
    seeded = bool(facts.keys() & {"seed", "data_seed"})
    found: dict[str, dict[str, int]] = {}
    digests: dict[str, dict[str, int]] = {}
    seeds: dict[int, int] = {}
    packed = b"[packing] " in head
    for number, line in enumerate(plain(head[: head.rfind(b"\n") + 1]).split(b"\n"), gathered.lines[0] + 1):
        passed = until is not None and number >= until
        if passed and not packed:
            break
        if not seeded and not passed and len(line) < LONGEST_OPTIONS and b"seed" in line.lower():
            for seed in _seeds(line.rstrip()):
                seeds.setdefault(seed, number)
        if len(line) > LONGEST or not _may_state(line) or (passed and b"[packing] " not in line):
            continue
        for name, value in _stated(line.strip()):
            found.setdefault(name, {}).setdefault(value, number)
        for kind, value in _digests(line.strip()):
            digests.setdefault(kind, {}).setdefault(value, number)
    known = {name: next(iter(values.items())) for name, values in found.items() if len(values) == 1}
    known.setdefault("tokenizer", known.pop("tokenizer_model", known.pop("tokenizer_type", ("", 0))))
    stated: dict[str, tuple[float | str, int]] = {
        name: (_typed(name, value), line) for name, (value, line) in known.items() if value and not name.startswith("tokenizer_")
    }
    if len(seeds) == 1 and next(iter(seeds)) < MOST_SEED:
        stated["seed"] = next(iter(seeds.items()))
    if digests and all(len(values) == 1 for values in digests.values()):
        each = {kind: next(iter(values.items())) for kind, values in digests.items()}
        text = "; ".join(f"{kind} {value}" for kind, (value, _) in sorted(each.items()))
        stated["data_digest"] = text, min(line for _, line in each.values())
    return {**stated, **facts}


def _beginnings(line: bytes) -> Iterator[int]:
    """Yield where the text of a line may begin: at its first byte, and after each head and the blanks behind it."""
    for at in (0, *starts(line)):
        yield at + len(line[at:]) - len(line[at:].lstrip(b" "))


def _stated(line: bytes) -> Iterator[tuple[str, str]]:
    """Yield the name and value of each fact that a line is about, behind each of the heads that it may have."""
    for at in _beginnings(line):
        for name, rule in _RULES:
            if (match := rule.match(line, at)) is not None:
                value = match[1].decode("utf-8", "replace")
                if value.lower() not in _NO_NAMES:
                    yield name, value


def _digests(line: bytes) -> Iterator[tuple[str, str]]:
    for at in _beginnings(line):
        if (match := _DATA_DIGEST.match(line, at)) is not None:
            yield match[1].decode("utf-8", "replace").lower().replace("_", " "), match[2].decode("ascii").lower()


def _typed(name: str, value: str) -> float | str:
    """Return the value of a fact: a number if it counts, a digest in lower case."""
    if name in ("data_size_samples", "world_size"):
        return float(value.replace(",", "").replace("_", ""))
    return value.lower() if name == "parameter_digest" else value


def _seeds(line: bytes) -> Iterator[int]:
    """Yield the seeds of the run in a line, read after each of the heads that it may have."""
    for at in (0, *starts(line)):
        text = line[at:]
        if (alone := _ALONE.match(text)) is not None and alone.end() == len(text):
            yield int(alone[1])
        elif text.startswith(b"{"):
            yield from _option(text)
    if _NAMESPACE.search(line) is not None:
        yield from (int(setting[1]) for setting in _SETTING.finditer(line) if not _inner(line[: setting.start() + 1]))


def _inner(before: bytes) -> bool:
    """Return whether a bracket is open inside the namespace: a nested object sets its own values."""
    text = before[before.rfind(b"Namespace(") + len(b"Namespace(") :]
    return any(text.count(opening) > text.count(closing) for opening, closing in ((b"(", b")"), (b"[", b"]"), (b"{", b"}")))


def _option(text: bytes) -> Iterator[int]:
    try:
        options = json.loads(text)
    except (ValueError, RecursionError):
        return
    seed = options.get("seed") if isinstance(options, dict) else None
    if isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0:
        yield seed
