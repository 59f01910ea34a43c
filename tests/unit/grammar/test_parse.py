"""A definition is read strictly, and every refusal names its place."""

import hashlib

import pytest

from receipt_cli.definitions.strict_yaml import MAX_BYTES, MAX_DEPTH, locate, read_yaml
from receipt_cli.errors import DataError
from receipt_cli.grammar.parse import check_patterns, load_grammar

HEAD = b"grammar: small\nversion: 1\ntitle: small\ntrainer: small\n"
RULE = b"rules:\n  train:\n    event: step\n    literal: 'loss '\n"
FIELDS = b"    pattern: 'loss (?P<loss>\\d++)'\n    fields:\n      loss: "
GOOD = HEAD + RULE + FIELDS + b"{type: number}\n    samples: [{line: 'loss 1', fields: {loss: 1.0}}]\n"


def rule(body: str) -> bytes:
    return HEAD + b"rules:\n  train: " + body.encode() + b"\n"


def block(kind: str, body: str) -> bytes:
    return rule(f"{{event: step, literal: 'loss', {kind}: {body}}}")


def field(body: str) -> bytes:
    return HEAD + RULE + FIELDS + body.encode() + b"\n"


def test_a_grammar() -> None:
    grammar = check_patterns(load_grammar(GOOD, "small/v1.yaml", with_samples=True))
    (train,) = grammar.rules
    assert (grammar.ref, grammar.layer, grammar.completion, grammar.sha256) == (
        "small@v1", "trainer", "none", hashlib.sha256(GOOD).hexdigest(),
    )  # fmt: skip
    assert (train.kind, train.literals, train.fields["loss"].target) == ("pattern", (b"loss ",), ("metric", "loss"))
    assert train.samples[0].line == "loss 1"
    assert load_grammar(GOOD, "small/v1.yaml").rules[0].samples == ()


REFUSED = [
    ("unknown key", GOOD + b"extends: other\n", "extends"),
    ("version text", GOOD.replace(b"version: 1", b"version: '1'"), "version: "),
    ("version zero", GOOD.replace(b"version: 1", b"version: 0"), "version: "),
    ("version boolean", GOOD.replace(b"version: 1", b"version: true"), "version: "),
    ("no title", GOOD.replace(b"title: small\n", b""), "title"),
    ("no rules", HEAD, "rules: "),
    ("fields number", rule("{event: step, literal: loss, pattern: a, fields: 5}"), "train.fields: "),
    ("field definition no slug", field("{definition: Not a slug}"), "train.fields.loss"),
    ("ignore without literal", GOOD + b"ignore: {a: {pattern: saving}}\n", "ignore.a.literal: "),
    ("evidence key", GOOD + b"evidence: {shows: []}\n", "evidence: "),
    ("evidence equals", GOOD + b"evidence: {proves: [{reported_over_derived: mfu_ratio, equals: 2}]}\n", "proves[0].equals: "),
    ("rule of no kind", rule("{event: step, literal: loss}"), "train: "),
    ("rule of two kinds", rule("{event: step, literal: loss, pattern: a, table: {header: a, row: b}}"), "train: "),
    ("event", rule("{event: steps, literal: loss, pattern: a}"), "train.event: "),
    ("no literal", rule("{event: step, pattern: a}"), "train.literal: "),
    ("empty literal", rule("{event: step, literal: [loss, ''], pattern: a}"), "train.literal: "),
    ("literal with a line end", rule('{event: step, literal: "a\\nb", pattern: a}'), "train.literal: "),
    ("phase", rule("{event: step, literal: loss, pattern: a, phase: 1}"), "train.phase: "),
    ("samples text", GOOD.replace(b"[{line: 'loss 1', fields: {loss: 1.0}}]", b"loss 1"), "train.samples: "),
    ("sample without line", GOOD.replace(b"line: 'loss 1', ", b""), "train.samples[0].line: "),
    ("pairs without start", block("pairs", "{cell: ',', key: ':'}"), "train.pairs.start: "),
    ("pairs empty cell", block("pairs", "{start: a, cell: '', key: ':'}"), "train.pairs: "),
    ("pairs blank key", block("pairs", "{start: a, cell: ' ', key: ' '}"), "train.pairs: "),
    ("pairs foreign key", block("pairs", "{start: a, cell: ' ', key: '→'}"), "train.pairs: "),
    ("pairs target", block("pairs", "{start: a, cell: ',', key: ':', keys: {lm: loss}}"), "train: "),
    ("mapping syntax", block("mapping", "{syntax: toml}"), "train.mapping.syntax: "),
    ("table without row", block("table", "{header: a}"), "train.table.row: "),
    ("table skip below zero", block("table", "{header: a, row: b, skip_cells: -1}"), "train.table.skip_cells: "),
    ("field text", field("number"), "train.fields.loss: "),
    ("field type", field("{type: float}"), "train.fields.loss.type: "),
    ("field unit", field("{printed_in: furlong}"), "train.fields.loss: "),
    ("field metric", field("{metric: lossiness}"), "train.fields.loss: "),
    ("field fact", field("{fact: shoe_size}"), "train.fields.loss: "),
    ("field of two targets", field("{fact: seed, metric: loss}"), "train.fields.loss: "),
    ("field null_if", field("{null_if: [-1]}"), "train.fields.loss.null_if[0]: "),
    ("field at_least", field("{at_least: '1'}"), "train.fields.loss.at_least: "),
    ("field at_least endless", field("{at_least: .inf}"), "train.fields.loss.at_least: "),
    ("field at_least of a text", field("{type: string, at_least: 1}"), "train.fields.loss.at_least: "),
    ("field value no pattern", field("{value: '('}"), "train.fields.loss: "),
    ("field value no group", field("{value: 'a+'}"), "train.fields.loss: "),
    ("field without target", field("{}").replace(b"loss: {}", b"lossiness: {}"), "train.fields.lossiness: "),
]  # fmt: skip


@pytest.mark.parametrize(("text", "names"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_every_refusal_names_its_place(text: bytes, names: str) -> None:
    with pytest.raises(DataError) as caught:
        load_grammar(text, "small/v1.yaml", with_samples=True)
    assert names in caught.value.message
    name, _, line = caught.value.where.partition(":")
    assert (name, 1 <= int(line) <= text.count(b"\n") + 1) == ("small/v1.yaml", True)


ACCEPTED = [
    ("no upstream and no samples", GOOD),
    ("keys without values", GOOD + b"eras:\nignore:\nno_match:\nevidence: {proves: }\n"),
    ("a rule without fields", GOOD.replace(b"(?P<loss>\\d++)", b"\\d").partition(b"    fields")[0] + b"    fields:\n"),
    ("names that lint refuses", GOOD.replace(b"  train:", b"  Train-1:")),
    ("an empty list", block("pairs", "{start: a, cell: ',', key: ':', requires: [], ignore: }")),
]


@pytest.mark.parametrize("text", [row[1] for row in ACCEPTED], ids=[row[0] for row in ACCEPTED])
def test_what_the_engine_can_use_is_left_to_lint(text: bytes) -> None:
    assert len(load_grammar(text, "small/v1.yaml").rules) == 1


@pytest.mark.parametrize("pattern", ["(", "a**b", "[a", "(?P<1>a)", "é", "(" * 5000 + ")" * 5000])
@pytest.mark.parametrize("place", ["pattern", "start", "stop", "header", "row"])
def test_patterns_that_cannot_be_used(pattern: str, place: str) -> None:
    bodies = {
        "pattern": f"    pattern: '{pattern}'\n",
        "start": f"    pairs: {{start: '{pattern}', cell: ',', key: ':'}}\n",
        "stop": f"    pairs: {{start: a, cell: ',', key: ':', stop: '{pattern}'}}\n",
        "header": f"    table: {{header: '{pattern}', row: a}}\n",
        "row": f"    table: {{header: a, row: '{pattern}'}}\n",
    }
    with pytest.raises(DataError, match="train: pattern does not compile") as caught:
        check_patterns(load_grammar(HEAD + RULE + bodies[place].encode(), "small/v1.yaml"))
    assert caught.value.where == "small/v1.yaml"


YAML = [
    ("duplicate key", b"a: 1\nb: 2\na: 3\n", "duplicate key 'a'", "f:3"),
    ("alias", b"a: &x 1\nb: *x\n", "aliases are not allowed", "f:2"),
    ("merge", b"a: 1\n<<: {b: 2}\n", "", "f"),
    ("tag", b"a: 1\nb: !!python/object/apply:os.system ['true']\n", "tags are not allowed", "f:2"),
    ("binary tag", b"a: !!binary '%%%'\n", "tags are not allowed", "f:1"),
    ("depth", b"a: " + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"\n", "nested deeper", "f:1"),
    ("great depth", b"a: " + b"[" * 100_000, "nested deeper", "f:1"),
    ("block depth", b"".join(b" " * n + b"a:\n" for n in range(60)), "nested deeper", "f:"),
    ("list key", b"? [1]\n: 2\n", "a key must be a scalar", "f:1"),
    ("syntax", b"a: 1\nb: [1\n", "", "f:3"),
    ("two documents", b"a: 1\n---\nb: 2\n", "", "f:2"),
    ("empty", b"", "not a mapping", "f"),
    ("text", b"hello\n", "not a mapping", "f"),
    ("not UTF-8", b"a: \xff\n", "not UTF-8", "f"),
    ("control character", b"a: \x01\n", "invalid YAML", "f"),
    ("endless integer", b"a: " + b"9" * 10_000 + b"\n", "invalid YAML", "f"),
    ("too large", b"a: " + b"x" * MAX_BYTES, "too large", "f"),
]


@pytest.mark.parametrize(("text", "says", "where"), [row[1:] for row in YAML], ids=[row[0] for row in YAML])
def test_yaml_that_is_refused(text: bytes, says: str, where: str) -> None:
    with pytest.raises(DataError) as caught:
        read_yaml(text, "f")
    assert says in caught.value.message
    assert str(caught.value.where).startswith(where)


def test_locate() -> None:
    text = b"a:\n  b:\n    - 1\n    - c: 2\nd: 3\n"
    paths: list[tuple[tuple[str | int, ...], int]] = [
        ((), 1), (("a",), 1), (("a", "b"), 2), (("a", "b", 1), 4), (("a", "b", 1, "c"), 4), (("a", "x", "y"), 1), (("d",), 5), (("z",), 1),  # noqa: E501
    ]  # fmt: skip
    assert [locate(text, path) for path, _ in paths] == [line for _, line in paths]
    assert locate(b"a: [", ("a",)) == 1
