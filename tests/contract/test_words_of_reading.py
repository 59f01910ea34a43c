"""Words by which logs are read are data: no collection and no alternation of them is in the code of generic reading."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from receipt_cli.detect.generic import load_generic

ROOT = Path(__file__).resolve().parents[2]
CODE = ROOT / "receipt_cli"
MODULES = [*sorted((CODE / "learn").glob("*.py")), *sorted((CODE / "authoring").glob("*.py")), CODE / "detect" / "generic.py"]
WORD = re.compile(r"[A-Z]?[a-z]{2,}")
ALTERNATION = re.compile(r"(?<![\\.\w])(?:[A-Z]?[a-z]{2,}\|){2,}[A-Z]?[a-z]{2,}")
TOKENS = CODE / "learn" / "tokens.py"
"""What a number looks like: the spellings of NaN, the endings of ``1st`` and ``2nd``, the words to which a number is glued."""


def keys(value: object) -> Iterator[str]:
    """Yield the keys in a document, and the names of an enumeration."""
    if isinstance(value, dict):
        yield from value
        for each in value.values():
            yield from keys(each)
    elif isinstance(value, list):
        for each in value:
            yield from keys(each)
            if isinstance(each, str):
                yield each


def documented() -> set[str]:
    """Return the names that documents and grammars have, and those of evidence: they are no words of a log."""
    schemas = [json.loads(path.read_bytes()) for path in (ROOT / "schemas").glob("*/*.schema.json")]
    return {*load_generic().evidence, *(key for schema in schemas for key in keys(schema))}


def text_of(node: ast.AST | None) -> str:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, str) else value.decode("latin-1") if isinstance(value, bytes) else ""


def words_in(tree: ast.Module) -> Iterator[tuple[int, list[str]]]:
    """Yield the line and the words of each collection in ``tree``, and of each alternation in a pattern."""
    named = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple)}
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = {id(node.value) for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None}
    for node in ast.walk(tree):
        members: list[ast.expr | None] = []
        if isinstance(node, ast.Tuple | ast.List | ast.Set) and id(node) not in named:
            members = [*node.elts]
        elif isinstance(node, ast.Dict) and id(node) in constants:
            members = [*node.keys]
        yield getattr(node, "lineno", 0), [word for word in map(text_of, members) if WORD.fullmatch(word)]
        for found in ALTERNATION.finditer(text_of(node)) if id(node) not in docs else ():
            yield getattr(node, "lineno", 0), found[0].split("|")


@pytest.mark.parametrize("path", [path for path in MODULES if path != TOKENS], ids=lambda path: path.stem)
def test_no_list_of_words_is_in_the_code(path: Path) -> None:
    known = documented()
    found = [
        words for words in words_in(ast.parse(path.read_bytes())) if len(words[1]) > 2 and not known.issuperset(words[1])
    ]
    assert not found


@pytest.mark.parametrize(
    "text", ['A = {"loss", "cost", "nll"}', 'A = {"loss": 1, "cost": 2, "nll": 3}', 'A = r"(?:loss|cost|nll)\\b"']
)
def test_one_would_be_found(text: str) -> None:
    assert any(len(words) > 2 for _, words in words_in(ast.parse(f"A = {text}")))
