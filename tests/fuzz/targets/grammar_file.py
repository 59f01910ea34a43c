"""A grammar that somebody sent, of any bytes or one of ours bent: used, or refused with a reason, and then lint has a finding."""

import tempfile
from pathlib import Path
from typing import Any

import yaml

from receipt_cli.authoring import lint
from receipt_cli.definitions.failure_markers import load_catalogue
from receipt_cli.derive import plan_reading
from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.documents.validate import has_errors, validate_bytes
from receipt_cli.errors import DataError, ReceiptError
from receipt_cli.grammar.parse import check_patterns, load_grammar
from receipt_cli.receipts.production import InvalidReceipt, Request, produce
from receipt_cli.scan.engine import Engine
from tests.fuzz.feed import Feed, change
from tests.fuzz.harness import ROOT

_LINES = b"iter 1: loss 2.5\nstep 2 | loss: 1.0 | lr: 3e-4\n{'loss': 1.5, 'step': 3}\nrow: 1 2.5\n" * 3
_FILE = Path(tempfile.mkdtemp(prefix="fuzz-")) / "mine.yaml"
_BENT = ("nanogpt/char-ok", "megatron-lm/2019-no-colon", "hf-trainer/diverged-nan-v5", "forgather/console-f1")
"""Logs, of whose grammar each has another kind of rules."""
_VALUES = (
    *(
        b"null",
        b"true",
        b"0",
        b"-1",
        b"1.5",
        b"NaN",
        b"9" * 30,
        b'""',
        b"x",
        b"loss",
        b"step",
        b"(",
        b"(?P<a>x)",
        b"x" * 300,
        b"ms",
    ),
    *(
        b"percent",
        b"suffix",
        b"boolean",
        b"rank",
        b"end",
        b"header",
        b"timestamp",
        b"run_started",
        b"other",
        b"[]",
        b"{}",
        b'["x"]',
    ),
    *(b"[1]", b'{"x": 1}', b"\x1b[31m", b"\xc3\xa9"),
)


def target(data: bytes) -> None:
    feed = Feed(data)
    bent = feed.below(1 + len(_BENT))
    if bent:
        grammar = _read(_BENT[bent - 1].partition("/")[0])
        change(grammar, feed)
        text = yaml.safe_dump(grammar, sort_keys=False, allow_unicode=True).encode("utf-8", "replace")
        _FILE.write_bytes(text)
        _produce(ROOT / "fixtures" / "logs" / f"{_BENT[bent - 1]}.log")
    _lint(text if bent else feed.rest())


def _produce(log: Path) -> None:
    try:
        product = produce(Request(path=str(log), grammar=str(_FILE)))
    except ReceiptError as error:
        assert not isinstance(error, InvalidReceipt), error.why
    else:
        assert not has_errors(validate_bytes(canonical_bytes(product.document), "mine"))


def _lint(text: bytes) -> None:
    try:
        grammar = check_patterns(load_grammar(text, "mine/v1.yaml", with_samples=True))
    except DataError as error:
        assert error.render()
        assert lint.lint_grammar(text, "mine.yaml"), "refused, and lint finds nothing"
        return
    size, lint.HOSTILE_BYTES = lint.HOSTILE_BYTES, 300
    try:
        for finding in lint.lint_grammar(text, "mine.yaml"):
            assert finding.reason
            finding.where.encode()
    finally:
        lint.HOSTILE_BYTES = size
    samples = "\n".join(sample.line for rule in grammar.rules for sample in rule.samples).encode()
    engine = Engine([grammar], load_catalogue())
    engine.finish(engine.scan([samples + b"\n" + _LINES]))
    assert plan_reading(using=grammar)


def _read(name: str) -> dict[str, Any]:
    """Return the first version of a grammar, with one sample of each rule."""
    path = sorted((ROOT / "grammars" / name).glob("v*.yaml"))[0]
    found: dict[str, Any] = yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    for rule in (*found["rules"].values(), *found.get("ignore", {}).values()):
        rule["samples"] = rule["samples"][:1]
    found["no_match"] = found.get("no_match", [])[:3]
    return found


def seeds() -> list[bytes]:
    found = [path.read_bytes() for path in sorted((ROOT / "fixtures" / "bad_grammars").glob("*.yaml"))]
    found += [_small(path.read_bytes()) for path in sorted((ROOT / "grammars").glob("*/v1.yaml"))]
    changes = [bytes([1 + number % 4, number % 3, number, 7 * number % 256, number % 4]) for number in range(len(_VALUES))]
    bent = [head + bytes([0, 90, 2]) * head[1] + value for head, value in zip(changes, _VALUES, strict=True)]
    whole = [text for text in found if len(text) < 4000] + [text[:4000] for text in found if len(text) >= 4000][::4]
    return [*(b"\0" + text for text in whole), *bent]


def _small(text: bytes) -> bytes:
    """Return a definition without its remarks."""
    return b"\n".join(line for line in text.split(b"\n") if line.strip() and not line.lstrip().startswith(b"#"))
