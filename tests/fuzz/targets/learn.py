"""The log of a trainer that nobody knows: what is learned of it proves itself, or nothing is."""

from pathlib import Path

from receipt_cli.detect.generic import load_generic
from receipt_cli.grammar.parse import build_grammar
from receipt_cli.learn.learned import learn
from tests.fuzz.feed import Feed, choice, cut
from tests.fuzz.targets import layouts

_WORDS = load_generic()
CUT_EVERY = 4
"""One input of so many is learned from again, in two pieces."""


def target(data: bytes) -> None:
    feed = Feed(data)
    place, repeats = feed.below(1 << 16), feed.pick((*(1,) * 9, *(4,) * 6, 20))
    text = feed.rest()
    log = b"\n".join(_counted(text, turn) for turn in range(repeats))
    found = learn([log], _WORDS)
    definition = None if found is None else found.definition("made", 1, "Made")
    if place % CUT_EVERY == 0:
        again = learn(cut(log, [place]), _WORDS)
        assert repr(definition) == repr(None if again is None else again.definition("made", 1, "Made"))
    if definition is not None:
        assert build_grammar(definition, "made.yaml", "0" * 64).rules


def _counted(text: bytes, turn: int) -> bytes:
    """Return ``text`` with a number of its own in place of the first one of each line."""
    lines = text.split(b"\n")
    return b"\n".join(line.replace(b"7", b"%d" % turn) for line in lines)


def seeds() -> list[bytes]:
    forms = (
        b"epoch 7 train_loss 2.5 val_loss 2.6",
        b"step=7, loss=2.5, lr=1e-4",
        b"[7/90] loss: 2.5 (2.6) time 0.1s",
        b'{"step": 7, "loss": 2.5}',
        b"7\t2.5\t0.1",
    )
    found = [
        choice(40, 1 << 16) + b"\x0f" + form for form in (*forms, b"\n".join(forms), b"step 1 loss 3\r\nstep 2 loss 2.5\r\n" * 3)
    ]
    return found + [choice(number, 1 << 16) + b"\0" + _part(path) for number, path in enumerate(layouts.LOGS[::3])]


def _part(path: Path) -> bytes:
    """Return the middle of a log: what is learned is learned from lines of steps."""
    log = path.read_bytes()
    return log[len(log) // 2 :][:1200]
