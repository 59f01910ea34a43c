"""The form of a record: what precedes it, how its numbers stand, and how it is written into the key of its columns."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.definitions.failure_markers import load_catalogue
from receipt_cli.grammar.catalog import shipped
from receipt_cli.grammar.parse import load_grammar
from receipt_cli.scan.engine import Engine
from receipt_cli.scan.forms import GLUED, GROUPED, MARK, MAX_FORMS, OTHER, PART, UNREAD, Form, read_form
from tests.tools.made import LOOSE

ENGINE = Engine(
    [load_grammar(json.dumps(LOOSE).encode(), "made/v1.yaml"), *(grammar for grammar in shipped() if grammar.id == "nanogpt")],
    load_catalogue(),
)
RECORD = "iter 10: loss 3.2841, time 131.97ms, mfu 29.53%"

names = st.from_regex(r"[a-z][a-z_ =.-]{0,12}", fullmatch=True)
pairs = st.lists(st.tuples(names, st.sampled_from([GROUPED, PART, GLUED, UNREAD])), max_size=3).map(tuple)
units = st.lists(st.tuples(names, st.sampled_from(["ms", "s", "ktok/s", "GiB", "%"])), max_size=3).map(tuple)
forms = st.builds(
    Form,
    st.from_regex(r"([A-Za-z]+( [A-Za-z]+)*[\"|]?)?", fullmatch=True),
    pairs,
    units,
    st.none() | st.tuples(names, st.integers(0, 9)),
)


@given(forms)
def test_a_form_is_read_as_it_was_written(form: Form) -> None:
    assert read_form(form.text()) == form


def form_of(line: str) -> Form:
    """Return the form of the only record of a line."""
    body = ENGINE.scan([f"{line}\n".encode()], whole=True).body
    (form,) = {mark + form for _, name in body.rules for _, mark, form in [name.partition(MARK)]}
    return read_form(form)


@pytest.mark.parametrize(
    ("before", "lead"),
    [
        ("", ""),
        ("[rank0]: ", ""),
        ("2026-05-06 07:08:09,123 - INFO - ", ""),
        ("2026-05-06T07:08:09Z INFO ", ""),
        (" 40%|████      | 4/10 [00:02<00:03,  2.01it/s]", ""),
        ("12 secs ", ""),
        ("Reference model ", "Reference model"),
        ("[rank0]: Teacher: ", "Teacher"),
        ("2026-05-06 07:08:09,123 - INFO - Profiling ", "Profiling"),
        ('he said: "', 'he said"'),
        ("  Warmup (3) ", "Warmup"),
        ("trainer  | ", "trainer|"),
        (" 40%|████      | 4/10 [00:02<00:03,  2.01it/s] Teacher ", "Teacher"),
    ],
)
def test_the_lead_of_a_record_is_the_words_behind_what_a_logger_puts_there(before: str, lead: str) -> None:
    assert form_of(before + RECORD).lead == lead


@pytest.mark.parametrize(
    ("line", "doubts"),
    [
        ("round 10: loss 3.28, took 1.25", {}),
        ("round 10: loss 3.28, took 1m 25s", {"time": PART}),
        ("round 10: loss 3.28, took 1s 25ms/step", {}),
        ("round 10: loss 1,234.5", {}),
        ("round 10: loss 1,234,", {"loss": PART}),
        ("round 10: loss 3.28#QNAN", {"loss": GLUED}),
        ("round 10: loss 3.round 11: loss 3.28", {"loss": GLUED}),
    ],
)
def test_a_number_in_doubt_is_in_the_form(line: str, doubts: dict[str, str]) -> None:
    body = ENGINE.scan([f"{line}\n".encode()], whole=True).body
    assert doubts in [dict(read_form(MARK + name.partition(MARK)[2]).doubts) for _, name in body.rules]


def test_more_forms_than_are_kept_lose_no_record() -> None:
    words = [f"{chr(97 + n // 26)}{chr(97 + n % 26)}q" for n in range(MAX_FORMS + 60)]
    text = "".join(f"{word} iter {n}: loss {3 + n / 1000:.4f}, time 131.97ms, mfu 29.53%\n" for n, word in enumerate(words))
    segment = ENGINE.scan([text.encode()], whole=True)
    assert any(name.endswith(MARK + OTHER) for _, name in segment.body.rules)
    body, _ = ENGINE.finish(segment)
    (columns,) = body.rules.values()
    assert list(columns.line) == list(range(1, len(words) + 1))
    assert body.doubts == []
