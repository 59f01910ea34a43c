import json
from typing import Any

import pytest

from receipt_cli.errors import UsageError
from receipt_cli.header.header_file import BLOB_VARIABLE, MAX_BLOB_BYTES, blob_facts, variable_facts
from receipt_cli.header.values import HeaderFact

SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ012345"


@pytest.mark.parametrize(
    ("name", "text", "pointer", "value"),
    [
        ("RECEIPT_GIT_COMMIT", "c6b7", "/git/commit", "c6b7"),
        ("RECEIPT_GIT_COMMIT", "a" * 40, "/git/commit", "a" * 40),
        ("RECEIPT_GIT_BRANCH", "main", "/git/branch", "main"),
        ("RECEIPT_GIT_DIRTY", "true", "/git/dirty", True),
        ("RECEIPT_GIT_DIRTY", "YES", "/git/dirty", True),
        ("RECEIPT_GIT_DIRTY", "False", "/git/dirty", False),
        ("RECEIPT_GIT_MESSAGE", "fix loss\n\nlong story", "/git/message", "fix loss"),
        ("RECEIPT_GIT_MESSAGE", "é" * 100, "/git/message", "é" * 80),
    ],
)
def test_a_variable_is_a_fact(name: str, text: str, pointer: str, value: object) -> None:
    assert variable_facts({name: text}) == ([HeaderFact(pointer, value, f"env:{name}")], [])  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_an_empty_variable_is_unset(text: str) -> None:
    names = ("COMMIT", "BRANCH", "DIRTY", "MESSAGE")
    assert variable_facts({f"RECEIPT_GIT_{name}": text for name in names}) == ([], [])
    assert blob_facts({BLOB_VARIABLE: text}) == ([], [])
    assert variable_facts({}) == ([], [])
    assert blob_facts({}) == ([], [])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("RECEIPT_GIT_COMMIT", "abc"),
        ("RECEIPT_GIT_COMMIT", SECRET),
        ("RECEIPT_GIT_DIRTY", "maybe"),
        ("RECEIPT_GIT_DIRTY", SECRET),
        ("RECEIPT_GIT_BRANCH", "a\x00b"),
        ("RECEIPT_GIT_BRANCH", "b\udcff"),
    ],
)
def test_a_bad_variable_is_named_and_not_quoted(name: str, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        variable_facts({name: text})
    shown = caught.value.render()
    assert name in shown
    assert text not in shown


@pytest.mark.parametrize(
    ("blob", "want"),
    [
        ({}, {}),
        ({"commit": "abcd1234", "dirty": False}, {"/git/commit": "abcd1234", "/git/dirty": False}),
        ({"git": {"commit": "abcd1234"}}, {"/git/commit": "abcd1234"}),
        ({"git": {"commit": "abcd1234"}, "branch": "main"}, {"/git/commit": "abcd1234", "/git/branch": "main"}),
        ({"git": None, "branch": "main"}, {"/git/branch": "main"}),
        ({"git": None, "branch": None}, {}),
        ({"software": {"torch": "2.9.0"}, "cwd": "/job"}, {"/software/torch": "2.9.0", "/cwd": "/job"}),
        ({"seeds": {"data": 3}, "flags": {"tf32": True}}, {"/seeds/data": 3, "/flags/tf32": True}),
        (
            {"hardware": {"accelerators": [{"name": "A", "count": 2}]}},
            {"/hardware/accelerators": [{"name": "A", "count": 2, "memory_bytes": None}]},
        ),
        ({"message": "one\ntwo"}, {"/git/message": "one"}),
    ],
)
def test_the_blob_states_facts(blob: dict[str, Any], want: dict[str, Any]) -> None:
    facts, notes = blob_facts({BLOB_VARIABLE: json.dumps(blob)})
    assert {fact.pointer: fact.value for fact in facts} == want
    assert {fact.source for fact in facts} <= {"blob"}
    assert notes == []


def test_unknown_keys_of_the_blob_are_ignored_and_reported() -> None:
    blob = {"commit": "abcd1234", "builder": "x", "git": {"author": "y"}}
    facts, notes = blob_facts({BLOB_VARIABLE: json.dumps(blob)})
    assert [fact.pointer for fact in facts] == ["/git/commit"]
    assert notes == [f"{BLOB_VARIABLE}: unknown keys ignored: /builder, /git/author"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not JSON"),
        (f'{{"commit": {SECRET}}}', "line 1 column 12"),
        ("[]", "JSON object"),
        ('{"commit": 5}', "/git/commit"),
        (f'{{"commit": "{SECRET}"}}', "/git/commit"),
        ('{"dirty": "false"}', "/git/dirty"),
        ('{"git": "abcd", "commit": "abcd"}', "/git must be an object"),
        ('{"git": {"commit": "abcd"}, "commit": "abcd"}', "both given"),
        ('{"software": {"packages": {"x": "\\ud800"}}}', "/software/packages"),
        ('{"commit": "abcd", "commit": "abce"}', "duplicate"),
    ],
)
def test_a_bad_blob_is_named_and_not_quoted(text: str, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        blob_facts({BLOB_VARIABLE: text})
    shown = caught.value.render()
    assert BLOB_VARIABLE in shown
    assert why in caught.value.why
    assert SECRET not in shown


@pytest.mark.parametrize("filler", ["x", "é"])
def test_the_size_of_the_blob_is_bounded_in_bytes(filler: str) -> None:
    def blob(size: int) -> str:
        frame = len('{"builder": ""}')
        return '{"builder": "' + filler * ((size - frame) // len(filler.encode())) + '"}'

    assert blob_facts({BLOB_VARIABLE: blob(MAX_BLOB_BYTES)})[0] == []
    with pytest.raises(UsageError, match="too large"):
        blob_facts({BLOB_VARIABLE: blob(MAX_BLOB_BYTES + 2)})
