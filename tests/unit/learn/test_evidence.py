"""An unknown log is read by weighed evidence: the weights are those of a table, and a clear lead is needed."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from benchmarks.fit_reading import EVIDENCE, FOLDS, PRIOR, TABLE, by_log, fit, read_table, score
from benchmarks.generators.own_scripts import dealt, script
from receipt_cli.authoring.explain import explain_log
from receipt_cli.detect.generic import load_generic
from receipt_cli.grammar.model import compile_pattern
from receipt_cli.learn.learned import learn, weigh_log
from receipt_cli.learn.several import Several
from receipt_cli.learn.tokens import core_start, split
from tests.tools.logs import receipt_of

WORDS = load_generic()
ROWS = read_table(TABLE.read_text("utf-8"))
LOSSES = [f"{4 - n / 50:.4f}" for n in range(60)]


def digest(weights: dict[str, float]) -> str:
    return hashlib.sha256(json.dumps(weights, sort_keys=True).encode()).hexdigest()


def test_the_weights_are_those_of_the_table() -> None:
    assert digest(fit(ROWS)) == digest({name: float(WORDS.evidence[name]) for name in EVIDENCE})
    assert set(PRIOR) == set(EVIDENCE) == set(WORDS.evidence) == set(WORDS.reasons) - {"rival", "nothing"}


def test_logs_that_the_weights_did_not_see_are_read_as_well() -> None:
    folds = [fit([row for row in ROWS if row.source % FOLDS != fold]) for fold in range(FOLDS)]
    found = score(ROWS, lambda fold: folds[fold], WORDS.margin)
    known = sum(any(row.right == 1 for row in rows) for rows in by_log(ROWS))
    assert found["right"] >= 0.96 * known
    assert found["wrong"] <= 3


def test_two_kinds_of_records_that_are_as_good_are_not_read() -> None:
    pairs = ((f"alpha step {n} loss {x}", f"beta step {n} loss {float(x) + 0.1:.4f}") for n, x in enumerate(LOSSES))
    lines = [line for pair in pairs for line in pair]
    decision = weigh_log(["".join(f"{line}\n" for line in lines).encode()], WORDS)
    assert decision.rival is not None and not decision.chosen
    assert receipt_of(lines)["summary"] is None


def test_of_records_that_say_the_same_or_the_mean_of_it_one_kind_is_read() -> None:
    pairs = ((f"[step {n}] avg_loss={float(x) / 2 + 1:.4f}", f"Step: {n} | Loss: {x}") for n, x in enumerate(LOSSES))
    summary = receipt_of([line for pair in pairs for line in pair])["summary"]
    assert summary["steps"]["record_count"] == len(LOSSES)
    assert summary["metrics"]["loss"]["last"] == pytest.approx(float(LOSSES[-1]), abs=1e-4)


def test_several_kinds_of_explanations_are_weighed(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text("".join(f"iter = {n}\nloss = {x}\n" for n, x in enumerate(LOSSES)), "utf-8")
    found = explain_log(str(log))[0]["explanations"]
    assert [(each["kind"], each["records"], each["chosen"]) for each in found] == [
        ("records over several lines", 60, True),
        ("records", 60, False),
    ]
    assert found[0]["score"] == pytest.approx(sum(found[0]["evidence"].values()), abs=0.05)
    assert found[1]["why"].startswith("other records may be") or "counts" in found[1]["why"]


@pytest.mark.parametrize("between", ["; ", " -> ", "\t", " | "])
@pytest.mark.parametrize("line", ["ep {n}: loss {x}", "[{n}] loss={x} acc 0.5"])
@pytest.mark.parametrize("each", [2, 5, 60])
def test_a_line_may_print_several_records(line: str, between: str, each: int) -> None:
    records = [line.format(n=n, x=x) for n, x in enumerate(LOSSES)]
    lines = [between.join(records[at : at + each]) for at in range(0, 60, each)]
    summary = receipt_of(["loading", *lines, f"best{between}{records[0]}", "done"])["summary"]
    assert (summary["steps"]["record_count"], summary["metrics"]["loss"]["first"], summary["metrics"]["loss"]["last"]) == (
        60,
        4,
        2.82,
    )


def plain(texts: Iterable[bytes]) -> tuple[bytes, ...]:
    """Return texts with single blanks."""
    return tuple(b" ".join(text.split()) for text in texts)


def read_by(text: str) -> tuple[set[tuple[bytes, ...]], list[bytes], list[bytes]]:
    """Return the templates of the step records of a log, and which lines the learned rules read, and which not."""
    learned = learn([text.encode()], WORDS)
    rules = [rule for rule in learned.rules if rule.body["event"] == "step"] if learned is not None else []
    lines = b"".join(Several().parted([text.encode()])).splitlines()
    cores = [line[core_start(line) :].rstrip() for line in lines]
    read = [core for core in cores if any(compile_pattern(rule.pattern).search(core) for rule in rules)]
    if any("(?P=" in rule.pattern for rule in rules):
        cores = []  # of bars it reads the full ones alone
    templates = {plain(literals) for rule in rules for literals in rule.templates}
    return templates, read, [core for core in cores if core not in read]


@pytest.mark.parametrize("number", range(0, 300, 10))
def test_a_learned_rule_reads_the_records_of_its_templates_and_no_others(number: int) -> None:
    names = dealt(7, 300)[number]
    text = script(7, number, *names).text
    templates, read, left = read_by(text.replace("\r", "\n"))
    assert {plain(split(core)[::2]) for core in read} <= templates
    assert not {plain(split(core)[::2]) for core in left} & templates
