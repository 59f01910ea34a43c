"""A grammar that somebody sent: used or refused with a reason, and a finding where it does not prove itself."""

from receipt_cli.authoring import lint
from receipt_cli.definitions.failure_markers import load_catalogue
from receipt_cli.derive import plan_reading
from receipt_cli.errors import DataError
from receipt_cli.grammar.parse import check_patterns, load_grammar
from receipt_cli.scan.engine import Engine
from tests.fuzz.feed import Feed
from tests.fuzz.harness import ROOT

_LINES = b"iter 1: loss 2.5\nstep 2 | loss: 1.0 | lr: 3e-4\n{'loss': 1.5, 'step': 3}\nrow: 1 2.5\n" * 3


def target(data: bytes) -> None:
    feed = Feed(data)
    text = feed.rest()
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


def seeds() -> list[bytes]:
    found = [path.read_bytes() for path in sorted((ROOT / "fixtures" / "bad_grammars").glob("*.yaml"))]
    found += [_small(path.read_bytes()) for path in sorted((ROOT / "grammars").glob("*/v1.yaml"))]
    return [text for text in found if len(text) < 4000] + [text[:4000] for text in found if len(text) >= 4000][::4]


def _small(text: bytes) -> bytes:
    """Return a definition without its remarks."""
    return b"\n".join(line for line in text.split(b"\n") if line.strip() and not line.lstrip().startswith(b"#"))
