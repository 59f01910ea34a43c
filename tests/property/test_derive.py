"""A grammar that somebody sent, however it was bent: read as it stands or refused with a reason, never a bug of ours."""

import copy
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from receipt_cli.authoring.lint import lint_grammar
from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.documents.validate import has_errors, validate_bytes
from receipt_cli.errors import ReceiptError
from receipt_cli.receipts.production import InvalidReceipt, Request, produce
from tests.tools.examples import costly

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {
    "pattern": ("nanogpt", "char-ok"),
    "pairs": ("megatron-lm", "2019-no-colon"),
    "mapping": ("hf-trainer", "diverged-nan-v5"),
    "table": ("forgather", "console-f1"),
}
VALUES: list[Any] = [
    *(None, True, 0, 1, -1, 1.5, float("nan"), 10**30, "", " ", "x", "loss", "step", "é", "(", "(?P<a>x)", "x" * 300),
    *("\x1b[31m", "ms", "percent", "suffix", "boolean", "string", "rank", "device", "end", "failure", "header", "phase"),
    *("timestamp", "status", "parameter_count", "exit_code", "run_started", "other", [], {}, ["x"], [1], [[]], {"x": 1}),
]
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def read(kind: str) -> dict[str, Any]:
    folder, _ = SOURCES[kind]
    found = yaml.load(sorted((ROOT / "grammars" / folder).glob("v*.yaml"))[0].read_bytes(), Loader=LOADER)  # as quick as it gets
    assert any(kind in rule for rule in found["rules"].values()), kind
    for rule in (*found["rules"].values(), *found.get("ignore", {}).values()):
        rule["samples"] = rule["samples"][:1]
    found["no_match"] = found.get("no_match", [])[:3]
    return found


GRAMMARS = {kind: read(kind) for kind in SOURCES}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every key and item, samples left out."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        if key not in ("samples", "no_match"):
            yield (*path, key)
            yield from places(item, (*path, key))


PLACES = {kind: list(places(grammar)) for kind, grammar in GRAMMARS.items()}
changes = st.lists(
    st.tuples(st.integers(0, 10_000), st.sampled_from(["set", "delete", "rename"]), st.sampled_from(VALUES)), max_size=3
)


def bend(kind: str, wanted: list[tuple[int, str, Any]]) -> bytes:
    """Return the YAML of a grammar after some changes at some places."""
    grammar = copy.deepcopy(GRAMMARS[kind])
    for number, how, value in wanted:
        *path, last = PLACES[kind][number % len(PLACES[kind])]
        parent: Any = grammar
        try:
            for key in path:
                parent = parent[key]
            if how == "set":
                parent[last] = value
            elif how == "delete":
                del parent[last]
            elif isinstance(parent, dict) and isinstance(value, str | int | None):
                parent[value] = parent.pop(last)
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took the place away
    return yaml.dump(grammar, Dumper=DUMPER, sort_keys=False, allow_unicode=True).encode("utf-8")


@pytest.mark.parametrize("kind", SOURCES)
@settings(max_examples=costly(60))
@given(wanted=changes)
def test_a_bent_grammar_is_linted_and_used_or_refused(kind: str, wanted: list[tuple[int, str, Any]]) -> None:
    folder, log = SOURCES[kind]
    with tempfile.TemporaryDirectory() as work:
        path = Path(work) / "mine.yaml"
        path.write_bytes(bend(kind, wanted))
        assert isinstance(lint_grammar(path.read_bytes(), "mine.yaml"), list)
        try:
            product = produce(Request(path=str(ROOT / "fixtures" / "logs" / folder / f"{log}.log"), grammar=str(path)))
        except ReceiptError as error:
            assert not isinstance(error, InvalidReceipt), error.why
            return
    assert not has_errors(validate_bytes(canonical_bytes(product.document), "mine"))
