import json
import os
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.errors import InputError
from receipt_cli.header.document import merge
from receipt_cli.header.header_file import file_facts, header_document, read_header_file
from receipt_cli.header.values import HeaderFact

HEADER = merge(
    [
        HeaderFact("/git/commit", "0123abcd", "git"),
        HeaderFact("/hardware/cpu_count", 8, "host"),
        HeaderFact("/cwd", "/job", "host"),
        HeaderFact("/collected_at", "2026-01-31T12:00:00Z", "host"),
    ]
)
RUN = {"name": "run-7", "lane": "8xh100-d20", "started_at": "2026-01-31T12:00:00Z"}


def write(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document), "utf-8")
    return path


def test_what_was_written_is_read_and_its_facts_come_from_the_file(tmp_path: Path) -> None:
    document = header_document(RUN, HEADER)
    assert list(document) == ["schema_version", "run", "header"]
    assert document["run"] == RUN | {"preset": None}
    read = read_header_file(write(tmp_path / "header.json", document))
    assert read == document
    facts, notes = file_facts(read)
    assert notes == []
    assert {(fact.pointer, fact.value, fact.source) for fact in facts} == {
        ("/git/commit", "0123abcd", "file"),
        ("/hardware/cpu_count", 8, "file"),
        ("/cwd", "/job", "file"),
        ("/collected_at", "2026-01-31T12:00:00Z", "file"),
    }


def test_a_later_minor_version_is_read_and_its_new_keys_are_reported(tmp_path: Path) -> None:
    document = {"schema_version": "header/1.3", "run": {"owner": "x"}, "header": {"cloud": {"zone": "a"}}, "more": 1}
    read = read_header_file(write(tmp_path / "h", document))
    assert file_facts(read) == ([], ["header file: unknown keys ignored: /cloud"])


def test_a_byte_order_mark_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "h"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(header_document({}, HEADER)).encode())
    assert read_header_file(path)["header"] == HEADER


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ([], "JSON object"),
        ({"schema_version": "header/2.0", "header": {}}, "schema_version"),
        ({"schema_version": "header/1.0"}, "no header"),
        ({"schema_version": "header/1.0", "header": {"git": {"commit": "xyz"}}}, "/git/commit"),
        ({"schema_version": "header/1.0", "run": 5, "header": {}}, "/run"),
        ({"schema_version": "header/1.0", "run": {"name": 5}, "header": {}}, "/run/name"),
    ],
)
def test_another_kind_of_document_is_an_input_error(tmp_path: Path, document: Any, why: str) -> None:
    path = write(tmp_path / "header.json", document)
    with pytest.raises(InputError) as caught:
        read_header_file(path)
    assert why in caught.value.render()
    assert caught.value.where == str(path)


def test_a_file_that_cannot_be_read_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError) as missing:
        read_header_file(tmp_path / "nowhere.json")
    assert missing.value.why == os.strerror(2)
    with pytest.raises(InputError):
        read_header_file(tmp_path)


def test_the_writer_refuses_what_the_reader_would(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no key owner"):
        header_document({"owner": "x"}, HEADER)
    with pytest.raises(ValueError, match="/run/started_at"):
        header_document({"started_at": "2026-01-31 12:00"}, HEADER)
