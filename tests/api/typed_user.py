"""A program that uses the API. It never runs: mypy --strict reads it (see test_typing.py).

A line that ends in ``# refused: CODE`` is wrong, and mypy must refuse it with that code. All others are right.
"""

# ruff: noqa: B018

import receipt_cli
from receipt_cli import Metric, Receipt, ReceiptError, Record, Run, Store
from receipt_cli.api.fields import Summary

run: Run = receipt_cli.read("train.log", exit_code=0, wall="3h10m", grammar="nanochat@v1")
runs: list[Run] = receipt_cli.read_all(["rank0.log", "rank1.log"])
loss: Metric = run.metrics["loss"]
last: float | None = loss.last
for record in run.records():
    place: tuple[int | None, int, int | None] = (record.step, record.line, record.rank)
    value: float = record.metrics["loss"]
run.frame("loss", "tokens_per_s").describe()
axes = run.plot("loss")[0]

receipt: Receipt = run.receipt
summary: Summary | None = receipt.summary
if summary is not None:
    count: int | None = summary.steps.record_count
    median: float | None = summary.metrics["tokens_per_s"].median
if receipt.failure is not None and receipt.failure.reason == "cuda_oom":
    message: str | None = receipt.failure.message
names: list[str | None] = [phase.name for phase in receipt.phases]
sha: str | None = receipt.derivation.log.sha256
plain: dict[str, object] = receipt.to_dict()

try:
    receipt = receipt_cli.load("a.receipt.json")
except ReceiptError as error:
    print(error.message, error.why, error.try_, error.where, error.exit_code)
verified: bool = receipt_cli.verify("a.receipt.json", "train.log").verified
pointers: list[str] = [d.pointer for d in receipt_cli.verify("a.receipt.json", ["a", "b"]).differences]
worse: bool = receipt_cli.compare(run, "other.log", align="tokens").worse
verdicts: list[str] = [contrast.verdict for contrast in receipt_cli.compare(run, runs[0]).contrasts]
versions: tuple[str, ...] = receipt_cli.migrate("a.receipt.json").versions
errors: list[str] = [f.reason for f in receipt_cli.validate(["a.json"]) if f.severity == "error"]
store = Store("receipts")
rows: list[dict[str, object]] = store.query("SELECT name FROM runs")
frame = store.query("SELECT name FROM runs", frame=True)
kept: Receipt = store.receipt("0" * 64)
version: str = receipt_cli.__version__

receipt_cli.reed("train.log")  # refused: attr-defined
receipt_cli.read("train.log", gramar="nanochat")  # refused: call-arg
receipt_cli.read("train.log", exit_code="0")  # refused: arg-type
receipt_cli.read(3)  # refused: arg-type
run.metrics["loss"].lst  # refused: attr-defined
run.metrics["loss"].last + 1  # refused: operator
run.metrics["loss"].last = 1.0  # refused: misc
run.metrics = {}  # refused: misc
first: Record = next(run.records()).metrics  # refused: assignment
receipt.summary.steps  # refused: union-attr
receipt.sumary  # refused: attr-defined
receipt.run.name = "mine"  # refused: misc
receipt.checks.helthy  # refused: attr-defined
receipt.failure is not None and receipt.failure.reason == "oom"  # refused: comparison-overlap
receipt.derivation.lines.matched.upper()  # refused: attr-defined
receipt.phases[0].summary.metrics["loss"].latest  # refused: attr-defined
receipt_cli.verify("a.receipt.json")  # refused: call-arg
receipt_cli.compare(run, receipt_cli)  # refused: arg-type
receipt_cli.compare(run, run, align="epochs")  # refused: arg-type
receipt_cli.migrate("a.receipt.json", to=1.2)  # refused: arg-type
receipt_cli.validate("a.json").valid  # refused: attr-defined
store.query("SELECT 1").describe()  # refused: attr-defined
store.receipts  # refused: attr-defined
receipt_cli.verify("a", "b").difference  # refused: attr-defined
