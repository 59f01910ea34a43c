"""Which grammar reads a log, in which version, and what became of every line."""

from pathlib import Path
from typing import Any

import pytest

from receipt_cli.authoring.explain import explain_log
from receipt_cli.derive import read_log
from receipt_cli.io.source import Source, Stream
from tests.tools.logs import receipt_of, toy_receipt

NANOGPT = "".join(f"iter {n}: loss 2.5, time 100.00ms, mfu 40.00%\n" for n in range(6))
TITAN = "step: {n}  loss:  6.5  grad_norm: 1.5  memory: 1.00GiB(1.00%)  tps: 100  tflops: 9.02  mfu: 42.44%\n"
MEGATRON = (
    " iteration {n:8d}/       6 | consumed samples: {n:12d} | elapsed time per iteration (ms): 500.0 | learning rate: 1.0E-05 |"
    " global batch size:     8 | lm loss: 9.0E+00 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
)
HF = "{{'loss': 1.4872, 'grad_norm': 2.8125, 'learning_rate': 4.75e-05, 'epoch': 0.{n}}}\n"
NANOCHAT = (
    "step {n:05d}/00100 ({n}.00%) | loss: 3.0 | lrm: 1.00 | dt: 500.00ms | tok/sec: 1,000 | mfu: 40.00 | total time: 0.02m\n"
)


def chosen(document: dict[str, Any]) -> list[tuple[str, str]]:
    return [(g["id"], g["chosen_by"]) for g in document["derivation"]["grammars"]]


def lines(document: dict[str, Any]) -> dict[str, int]:
    derivation = document["derivation"]
    assert sum(derivation["lines"].values()) == derivation["log"]["record_count"]
    return dict(derivation["lines"])


@pytest.mark.parametrize(
    ("line", "name"), [(TITAN, "torchtitan"), (MEGATRON, "megatron-lm"), (HF, "hf-trainer"), (NANOCHAT, "nanochat")]
)
def test_trainers_are_recognised(line: str, name: str) -> None:
    document = receipt_of("".join(line.format(n=n) for n in range(1, 7)))
    assert [g["id"] for g in document["derivation"]["grammars"]] == [name]
    assert document["summary"]["steps"]["record_count"] == 6
    assert document["derivation"]["lines"]["matched"] == 6


@pytest.mark.parametrize("head", ["", "[rank0]:", "2026-01-02T03:04:05.678Z ", "\ufeff", "\x1b[32m", "0: "])
def test_envelopes_change_nothing(head: str) -> None:
    document = receipt_of("".join(head + line + "\n" for line in NANOGPT.splitlines()))
    assert chosen(document) == [("nanogpt", "only_version")]
    assert document["summary"]["steps"]["record_count"] == 6


def test_the_source_of_a_trainer_is_no_run() -> None:
    source = 'print(f"iter {iter_num}: loss {lossf:.4f}, time {dt*1000:.2f}ms, mfu {running_mfu*100:.2f}%")\n'
    document = receipt_of(source * 5)
    assert chosen(document) == []
    assert (document["failure"], document["checks"]["has_steps"]) == (None, None)


def test_a_stated_grammar_decides() -> None:
    document = receipt_of(NANOGPT, "nanogpt@v1")
    assert chosen(document) == [("nanogpt", "option")]
    assert document["derivation"]["options"]["grammar"] == "nanogpt@v1"
    assert chosen(receipt_of(NANOGPT, "megatron-lm")) == []  # it explains no line of this log


def test_without_evidence_the_version_is_a_default() -> None:
    document = receipt_of("".join(NANOCHAT.format(n=n) for n in range(6)))
    [(name, by)] = chosen(document)
    assert (name, by in ("default", "evidence")) == ("nanochat", True)


def mllog(second: int, key: str, value: str = "null", metadata: str = "") -> str:
    head = f':::MLLOG {{"namespace": "", "time_ms": {1700000000 + second}000, "event_type": "POINT_IN_TIME", "key": "{key}", '
    return head + f'"value": {value}, "metadata": {{"file": "train.py", "lineno": 9{metadata}}}}}\n'


def test_a_benchmark_tells_its_result_beside_a_trainer() -> None:
    evaluation = mllog(50, "eval_accuracy", "0.625", ', "epoch_num": 2')
    document = receipt_of(mllog(0, "run_start") + NANOGPT + evaluation + mllog(75, "run_stop", metadata=', "status": "success"'))
    assert chosen(document) == [("nanogpt", "only_version"), ("mlperf", "only_version")]
    summary = document["summary"]
    assert (summary["steps"]["record_count"], summary["time_to_train_s"], document["checks"]["completed"]) == (6, 75.0, True)
    assert summary["other_metrics"]["eval_accuracy"]["last"] == 0.625
    assert len(document["phases"]) == 1


def test_what_a_benchmark_says_of_itself_is_not_said_by_the_trainer() -> None:
    document = receipt_of(mllog(0, "seed", "7") + NANOGPT + mllog(9, "tracked_stats", '{"throughput": 0.25}', ', "step": 3'))
    assert document["header"]["seeds"] is None
    assert (document["summary"]["other_metrics"], "samples_per_s" in document["summary"]["metrics"]) == ({}, False)


@pytest.mark.parametrize("unit", ["device", "GPU"])
def test_headings_that_scripts_copied_name_no_trainer(unit: str) -> None:
    lines = f"""***** Running training *****
  Num Epochs = 100
  Instantaneous batch size per {unit} = 64
  Total train batch size (w. parallel, distributed & accumulation) = 64
  Gradient Accumulation steps = 1
  Total optimization steps = 1000
Traceback (most recent call last):
  File "main.py", line 9, in <module>
NameError: name 'global_step' is not defined
"""
    assert receipt_of(lines)["header"]["software"]["trainer"] is None


TABLE = "#  step   rmse_val   rmse_trn     lr\n" + "".join(f"{n:7}   1.07e+01   1.02e+01   1.0e-03\n" for n in range(20))


@pytest.mark.parametrize("log", [TABLE, "Configuration:\n{'batch_size': 128,\n 'weight_decay': 1e-05}\n"])
def test_rows_that_make_no_record_name_no_trainer(log: str) -> None:
    document = receipt_of(log)
    assert (document["header"]["software"]["trainer"], document["derivation"]["grammars"]) == (None, [])


def test_what_a_library_prints_leaves_the_log_to_its_trainer() -> None:
    table = """|                  PyTorch CUDA memory summary, device ID 0                 |
|---------------------------------------------------------------------------|
|            CUDA OOMs: 1            |        cudaMalloc retries: 2         |
|===========================================================================|
| Allocated memory      |    9427 MiB |   10994 MiB |   26998 MiB |   17571 MiB |
| GPU reserved memory   |   11628 MiB |   11870 MiB |   13438 MiB |    1810 MiB |
| Non-releasable memory |     512 MiB |     859 MiB |   10878 MiB |   10245 MiB |
"""
    oom = "2023-06-30 14:18:24 | WARNING | fairseq.trainer | OOM: Ran out of memory with exception: CUDA out of memory. "
    oom += "Tried to allocate 784.00 MiB (GPU 1; 31.75 GiB total capacity)\n"
    start = "2023-06-30 14:17:18 | INFO | fairseq_cli.train | training on 2 devices (GPUs/TPUs)\n"
    document = receipt_of(start + (oom + table) * 4)
    assert chosen(document)[0][0] == "fairseq"
    assert (document["header"]["software"]["trainer"], document["derivation"].get("launches")) == ("fairseq", None)


def test_a_log_of_epochs_only_is_read_by_its_own_version() -> None:
    epoch = 'json_stats: {{"RAM": "1/2G", "_type": "{kind}", "epoch": "{n}/9", {rest}"top1_err": 3.5, "top5_err": 0.5}}\n'
    train = '"loss": 0.5, "lr": 0.01, '
    epochs = "".join(
        epoch.format(kind=kind, n=n, rest=rest)
        for n in range(1, 10)
        for kind, rest in (("train_epoch", train), ("val_epoch", ""))
    )
    iterations = "".join(epoch.format(kind="train_iter_", n=1, rest=f'"iter": "{n}/20", {train}') for n in (10, 20))
    for log, version, records in ((epochs, 2, 9), (iterations + epochs, 1, 2)):
        document = receipt_of(log)
        assert [(g["id"], g["version"]) for g in document["derivation"]["grammars"]] == [("pyslowfast", version)]
        assert document["summary"]["steps"]["record_count"] == records
        assert document["summary"]["other_metrics"]["val_top1_err"]["record_count"] == 9


def test_a_version_that_only_evidence_proves_is_no_default() -> None:
    row = "                   all         20        249      0.45       0.65       0.56       0.36\n"
    bar = "       {n}/9     1.84G      1.411      2.007      1.103         31        640: 100%|####| 4/4 [00:09<00:00,  4.2it/s]"
    bars = "".join(f"{bar.format(n=n)}\n{row}" for n in range(1, 10))
    [grammar] = receipt_of(bars)["derivation"]["grammars"]
    assert (grammar["id"], grammar["version"], grammar["chosen_by"]) == ("ultralytics", 3, "default")


def test_a_few_lines_of_another_trainer_are_no_second_one() -> None:
    document = receipt_of(NANOGPT + "".join(TITAN.format(n=n) for n in (1, 2)))
    assert chosen(document) == [("nanogpt", "only_version")]


def test_every_line_is_accounted_for() -> None:
    log = (
        b"toy step 0 | loss=2.5\n\n   \ntoy saving\nhello\ntoy bar 1/9 loss=2.0\rtoy bar 2/9 loss=1.0\n"
        b"\xff\xfe\xfa broken\ntoy eval 2: 3.5\ntoy done in 1.0 s\nlast without an end"
    )
    document = toy_receipt(log)
    assert lines(document) == {"matched": 5, "ignored": 3, "unmatched": 2, "undecodable": 1}
    assert document["derivation"]["log"]["line_count"] == 10
    assert document["derivation"]["log"]["size_bytes"] == len(log)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_change_no_figure(end: str) -> None:
    log = "".join(f"toy step {n} | loss={n}{end}" for n in range(5))
    document = toy_receipt(log)
    assert lines(document)["matched"] == 5
    assert document["summary"]["metrics"]["loss"]["mean"] == 2.0


def test_near_misses_are_counted_and_shown() -> None:
    log = "toy step 0 | loss=2.5\n" + "".join(f"toy eval {n} -> 3.5\n" for n in range(200)) + "toy done in 1.0 s\n"
    document = toy_receipt(log)
    near = document["derivation"]["near_misses"]
    assert near["count"] == 200
    assert near["first"][0] == {"grammar": "toy@v1", "rule": "evaluation", "line_number": 2, "excerpt": "toy eval 0 -> 3.5"}
    assert 0 < len(near["first"]) < 200
    assert lines(document)["unmatched"] == 200


def test_a_clean_log_has_no_near_misses() -> None:
    derivation = toy_receipt("toy step 0 | loss=2.5\ntoy saving\n")["derivation"]
    nothing = {"count": 0, "first": []}
    assert (derivation["near_misses"], derivation["problems"]) == (nothing, {**nothing, "kinds": {}})


def test_nul_bytes_are_a_problem_and_not_the_end() -> None:
    document = toy_receipt(b"toy step 0 | loss=2.5\n" + b"\0" * 512 + b"toy step 1 | loss=1.5\n")
    assert document["summary"]["steps"]["record_count"] == 2
    assert [p["kind"] for p in document["derivation"]["problems"]["first"]] == ["nul_bytes"]


def test_explain_reads_behind_envelopes_as_the_scan_does(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    lines = [f"[rank0]: Epoch {n}/3\n[rank0]: 117/117 - 7s - loss: {3 - n}.5 - accuracy: 0.9\n" for n in (1, 2, 3)]
    log.write_text("".join(lines))
    explanation, derivation = explain_log(str(log))
    assert derivation.summaries[0].record_count == 3
    assert explanation["unmatched_metric_line_count"] == 0


def test_more_events_in_one_record_than_are_read_are_told(tmp_path: Path) -> None:
    steps = [f"iter {n}: loss {4 - n / 100:.4f}, time {100 + n % 3:.2f}ms, mfu 1.00%" for n in range(90)]
    for count, told in ((63, 0), (90, 2)):
        log = tmp_path / f"{count}.log"
        log.write_text("\n".join([" ".join(steps[:count])] * 2 + steps) + "\n")
        reading = read_log([Stream((Source(str(log)),))])
        every = [reading.derivation(number) for number in range(len(reading.launches))]
        assert [p.kind for derivation in every for p in derivation.problems[1]].count("events_dropped") == told
