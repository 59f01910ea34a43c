"""The end of a record at the cap on its length, and of the last one of a log that ends without a line end."""

import pytest

from receipt_cli.definitions.failure_markers import load_catalogue
from receipt_cli.grammar.catalog import shipped
from receipt_cli.records.split import RECORD_CAP
from receipt_cli.scan.engine import Engine
from tests.tools.logs import receipt_of


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine([grammar for grammar in shipped() if grammar.id == "nanogpt"], load_catalogue())


@pytest.mark.parametrize("by_layout", [False, True])
@pytest.mark.parametrize("more", [-1, 0, 1, 2])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r", b""])
def test_a_record_at_the_cap_in_two_blocks(engine: Engine, more: int, end: bytes, by_layout: bool) -> None:
    if not by_layout:
        engine = Engine(engine.grammars, engine.catalogue, by_layout=False)
    step = b"iter 1: loss 2.5, time 10.00ms, mfu 1.00%\n"
    text = step + b"x" * (RECORD_CAP + more) + end + (step if end else b"")
    for cut in (len(step) + 1, len(step) + 40_000, len(step) + RECORD_CAP, len(step) + RECORD_CAP + more):
        body, lines = engine.finish(engine.scan([text[:cut], text[cut:]]))
        known = [(problem.kind, problem.line_number, problem.detail) for _, problem in body.problems.first]
        said = ("record_too_long", 2, f"record of {RECORD_CAP + more} bytes: only the first {RECORD_CAP} were read")
        assert (known, lines) == ([said] if more > 0 else [], text.count(b"\n") + (not end))


STEPS = "".join(f"iter {n}: loss {3 - n / 100:.4f}, time {100 + n:.2f}ms, mfu 40.00%\n" for n in range(6))
VARIED = "".join(
    f"Epoch {n}/9\n10/10 [==============================] - 1s 9ms/step - loss: {3 - n / 100:.4f} - acc: {0.73 + n / 3200:.4f}\n"
    for n in range(1, 10)
).replace("0.7303", "0.73")
SAVED = "".join(f"[2025-09-21 09:28:2{n},433 INFO] Saving checkpoint model/bima_step_{n}000.pt\n" for n in range(6))
ONMT = "".join(
    f"[2025-09-21 09:28:2{n},433 INFO] Step {n}00/ 5000; acc: 5{n}.5; ppl: 12.3; xent: 2.5; lr: 0.00010; "
    f"sents: 100; bsz: 10/10/ 1; 100/100 tok/s; {n} sec;\n"
    for n in range(1, 6)
)
NAN = STEPS.replace("loss 2.9900", "loss nan")
FAIRSEQ = "".join(
    f"2022-09-14 03:0{n}:45 | INFO | train_inner | epoch 001:     5{n} / 310 loss=10.811, nll_loss=10.268, ppl=1233.27, "
    f"wps=59443.4, ups=3.93, wpb=14711.4, bsz=511.7, num_updates={n}50, lr=6.25e-06, gnorm=1.121, clip=0, loss_scale=16, "
    f"train_wall=12, gb_free=9.1, wall=32\n"
    for n in range(1, 5)
)
OF_NAN = FAIRSEQ.splitlines()[-1].replace("10.811", "nan").replace("10.268", "nan").replace("=450", "=550")
CUTS = [
    ("a whole record", STEPS[:-1], 6, False),
    ("inside the loss", STEPS + "iter 6: loss 2.", 6, True),
    ("inside the time", STEPS + "iter 6: loss 2.9400, time 10", 7, True),
    ("inside the step", STEPS + "iter 1", 6, True),
    ("behind the longest number of a column", VARIED[:-1], 9, False),
    ("behind a number that is longer elsewhere", VARIED.replace("0.7325", "0.73251")[:-1], 9, True),
    ("behind a number that is nan elsewhere", NAN + "iter 6: loss 2.9400, time 106.00ms, mfu 4", 7, True),
    ("inside the step, of a record that has another place, too", FAIRSEQ + OF_NAN.partition("50, lr=")[0] + "50, ", 4, True),
    ("a record with nan, behind the step", FAIRSEQ + OF_NAN.partition("6.25e")[0] + "6.25e-06, gnorm=1.", 5, True),
    ("the first record of all", "iter 0: loss 3.0000, time 100.00ms, mfu 40.00%", 0, True),
    ("a name with a number inside, whole", ONMT + SAVED[:-1], 5, False),
    ("a whole line behind all records", STEPS + "saving checkpoint to out", 6, False),
]


@pytest.mark.parametrize(("log", "records", "cut"), [cut[1:] for cut in CUTS], ids=[cut[0] for cut in CUTS])
def test_what_may_be_cut_is_not_read(log: str, records: int, cut: bool) -> None:
    document = receipt_of(log)
    problems = [problem["kind"] for problem in document["derivation"]["problems"]["first"]]
    summary = document["summary"]
    assert ((summary["steps"]["record_count"] if summary else 0), "last_record_cut" in problems) == (records, cut)


def test_a_figure_that_may_be_cut_is_named_and_null() -> None:
    document = receipt_of(VARIED.replace("0.7325", "0.73251")[:-1])
    (problem,) = [p for p in document["derivation"]["problems"]["first"] if p["kind"] == "figure_unread"]
    accuracy = document["summary"]["metrics"]["train_accuracy"]
    assert [accuracy[name] for name in ("first", "last", "min", "max")] == [0.73, None, None, None]
    assert "/summary/metrics/train_accuracy/last" in problem["fields"] and problem["values"] == ["0.7328"]


@pytest.mark.parametrize("end", ["1,517,", "1,51", "1,517"])
def test_groups_of_digits_are_one_number(end: str) -> None:
    head = "19-10-10 18:00:00.773 - INFO: Network G structure: DataParallel - MSRResNet, with parameters: "
    document = receipt_of(f"19-10-10 18:00:00.653 - INFO: Random seed: 0\n{head}{end}")
    assert document["header"]["model"]["parameter_count"] is None
