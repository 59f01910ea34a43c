"""Law 4: ``has_steps`` is false only if the log proves it; a log that nobody understood says nothing of steps."""

from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.examples import costly
from tests.tools.logs import receipt_of

ROOT = Path(__file__).resolve().parents[2]
WORDS = ("step", "epoch", "Update", "pass", "round", "xyz", "")
FIGURES = ("loss", "reward", "T_a", "score", "qux", "")


@settings(max_examples=costly(60), deadline=None)
@given(
    word=st.sampled_from(WORDS),
    figure=st.sampled_from(FIGURES),
    joint=st.sampled_from([" ", ": ", "=", " | "]),
    count=st.integers(1, 12),
    rest=st.sampled_from(["", "Traceback (most recent call last):\nValueError: no\n", "Training complete\n"]),
)
def test_no_unknown_log_says_that_no_step_was_taken(word: str, figure: str, joint: str, count: int, rest: str) -> None:
    lines = "".join(f"{word}{joint}{n} {figure}{joint}{4 - n / 50:.4f}\n" for n in range(count))
    document = receipt_of(lines + rest)
    assert document["checks"]["has_steps"] is not False
    if document["checks"]["has_steps"] is None:
        told = next(p for p in document["derivation"]["problems"]["first"] if p["kind"] == "no_step_recognised")
        assert "/checks/has_steps" in told["fields"]
        assert document["summary"] is None or document["summary"]["steps"]["record_count"] is None
        assert document["failure"] is None or rest.startswith("Traceback")


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("mmengine/crash-before-steps-console", False),
        ("deepspeed/engine-config-error", None),
        ("mlperf/mllog-success", None),
        ("sentence-transformers/old-fit-crash-6.2", None),
        ("nanogpt/char-ok", True),
    ],
)
def test_false_is_proven_by_a_known_trainer_that_ended_before_anything_counted(log: str, expected: bool | None) -> None:
    text = (ROOT / "fixtures" / "logs" / f"{log}.log").read_text("utf-8")
    assert receipt_of(text)["checks"]["has_steps"] is expected


FAILED = """Traceback (most recent call last):
  File "/job/own.py", line 36, in <module>
    output = model(batch)
RuntimeError: the sizes of two tensors differ
"""
IMPORT = """Traceback (most recent call last):
  File "/job/own.py", line 3, in <module>
    from own.data import build
  File "/job/own/data.py", line 9, in build_all
    return {}["key"]
KeyError: 'key'
"""
BEGUN = "nohup: ignoring input\n"


def bar(name: str) -> str:
    return f"{name}:  50%|█████     | 1/2 [00:10<00:10, 10.0s/it]\n{name}: 100%|██████████| 2/2 [00:20<00:00, 10.1s/it]\n"


OPTIONS = ("size", "depth", "width", "kind", "place", "name")
CONFIGURED = "".join(
    f"{name} {other} = {n}\n" for n, (name, other) in enumerate(product(("option", "flag", "path", "use"), OPTIONS))
)


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (BEGUN + "device is: cuda:0\n" + FAILED, False),
        ("Collecting torch==2.1.0\n  Using cached torch-2.1.0.whl (2.4 MB)\n" + FAILED, False),
        (CONFIGURED + FAILED, False),
        (
            "".join(f"heartbeat {n}\nqueue is empty\n" for n in range(40)) + FAILED,
            None,
        ),  # of others: the program may have run long
        (IMPORT, False),
        (FAILED, None),  # what was before it may have been cut off
        ("model ready\n" + FAILED, None),
        (BEGUN + "model ready\n", None),  # how it ended is not shown
        (BEGUN + "Received 15 death signal, shutting down workers\n", None),  # however long it ran in silence
        (BEGUN + "loss: 0.52\n" + FAILED, None),
        (BEGUN + "iteration 3\niteration 4\n" + FAILED, None),
        (BEGUN + "0 0.91 1.25\n1 0.82 1.21\n2 0.74 1.18\n" + FAILED, None),
        (BEGUN + bar("Epochs") + FAILED, None),
        (BEGUN + bar("Loading shards") + FAILED, False),
        (BEGUN + "INFO:root:Reducer buckets have been rebuilt in this iteration.\n" + FAILED, None),
        (BEGUN + FAILED + "wandb: Run summary:\nwandb:   train/global_step 260\nwandb:          train/loss 1.4358\n", None),
        (BEGUN + FAILED + "wandb: Run summary:\nwandb:   train/global_step 0\n", False),
        (IMPORT + "accuracy 0.91\n" + IMPORT, None),
    ],
)
def test_a_program_that_nobody_knows_failed_before_a_step_if_its_log_shows_its_beginning(log: str, expected: bool | None) -> None:
    assert receipt_of(log)["checks"]["has_steps"] is expected


CRASHED = sorted(
    path
    for path in (ROOT / "fixtures" / "logs").glob("*/*.log")
    if b"Traceback (most recent" in (text := path.read_bytes()) and len(text) < 100_000
)


@settings(max_examples=costly(60), deadline=None)
@given(path=st.sampled_from(CRASHED), back=st.integers(0, 40))
def test_the_end_of_a_log_with_steps_never_proves_that_there_was_none(path: Path, back: int) -> None:
    text = path.read_text("utf-8", "replace")
    whole = receipt_of(text)
    lines = text[: text.rindex("Traceback (most recent")].splitlines(keepends=True)
    if whole["checks"]["has_steps"]:
        end = "".join(lines[-back:] if back else []) + text[text.rindex("Traceback (most recent") :]
        assert receipt_of(end)["checks"]["has_steps"] is not False


def test_a_known_trainer_whose_log_breaks_off_proves_nothing() -> None:
    text = (ROOT / "fixtures" / "logs" / "mmengine" / "crash-before-steps-console.log").read_text("utf-8")
    document = receipt_of(text[: text.index("Traceback (most")])
    assert document["checks"]["has_steps"] is None


@pytest.mark.parametrize(
    "lines", [["Step 800/3000; acc:  69.58; loss: 14.93; lr: 0.00100"], ["Step 50, Loss: 4.8445", "Step 100, Loss: 4.0545"]]
)
def test_one_or_two_records_of_an_unambiguous_form_are_read(lines: list[str]) -> None:
    document = receipt_of("".join(f"{line}\n" for line in lines))
    assert (document["checks"]["has_steps"], document["summary"]["steps"]["record_count"]) == (True, len(lines))
