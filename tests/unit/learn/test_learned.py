"""Logs of trainers that nobody knows: what is learned of them, and what is left alone."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from receipt_cli.authoring.proposal import proposal_id
from receipt_cli.definitions.metrics import load_registry
from receipt_cli.derive import derive, read_log
from receipt_cli.detect.generic import WHERE, load_generic
from receipt_cli.errors import DataError
from receipt_cli.grammar.catalog import definition
from receipt_cli.io.source import Source, Stream
from receipt_cli.learn.learned import learn
from receipt_cli.learn.vocabulary import load_vocabulary
from tests.tools.logs import derived_of


def test_the_receipt_says_how_it_was_read() -> None:
    derivation = derived_of(f"tick it {n} train_ce {4 - n / 100:.2f} lr 0.1" for n in range(20))
    chosen = [(c.grammar.id, c.grammar.version, c.grammar.sha256) for c in derivation.detection.chosen]
    assert chosen == [("generic", 2, load_generic().sha256)]
    assert [p.kind for p in derivation.problems[1]] == ["generic_reading"]
    assert "trainer" not in derivation.facts


def test_a_known_trainer_is_never_read_generically() -> None:
    log = Path(__file__).resolve().parents[3] / "fixtures" / "logs" / "nanogpt" / "char-ok.log"
    assert [c.grammar.id for c in derive(Source(str(log))).detection.chosen] == ["nanogpt"]


@pytest.mark.parametrize(
    ("output", "log", "name"),
    [
        (None, "runs/My Run_7.log.gz", "my-run-7"),
        ("drafts/foo.yaml", "x.log", "foo"),
        (None, "-", "learned"),
        (None, "___.log", "learned"),
    ],
)
def test_a_draft_is_named_after_a_file(output: str | None, log: str, name: str) -> None:
    assert proposal_id(None, Path(output) if output else None, log) == name


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data["words"].update(loss="loss"),
        lambda data: data["metrics"].append("wit"),
        lambda data: data["thresholds"].update(records=0),
        lambda data: data.update(rules={}),
    ],
    ids=["words", "metrics", "thresholds", "top"],
)
def test_a_broken_vocabulary_is_refused(spoil: Callable[[dict[str, Any]], None]) -> None:
    data = yaml.safe_load(definition("generic"))
    spoil(data)
    with pytest.raises(DataError):
        load_vocabulary(yaml.safe_dump(data).encode(), WHERE, load_registry())


def test_spellings_of_trainers_can_be_left_out() -> None:
    whole, less = load_generic(), load_vocabulary(definition("generic"), WHERE, load_registry(), ["marian"])
    assert "l r" in whole.names and "l r" not in less.names


def test_nothing_is_learned_of_an_empty_log() -> None:
    assert learn([], load_generic()) is None


def test_an_engine_that_is_kept_reads_the_next_log_as_a_new_one_does(tmp_path: Path) -> None:
    derived = []
    for number in range(3):
        path = tmp_path / f"{number}.log"
        path.write_text("".join(f"[{10 * n + number}] my loss = {3 - n / 20:.{3 + number}f}, lr 0.001\n" for n in range(30)))
        for many in (True, False):
            with closing(Source(str(path))) as source:
                derivation = read_log([Stream((source,))], workers=1, one_of_many=many).derivation()
            derived.append((derivation.summaries, derivation.lines, derivation.detection))
    assert all(kept == fresh for kept, fresh in zip(derived[::2], derived[1::2], strict=True))
    assert all(summaries[0].record_count == 30 for summaries, _, _ in derived)
