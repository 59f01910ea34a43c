"""A text that convicts a run where it is printed is only a mention in a quotation, an option's help, a comment or a source."""

import re

import pytest

from receipt_cli.definitions.failure_markers import Marker, load_catalogue
from receipt_cli.records.place import LOGGED, MENTIONED, PRINTED, form_of
from receipt_cli.scan.book import search_markers

ROLES = ("cause", "stop", "error", "consequence", "exit_code")
CONVICTING = [marker for marker in load_catalogue().markers if marker.role in ROLES]
SAMPLES = [(marker, sample.decode()) for marker in CONVICTING for sample in marker.samples]
MEASURED = re.compile(r"\d [KMGT]i?B\b|\d bytes\b")
FORMS = (
    "retry_on: ['{}', 'timeout']",
    'retry_when: "{}"',
    "If you see `{}`, lower the batch size.",
    '{{"prompt": "why {}?", "answer": "it ended"}}',
    "sample 3: 'what does \"{}\" mean?' -> 'an error'",
    "2026-05-06 07:08:09,123 - train - INFO - patterns: ['{}', 'x']",
    "Namespace(on_error='{}', lr=0.1)",
)
SOURCES = (
    "  --retry-on TEXT   what to do on {} (default: restart)",
    "# {} is handled by the launcher",
    'print("{}")',
    '    raise RuntimeError("{}")',
)


def forms(markers: list[Marker], record: str) -> set[int]:
    raw = record.encode()
    return {form_of(raw, hit.start) for hit in search_markers(markers, raw)}


def test_what_a_program_prints_of_its_end_is_no_mention() -> None:
    assert len(SAMPLES) > 300
    assert [(marker.id, sample) for marker, sample in SAMPLES if MENTIONED in forms([marker], sample)] == []
    assert PRINTED in forms(CONVICTING, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")


@pytest.mark.parametrize("form", [*FORMS, *SOURCES])
def test_what_is_quoted_of_an_end_is_a_mention(form: str) -> None:
    texts = [sample for _, sample in SAMPLES if not re.search("[\"'`]", sample)]
    if form in FORMS:
        texts = [text for text in texts if not MEASURED.search(text)]  # a measured amount speaks of a real one
    assert [text for text in texts if forms(CONVICTING, form.format(text)) - {MENTIONED}] == []


def test_what_is_indented_as_a_source_is_convicts_behind_a_head_as_little_as_without() -> None:
    error = "TypingError: Failed in nopython mode pipeline (step: nopython frontend)"
    assert PRINTED in forms(CONVICTING, error) & forms(CONVICTING, f"gpu250: {error}")
    for head in ("", "gpu250: ", "2026-05-06T07:08:09.123456Z stdout F ", "[default0]:", "2026-05-06 07:08:09,120 - a - INFO - "):
        assert forms(CONVICTING, f"{head}    {error}") == set()
    assert forms(CONVICTING, f"ERROR    {error}") == {LOGGED}, "a level is padded"
