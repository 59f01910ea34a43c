"""The recorded inputs of a receipt: options, run, files, and the grammars of its release."""

from typing import Any

import pytest

from receipt_cli.errors import DataError
from receipt_cli.grammar.catalog import get_grammar
from receipt_cli.verification.verifier import Recorded, RecordedFile


def derivation(**changes: Any) -> dict[str, Any]:
    grammar = get_grammar("nanochat")
    entry = {"id": grammar.id, "version": grammar.version, "sha256": grammar.sha256, "chosen_by": "evidence"}
    options = {"grammar": None, "exit_code": 1, "wall": {"seconds": 60.0, "evidence": "stated", "phase": None}}
    return {"grammars": [entry], "options": options, "log": {}, "tool_version": "0.1.0", **changes}


def test_options_run_and_files_are_read() -> None:
    files = [{"name": "rank0.log", "sha256": "ab", "size_bytes": 1}]
    recorded = Recorded.of(derivation(launches={"used": 2, "count": 3, "first_line": 9}, log={"files": files}))
    assert (recorded.launch, recorded.files, recorded.options.exit_code) == (1, (RecordedFile("rank0.log", "ab"),), 1)
    assert recorded.options.wall.seconds == 60.0


def test_detected_grammars_are_a_choice_and_no_forced_one() -> None:
    recorded = Recorded.of(derivation())
    choice = recorded.choice()
    assert recorded.forced() is None
    assert [(c.grammar.id, c.chosen_by) for c in choice.chosen] == [("nanochat", "evidence")]
    assert choice.chosen[0].grammar in choice.catalogue
    assert not choice.generic


def test_a_grammar_of_the_caller_is_forced_and_no_choice() -> None:
    grammar = get_grammar("nanochat")
    options = {"grammar": grammar.ref, "exit_code": None, "wall": None}
    recorded = Recorded.of(derivation(options=options))
    assert recorded.choice() is None
    forced = recorded.forced()
    assert (forced.ref, forced.sha256) == (grammar.ref, grammar.sha256)


def test_an_unknown_grammar_is_an_error() -> None:
    entry = {"id": "nowhere", "version": 1, "sha256": "0" * 64, "chosen_by": "evidence"}
    with pytest.raises(DataError):
        Recorded.of(derivation(grammars=[entry])).choice()
