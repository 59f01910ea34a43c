"""Records read by layout and by the kernel give what reading each through the patterns gives, whatever the log is."""

from pathlib import Path

from benchmarks.identity import find_difference, read_both
from receipt_cli.grammar.catalog import shipped
from tests.fuzz.feed import Feed, choice, cut
from tests.fuzz.harness import ROOT
from tests.fuzz.rules import rules_of

_GRAMMARS = shipped()
_IDS = [grammar.id for grammar in _GRAMMARS]
LOGS = sorted((ROOT / "fixtures" / "logs").glob("*/*.log"))


def target(data: bytes) -> None:
    feed = Feed(data)
    number, places = feed.below(256), [feed.below(1 << 16) for _ in range(2)]
    grammars = _GRAMMARS if number >= 250 else [_GRAMMARS[number % len(_GRAMMARS)]]
    repeats = feed.pick((1, 2, 4, 8))
    log = feed.rest()
    shaken = [log, *(_shaken(log, turn) for turn in range(1, repeats))]
    fast, pure = read_both(grammars, cut(b"\n".join(shaken), places))
    difference = find_difference(fast, pure)
    assert difference is None, difference


def _shaken(log: bytes, turn: int) -> bytes:
    """Return ``log`` with other digits: the same layouts."""
    return bytes(
        48 + (digit - 48 + turn * (1 + place % 3)) % 10 if 48 <= digit < 58 else digit for place, digit in enumerate(log)
    )


def seeds() -> list[bytes]:
    found = []
    for kind in ("pattern", "pairs", "mapping", "table", "block"):
        for grammar, rule in rules_of(kind)[::3]:
            line = b"\n".join(sample.line.encode() for sample in rule.samples[:3])
            if grammar.id in _IDS:
                found.append(bytes([_IDS.index(grammar.id)]) + choice(0, 1 << 16) * 2 + b"\2" + line)
    for path in LOGS[::4]:
        number = _IDS.index(path.parent.name) if path.parent.name in _IDS else 255
        found.append(bytes([number]) + choice(700, 1 << 16) + choice(1600, 1 << 16) + b"\1" + _middle(path))
    return found


def _middle(path: Path) -> bytes:
    log = path.read_bytes()
    return log[len(log) // 3 :][:3000]
