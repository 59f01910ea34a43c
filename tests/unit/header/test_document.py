import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.header.document import ShapeError, facts_of, merge, parse_object, unknown_note
from receipt_cli.header.values import LEAVES, OPEN_MAPS, HeaderFact, checked, is_pointer
from receipt_cli.problems import pointer, split_pointer, value_at

FULL: dict[str, Any] = {
    "git": {"commit": "0123abcd", "branch": "main", "dirty": False, "message": "train longer"},
    "software": {
        "python": "3.12.1",
        "platform": "Linux-6.1-x86_64",
        "torch": "2.9.0+cu130",
        "cuda": "13.0",
        "trainer": "nanogpt 1.2",
        "packages": {"numpy": "2.1.0", "triton": "3.5.0"},
    },
    "hardware": {
        "accelerators": [{"name": "NVIDIA H100 80GB HBM3", "count": 8, "memory_bytes": 85520809984}],
        "cpu_count": 176,
        "ram_bytes": 1014394101760,
    },
    "parallelism": {"world_size": 8, "data": 8, "tensor": 1, "pipeline": 1, "context": 1, "expert": 1},
    "model": {"architecture": "gpt2", "parameter_count": 124439808},
    "seeds": {"seed": 1337},
    "flags": {"precision": "bf16", "z/ero~1": True},
    "execution": {"backend_requested": "fa3"},
    "cost": {"hourly_rate": 24.0, "currency": "USD", "source": "contract 2026"},
    "cwd": "/job",
    "collected_at": "2026-01-31T12:00:00Z",
}
TOP = [*FULL, "sources"]


def test_document_to_facts_to_document_is_the_identity() -> None:
    facts, unknown = facts_of(FULL, "file")
    merged = merge(facts)
    sources = merged.pop("sources")
    assert unknown == []
    assert json.dumps(merged) == json.dumps(FULL)
    assert set(sources.values()) == {"file"}
    assert sources.keys() == {fact.pointer for fact in facts}
    assert "/flags/z~1ero~01" in sources


@pytest.mark.parametrize("pointer", ["", "/", "/git", "/git/author", "/seeds", "/seeds/", "/sources/x", "/nope"])
def test_an_unknown_pointer_is_an_error_of_the_caller(pointer: str) -> None:
    assert not is_pointer(pointer)
    with pytest.raises(ValueError, match="is not a field of the header"):
        merge([HeaderFact(pointer, 1, "host")])
    with pytest.raises(ValueError, match="is not a field of the header"):
        checked(pointer, 1)


POINTERS = st.one_of(
    st.sampled_from(sorted(LEAVES)),
    st.builds(lambda head, key: head + pointer(key), st.sampled_from(sorted(OPEN_MAPS)), st.text(min_size=1, max_size=3)),
)
FACTS = st.lists(
    st.builds(
        HeaderFact,
        POINTERS,
        st.one_of(st.none(), st.integers(), st.booleans(), st.text()),
        st.sampled_from(["env:RECEIPT_GIT_COMMIT", "blob", "file", "log:7", "host", "git"]),
    )
)


@given(FACTS)
def test_the_first_fact_of_a_pointer_wins_and_names_its_source(facts: list[HeaderFact]) -> None:
    header = merge(facts)
    first: dict[str, HeaderFact] = {}
    for fact in facts:
        if fact.value is not None:
            first.setdefault(fact.pointer, fact)
    assert header["sources"] == {pointer: fact.source for pointer, fact in first.items()}
    for at, fact in first.items():
        assert value_at(header, split_pointer(at)) == fact.value
    assert list(header) == [name for name in (*TOP[:5], "data", *TOP[5:]) if name in TOP or header.get(name) is not None]


BAD_LEAVES = [
    ("/git/commit", "abc", "hexadecimal"),
    ("/git/commit", "g" * 40, "hexadecimal"),
    ("/git/commit", "a" * 65, "hexadecimal"),
    ("/git/branch", "", "empty"),
    ("/git/branch", "a\x1b[31m", "control"),
    ("/git/branch", "a\ud800", "UTF-8"),
    ("/git/dirty", 1, "true or false"),
    ("/software/torch", 2.9, "text"),
    ("/software/platform", "x" * 4097, "4096"),
    ("/software/packages", ["numpy"], "object"),
    ("/hardware/accelerators", {"name": "A"}, "list"),
    ("/hardware/accelerators", ["A"], "objects"),
    ("/hardware/accelerators", [{"count": 0}], "1 or more"),
    ("/hardware/accelerators", [{}] * 1025, "1024"),
    ("/hardware/ram_bytes", 1.5, "whole"),
    ("/hardware/ram_bytes", True, "whole"),
    ("/hardware/ram_bytes", 2**64, "64 bits"),
    ("/model/parameter_count", "1e9", "whole"),
    ("/flags/lr", float("nan"), "finite"),
    ("/execution/attention", {"requested": ["fa3"]}, "a text, a number or a boolean"),
    ("/git/branch", "a\u202eb", "control"),
    ("/flags/ x", 1, "key"),
    ("/cost", 24, "object"),
    ("/cost", {"currency": "USD"}, "hourly_rate"),
    ("/cost", {"hourly_rate": -1}, "hourly_rate"),
    ("/collected_at", "2026-01-31T12:00:00+00:00", "RFC 3339"),
    ("/collected_at", "2026-01-31T12:00:00.5Z", "RFC 3339"),
    ("/collected_at", "2026-02-30T12:00:00Z", "valid date"),
]


@pytest.mark.parametrize(("pointer", "value", "why"), BAD_LEAVES)
def test_a_value_of_the_wrong_type_is_refused(pointer: str, value: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        checked(pointer, value)


@pytest.mark.parametrize(
    ("pointer", "value", "want"),
    [
        ("/git/commit", " 0123ABCD\n", "0123abcd"),
        ("/git/branch", "refs/heads/feature/x", "feature/x"),
        ("/git/message", "\n\n  first \r\nsecond", "first"),
        ("/git/message", "m" * 81, "m" * 80),
        ("/git/message", "tab\there \x1b[1mbold\ud800", "tab here  [1mbold"),
        ("/git/message", "one\u2028two \u202ethree", "one two three"),
        ("/execution/compile_requested", True, True),
        ("/execution/attention", {"requested": "fa3", "observed": None}, {"observed": None, "requested": "fa3"}),
        ("/software/packages", {"b": "1", "a": "2", "c": None}, {"a": "2", "b": "1"}),
        (
            "/hardware/accelerators",
            [{"memory_bytes": 5, "name": "A", "uuid": "x"}],
            [{"name": "A", "count": None, "memory_bytes": 5}],
        ),
        ("/model/parameter_count", 124439808.0, 124439808),
        ("/seeds/seed", 2**64 - 1, 2**64 - 1),
        ("/cost", {"hourly_rate": 0}, {"hourly_rate": 0, "currency": None, "source": None}),
    ],
)
def test_a_value_is_stored_in_one_form(pointer: str, value: object, want: object) -> None:
    got = checked(pointer, value)
    assert got == want
    assert type(got) is type(want)
    assert not isinstance(want, dict) or list(got) == list(want)


def test_unknown_keys_are_told_apart_and_null_is_no_fact() -> None:
    document = {
        "git": {"commit": None, "author": "x"},
        "parallelism": {"ring": 4},
        "sources": 5,
        "cloud": 1,
        "a/b": 2,
        "model": None,
        "cost": None,
    }
    facts, unknown = facts_of(document, "blob")
    assert facts == []
    assert unknown == ["/git/author", "/parallelism/ring", "/cloud", "/a~1b"]


@pytest.mark.parametrize(
    "document", [{"git": "abcd"}, {"seeds": 42}, {"flags": ["x"]}, {"flags": {str(n): n for n in range(1025)}}]
)
def test_a_section_of_the_wrong_type_is_named(document: dict[str, Any]) -> None:
    with pytest.raises(ShapeError, match=f"/{next(iter(document))} must be an object"):
        facts_of(document, "blob")


def test_the_note_on_unknown_keys_is_bounded_and_printable() -> None:
    assert unknown_note("X", []) == []
    (note,) = unknown_note("X", [f"/\x1b{n}" for n in range(20)])
    assert note.startswith("X: unknown keys ignored: /\\x1b0, ")
    assert note.endswith(" and 12 more")
    (long,) = unknown_note("X", ["/" + "k" * 1000])
    assert len(long) < 120


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "line 1 column 2"),
        ('{\n"a": nope}', "line 2 column 6"),
        ("[1]", "object"),
        ('{"a": NaN}', "NaN"),
        ('{"a": 1, "a": 2}', "duplicate"),
        ('{"a": ' + "9" * 5000 + "}", "too long"),
        ('{"a": ' + "[" * 60000 + "}", "nested"),
    ],
)
def test_text_that_is_no_json_object_is_refused_without_quoting_it(text: str, why: str) -> None:
    with pytest.raises(ShapeError, match=why):
        parse_object(text)
