"""What fuzzing and the generator of hostile records found, each by its name."""

import re
from pathlib import Path

import pytest

from benchmarks.identity import find_difference, read_both
from receipt_cli.authoring.lint import lint_grammar
from receipt_cli.authoring.redos import HOSTILE_BYTES, Attack
from receipt_cli.definitions.failure_markers import load_catalogue
from receipt_cli.definitions.units import UNITS, read_number, split_suffix
from receipt_cli.errors import UsageError
from receipt_cli.grammar.catalog import shipped
from receipt_cli.importers.values import Names
from receipt_cli.importers.wall_time import read_wall
from receipt_cli.io.discovery import arrange
from receipt_cli.receipts.production import Request, produce
from receipt_cli.records.heuristics import count_step_lines
from receipt_cli.redaction.mask import mask_secrets
from receipt_cli.scan.extraction import extract
from tests.fuzz.harness import ROOT
from tests.tools.timed import takes_less


def grammar(name: str) -> list[object]:
    return [g for g in shipped() if g.id == name]


QUICK_S = 2.0
"""What was found took a minute and more; without that it takes milliseconds."""


@pytest.mark.parametrize(
    ("text", "unit", "want"), [("7gb", "GB", 7e9), ("7.5gb", "GiB", 7.5 * 2**30), ("512mb", "suffix", 512e6)]
)
def test_a_lower_case_unit_of_bytes_is_read(text: str, unit: str, want: float) -> None:
    assert read_number(text, unit) == want  # it raised KeyError


@pytest.mark.parametrize("unit", [None, "si", "suffix", *UNITS])
def test_no_suffix_of_any_unit_is_unknown(unit: str | None) -> None:
    for suffix in ("kb", "gb", "tb", "b", "gB", "KiB", "msec", "P", "%"):
        assert isinstance(read_number(f"1{suffix}", unit), float | None)


@pytest.mark.parametrize("vanishing", [b"\x08", b"\r\x00", b"\r\x1b[0m", b"\x08\x08"])
def test_what_vanishes_before_a_line_end_leaves_two_ends(vanishing: bytes) -> None:
    """Read together, a carriage return that came to stand before the line feed was taken for one end with it."""
    log = b"B\nDLL 2" + vanishing + b"\n"
    fast, pure = read_both(grammar("dllogger"), [log * 2, log * 2])  # type: ignore[arg-type]
    assert find_difference(fast, pure) is None


def test_what_looks_like_a_step_is_one_record() -> None:
    """A word at the end of one record and a number in the next: whether that counted depended on where the log was cut."""
    assert count_step_lines(b"epoch\r1ppl 6\nstep\n2 loss 5\n", 3) == 0
    assert count_step_lines(b"epoch\t1ppl 6\n", 3) == 1


def test_a_wall_time_that_can_be_no_path_is_refused() -> None:
    with pytest.raises(UsageError, match="neither a duration nor a file"):
        read_wall("1:02:0302" * 900)  # it was looked for, and the name was too long for the system


CELLS = {
    "timm": ("train_update_of_a_fork", "a"),
    "basicsr": ("train_iteration", "0"),
    "torchvision": ("train_iteration", "0"),
    "paddle": ("classification_2020", "{"),
    "dllogger": ("epoch_iteration", "1,"),
}


@pytest.mark.parametrize(("name", "rule", "pump"), [(n, *row) for n, row in CELLS.items()], ids=list(CELLS))
def test_a_cell_without_end_is_looked_at_once(name: str, rule: str, pump: str) -> None:
    """64 KiB of one word took 20 to 180 s: from each of its letters the key was read again."""
    found = next(r for g in shipped(with_samples=True) if g.id == name for r in g.rules if r.name == rule)
    head = found.samples[0].line.split("\n")[-1]
    assert takes_less(QUICK_S, extract, found, Attack(head, pump, "!").record(HOSTILE_BYTES))


RECORDS = {
    "deepspeed": ("virtual_memory", "", "0/111", ", vm %: "),
    "levanter": ("validation", "", "levanter000", " - a.py:0 - INFO :: validation loss: !"),
    "mlperf": ("other_keys", "", ":::MLLOG {aaa", '"key":!'),
    "clu": ("train", "", "logging_writer.py:0] [0] aaa", ", loss= "),
}


@pytest.mark.parametrize(("name", "rule", "head", "pump", "tail"), [(n, *row) for n, row in RECORDS.items()], ids=list(RECORDS))
def test_a_record_of_many_beginnings_is_quick(name: str, rule: str, head: str, pump: str, tail: str) -> None:
    found = [r for g in shipped() if g.id == name for r in (*g.rules, *g.ignore) if r.name == rule]
    assert found
    assert all(takes_less(QUICK_S, extract, r, Attack(head, pump, tail).record(HOSTILE_BYTES)) for r in found)


def test_an_exception_of_many_means_is_quick() -> None:
    marker = next(m for m in load_catalogue().markers if m.id == "exception")
    assert takes_less(QUICK_S, marker.search, Attack("", "Mean000", "Errora: ").record(HOSTILE_BYTES))


@pytest.mark.parametrize("unit", [".ab", ":aa", "-A", "_a.b"])
def test_a_broken_line_of_many_words_is_no_puzzle(unit: str) -> None:
    """Each word could be read in two ways: forty of them took hours."""
    text = "key " + "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA" * 3 + "\n" + unit * 90 + "1 x"
    assert takes_less(QUICK_S, mask_secrets, text)


def test_a_field_of_a_sample_that_is_no_text_is_a_finding() -> None:
    text = (ROOT / "grammars" / "nanogpt" / "v1.yaml").read_text("utf-8")
    assert "fields: {" in text
    at = text.index("fields: {", text.index("samples:")) + len("fields: {")
    found = lint_grammar((text[:at] + "1: 2, " + text[at:]).encode(), "nanogpt/v1.yaml")
    assert any("field 1 is stated as 2" in finding.reason for finding in found)


def test_an_observation_over_several_files_has_its_lines_in_order(tmp_path: Path) -> None:
    """In the order of the run the first sight may stand on a later line than the last one."""
    nan = b"FloatingPointError: Loss became infinite or NaN at iteration=45!\n"
    head = b"[03/05 09:12:30] d2.utils.events INFO:  eta: 0:00:58  iter: %d  total_loss: 3.054  time: 0.2122  "
    head += b"data_time: 0.01  lr: 0.004  max_mem: 3306M\n"
    (tmp_path / "run-rank0.log").write_bytes(b"".join(head % step for step in (19, 39, 59)) + nan)
    (tmp_path / "run-rank1.log").write_bytes(head % 19 + nan + head % 39 + head % 59)
    made = produce(Request(path=str(tmp_path / "run-rank0.log"), more=(str(tmp_path / "run-rank1.log"),)))
    seen = made.document["derivation"]["observed"]
    assert all(marker["first_line"] <= marker["last_line"] for marker in seen)


def test_a_long_number_is_split_at_once() -> None:
    assert takes_less(QUICK_S, split_suffix, "0" + "111" * 20_000 + "!")


def test_a_long_name_of_memory_is_read_at_once() -> None:
    assert takes_less(QUICK_S, Names({}).meaning, "mem111" * 10_000 + "g")


def test_a_long_name_of_a_file_is_read_at_once() -> None:
    assert takes_less(QUICK_S, arrange, ["a.log", "b.log"], ["a" * 60_000, "b" * 60_000])


@pytest.mark.parametrize(
    "line", [b"\xe5poch}h} %d train_loss 2.%d ti\n", b"Epoch %d\n\xe9poque loss: 2.%d\n", b"step %d r\xe9seau_loss 2.%d\n"]
)
def test_a_byte_that_is_no_utf8_beside_a_learned_name(line: bytes, tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_bytes(b"".join(line % (n, n) for n in range(1, 40)))
    document = produce(Request(path=str(log))).document
    assert document["derivation"]["log"]["record_count"] == 39 * line.count(b"\n")


@pytest.mark.parametrize("kept", [0, 7])
def test_a_bar_with_waits_and_few_step_times_is_no_contradiction(kept: int, tmp_path: Path) -> None:
    """The share of waiting is then one of the time between steps: the validator compared it with the few step times."""
    whole = (ROOT / "fixtures" / "logs" / "torchspec" / "waits-for-inference-2026.log").read_bytes().decode()
    timed = re.compile(r"\[[^]]*\] loop\.py:340 INFO TIMING step=(\d+):[^\r\n]*")
    log = tmp_path / "run.log"
    log.write_bytes(timed.sub(lambda found: found[0] if int(found[1]) <= kept else "", whole).encode())
    [phase] = produce(Request(path=str(log))).document["phases"]
    medians = phase["summary"]["bottleneck"]["medians"]
    assert ("step_time_s" in medians) is bool(kept)
    assert medians["dispatch_wait_ratio"] == pytest.approx(medians["dispatch_wait_s"] / medians["cycle_time_s"])
