"""A pattern of somebody else's grammar has its time for one record, of whichever kind its rule is: then the log goes on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from receipt_cli.derive import derive
from receipt_cli.grammar.model import Rule
from receipt_cli.grammar.parse import load_grammar
from receipt_cli.io.source import Source
from receipt_cli.scan.extraction import extract, read_record
from receipt_cli.scan.extraction.model import PatternTimeout

ENDLESS = r"(?:a|aa)+(?:b|bb)*x?Z"
"""Backtracks without end over letters a, though each of its parts may be there."""
FIELDS = {"step": {"type": "integer"}, "loss": {"type": "number", "metric": "loss"}}
KEYS = {"step": "step", "loss": "loss"}
KINDS = {
    "pattern": {"pattern": rf"step (?P<step>\d++) loss (?P<loss>[\d.]++)(?: {ENDLESS})"},
    "pairs, its start": {"pairs": {"start": rf"step (?={ENDLESS})", "cell": "|", "key": ":", "keys": KEYS}},
    "pairs, its stop": {"pairs": {"start": "step ", "stop": ENDLESS, "cell": "|", "key": ":", "keys": KEYS}},
    "mapping": {"mapping": {"syntax": "python", "start": rf"step {ENDLESS}\{{", "keys": KEYS, "requires": ["step"]}},
    "table": {"table": {"header": f"step {ENDLESS}", "row": f"step {ENDLESS}!", "skip_cells": 0, "keys": KEYS}},
    "block, its opening": {
        "block": {"open": f"step {ENDLESS}", "row": "(?P<key>q): (?P<value>q)", "gap": 1, "keys": KEYS, "requires": ["step"]}
    },
    "block, its row": {"block": {"row": rf"(?P<key>step) (?P<value>{ENDLESS})", "gap": 1, "keys": KEYS, "requires": ["step"]}},
}
HOSTILE = b"step " + b"a" * 60 + b"! Z: | {"


def grammar_of(body: dict[str, object]) -> bytes:
    rule = {"event": "step", "literal": "step ", "fields": FIELDS, **body}
    head = {"grammar": "mine", "version": 1, "title": "Mine", "upstream": "u", "trainer": "mine"}
    return yaml.safe_dump({**head, "rules": {"slow": rule}}).encode()


def rule_of(body: dict[str, object]) -> Rule:
    return load_grammar(grammar_of(body), "mine.yaml").rules[0]


@pytest.fixture
def small_box(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search without it would not come to an end."""
    monkeypatch.setattr("receipt_cli.scan.extraction.model.TIME_BOX_S", 0.05)


@pytest.mark.parametrize("body", KINDS.values(), ids=KINDS)
def test_every_kind_of_rule_has_its_time(body: dict[str, object], small_box: None) -> None:
    record = HOSTILE if "pattern" not in body else b"step 1 loss 2.5 " + b"a" * 60 + b"! Z"
    rule = rule_of(body)
    with pytest.raises(PatternTimeout, match="slow"):
        extract(rule, record)


def test_many_events_of_one_record_share_the_time(small_box: None) -> None:
    rule = rule_of(KINDS["pairs, its stop"])
    with pytest.raises(PatternTimeout):
        extract(rule, b" ".join([b"step " + b"a" * 18 + b"! Z"] * 6000))  # each alone takes milliseconds


def test_places_behind_envelopes_share_the_time(small_box: None) -> None:
    rule = rule_of({"pattern": rf"^step (?P<step>\d++) loss (?P<loss>\d)|^ *{ENDLESS}"})
    record = b"[rank3]: 2026-01-02 03:04:05,678 - INFO - " + b"a" * 60 + b"! Z step"
    with pytest.raises(PatternTimeout):
        read_record(rule, record)


def test_a_log_goes_on_behind_such_a_record(tmp_path: Path, small_box: None) -> None:
    log, own = (
        tmp_path / "run.log",
        load_grammar(grammar_of({"pattern": rf"step (?P<step>\d++) loss (?P<loss>[\d.]++)(?: {ENDLESS})?$"}), "mine"),
    )
    log.write_bytes(b"step 1 loss 2.5\nstep 2 loss 2.4 " + b"a" * 60 + b"! Z\nstep 3 loss 2.3\n")
    found = derive(Source(str(log)), using=own)
    assert [(p.kind, p.line_number) for p in found.problems[1]] == [("pattern_timeout", 2)]
    assert found.problems[1][0].detail == "mine@v1 slow took too long"
    assert list(found.rule_records.values()) == [2]


SUSPENDED = """
import sys
from receipt_cli.scan.extraction import model
import regex
model.TIME_BOX_S = 1.5
print("ready", flush=True)
sys.stdin.readline()
found = regex.compile(rb"(?:a|aa)+(?:b|bb)*x?Z").search(b"a" * 25 + b"! Z", timeout=model.TIME_BOX_S)
print(found)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="nothing can be suspended here")
def test_the_time_is_that_of_the_processor() -> None:
    """A laptop that is closed while a log is read wakes up to the same receipt."""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])}
    with subprocess.Popen(
        [sys.executable, "-c", SUSPENDED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
    ) as child:
        assert child.stdin is not None and child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child.stdin.write("go\n")
        child.stdin.flush()
        time.sleep(0.02)
        child.send_signal(signal.SIGSTOP)
        time.sleep(1.8)
        child.send_signal(signal.SIGCONT)
        assert child.stdout.read() == "None\n"
