"""What the systems that this project grew from print, as short logs; ``docs/systems.md`` names each case.

The lines are written in the formats of the programs' public sources (karpathy/nanochat, lightseekorg/TorchSpec,
jdinalt/forgather, AI-Hypercomputer/maxtext, and DatasunriseOU's cppmega for MegaCpp); no line is copied from a run.
"""

# ruff: noqa: E501 (lines as the programs print them)

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cli.conftest import Invoke


class Case(NamedTuple):
    """A log, and what its receipt must say: a metric's name for its last value, or a JSON pointer."""

    log: str
    says: dict[str, Any]
    options: tuple[str, ...] = ()


def lines(make: Callable[[int], str], count: int = 12, first: int = 0) -> str:
    return "".join(f"{make(n)}\n" for n in range(first, first + count))


# --------------------------------------------------------------------------------------------- nanochat and MegaCpp

BATCH = (
    "Tokens / micro-batch / rank: 32 x 2048 = 65,536\nTokens / micro-batch: 524,288\n"
    "Total batch size 524,288 => gradient accumulation steps: 1\n"
)


def base(tail: str = "", *, mfu: str = "mfu", norm: str = "", rate: int = 1_048_576) -> str:
    def line(n: int) -> str:
        return (
            f"step {n:05d}/21400 ({n / 214:.2f}%) | loss: {11 - n / 10:.6f} |{norm} lrm: 1.00 | dt: 500.00ms | tok/sec: {rate:,} | "
            f"{mfu}: 48.50 |{tail} total time: {max(0, n - 10) * 0.5 / 60:.2f}m"
        )

    return BATCH + lines(line)


METRICS_FILE = {
    "learning/grad_norm": 1.5,
    "perf/step_time_seconds": 2.5,
    "perf/per_device_tflops_per_sec": 291.5,
    "perf/per_device_tokens_per_sec": 9000.0,
    "learning/param_norm": 411.5,
}


def mega(n: int) -> str:
    return (
        f"step {n:05d}/30000 ({n / 300:.2f}%) | loss: {10 - n / 10:.4f} | lrm: 0.55 | dt: 412.10ms | tok/sec: 254,128 | mfu: 17.8 | "
        f"gnorm: 1.4231 | total time: {n * 0.00687:.2f}m"
    )


def iteration(n: int) -> str:
    return (
        f" [2026-04-27 00:00:{4 * n:02d}] iteration {n:8d}/      12 | consumed samples: {2 * n:12d} | elapsed time per iteration (ms): "
        f"{1000 if n % 2 else 500}.0 | learning rate: 1.000000E-04 | global batch size:     2 | lm loss: {3 - n / 10:.6E} | "
        "mtp_1 loss: 4.000000E+00 | loss scale: 1.0 | grad norm: 1.0 | number of skipped iterations:   0 | "
        "number of nan iterations:   0 |"
    )


def sft(n: int) -> str:
    return f"Step {n:05d}/00682 | Training loss: {0.8 - n / 100:.6f}| lrm: 1.000000| num_tokens: 8,804"


def reinforce(n: int) -> str:
    return (
        f"Step {n}/467 | Example step 3 | Pass 1 | loss: 0.012345 | Average reward: 0.25\n"
        f"Step {n}/467 | Average reward: {0.2 + n / 100} | Average sequence length: 123.45"
    )


def research(n: int) -> str:
    return (
        f"\rstep {n:05d} ({n}.3%) | loss: {5 - n / 10:.6f} | lrm: 1.00 | dt: 312ms | tok/sec: 1,680,000 | mfu: 45.2% | epoch: 1 | "
        f"remaining: {300 - n}s    "
    )


RESEARCH_END = (
    "\n---\nval_bpb:          1.187432\ntraining_seconds: 300.1\ntotal_seconds:    342.5\npeak_vram_mb:     14230.8\n"
    "mfu_percent:      44.50\ntotal_tokens_M:   95.4\nnum_steps:        182\nnum_params_M:     46.2\ndepth:            8\n"
)

NANOCHAT = {
    "megacpp-spike-warning": Case(
        lines(mega) + "[GRAD SPIKE WARNING] gnorm 15.2 > 10x EMA\n" + lines(mega, 12, 12), {"/summary/spikes/marked_count": 1}
    ),
    "megacpp-spike-critical": Case(
        lines(mega) + "[GRAD SPIKE CRITICAL] gnorm 152 > 100x EMA\n" + lines(mega, 12, 12), {"/summary/spikes/marked_count": 1}
    ),
    "cppmega-memory-hook": Case(
        lines(iteration, 3, 1)
        + "[mem_profile] step_1_post: alloc=5.000 GiB reserved=7.000 GiB max_alloc=8.000 GiB max_reserved=9.000 GiB\n"
        + lines(iteration, 9, 4),
        {"memory_allocated_bytes": 5 * 2**30, "peak_memory_reserved_bytes": 9 * 2**30},
    ),
    "cppmega-traces": Case(
        lines(iteration, 12, 1) + "[torch_profile] step=3 trace=out/t.json table=out/t_cuda_table.txt\n",
        {"/attachments": [
            {"kind": "torch_profile", "uri": "out/t.json", "sha256": None, "size_bytes": None},
            {"kind": "kernel_table", "uri": "out/t_cuda_table.txt", "sha256": None, "size_bytes": None},
        ]},
    ),
    "cppmega-kernel-report": Case(
        lines(iteration, 12, 1) + "==PROF== Report: /runs/a b/attention.ncu-rep\n",
        {"/attachments": [
            {"kind": "kernel_report", "uri": "/runs/a b/attention.ncu-rep", "sha256": None, "size_bytes": None},
        ]},
    ),
    "cppmega-mlx-json": Case(
        "[12:37:40] /src/graph.cc:125: Warning: copy\nwrote bench/path_c/a.json\nstatus: ok\nsteps_completed: 3\n"
        "final_loss: nan\npeak_memory_bytes: 12\n",
        {"/summary/steps/last": 3, "/checks/finite_losses": False},
    ),
    "cppmega-parameters": Case(
        "[mem_profile] total_params=2,000 param_bytes=0.004 GiB\n" + lines(iteration, 12, 1), {"/summary/parameter_count": 2000}
    ),
    "cppmega-mean-of-rates": Case(
        "  seq_length ...................................... 1024\n" + lines(iteration, 12, 1),
        {"/summary/derived/tokens_per_s/mean": pytest.approx(3072, rel=0.08)},
    ),
    "nanochat-n1s": Case(
        BATCH.replace("steps: 1", "steps: 2").replace("524,288\nT", "262,144\nT") + base(rate=524_288).removeprefix(BATCH),
        {"/summary/consistency/0/ratio": pytest.approx(0.5)},
    ),
    "nanochat-n3": Case(base().replace("m\n", "m | eta: 12.3m\n"), {"loss": 9.9, "/derivation/lines/unmatched": 0}),
    "nanochat-n5s-unknown": Case(
        "GPU: NVIDIA Foo | Peak FLOPS (BF16): inf\n" + base(" epoch: 1 |").replace("48.50", "0.00"),
        {"/summary/flags/0/kind": "peak_unknown", "/summary/metrics/mfu_ratio": None},
    ),
    "nanochat-mid": Case(
        lines(lambda n: f"step {n:05d} ({n}.28%) | loss: {2 - n / 10:.6f} | lrm: 1.00 | dt: 500.00ms | tok/sec: 1,048,576 | mfu: 48.50 | total time: 0.00m"),
        {"loss": 0.9, "/summary/steps/planned": None},
    ),
    "nanochat-sft-validation": Case(lines(sft) + "Step 00011 | Validation loss: 1.010513\n", {"val_loss": 1.010513}),
    "nanochat-sft-scores": Case(
        lines(sft) + "Step 00011 | mmlu_acc: 0.347656, arc_easy_acc: 0.441406\n",
        {"other:mmlu_acc": 0.347656, "other:arc_easy_acc": 0.441406},
    ),
    "nanochat-rl": Case(lines(reinforce), {"reward_mean": pytest.approx(0.31)}),
    "nanochat-rl-pass": Case(
        lines(reinforce) + "Step 11 | Pass@1: 0.1234, Pass@2: 0.2345\n", {"other:Pass@1": 0.1234, "other:Pass@2": 0.2345}
    ),
    "nanochat-tasks": Case(
        base() + "Evaluating: piqa (10-shot, type: multiple_choice)... accuracy: 0.6540 | centered: 0.3080 | time: 1.21s\n",
        {"/derivation/lines/unmatched": 0},
    ),
    "nanochat-eval-counter": Case(
        lines(sft) + "\r\033[KRank 0 | 12/50 (24.00%)\r\033[KRank 0 | 13/50 (26.00%)\n",
        {"/summary/steps/record_count": 12, "loss": 0.69},
    ),
    "nanochat-chatcore": Case(
        lines(sft) + "Step 00011 | ChatCORE: 0.1234 | ChatCORE_cat: 0.2345\n", {"other:ChatCORE": 0.1234}
    ),
    "nanochat-parameters-scaling": Case(
        "Number of parameters: 560,988,160 (scaling: 435,159,040)\n" + base(), {"/summary/parameter_count": 560988160}
    ),
    "nanochat-parameters-block": Case(
        "Parameter counts:\nwte                     : 25,165,824\ntotal                   : 560,988,160\n" + base(),
        {"/summary/parameter_count": 560988160},
    ),
    "nanochat-startup": Case(
        "Vocab size: 65,536\nTotal number of training tokens: 11,219,763,200\nTotal training FLOPs estimate: 3.917670e+19\n"
        "Overriding: depth = 20\n" + base(),
        {"/derivation/lines/unmatched": 0},
    ),
    "nanochat-resume": Case("Resuming optimization from step 500\n" + base(), {"/header/flags/start_step": 500}),
    "nanochat-no-memory": Case(base() + "Peak memory usage: 0.00MiB\n", {"/summary/metrics/peak_memory_allocated_bytes": None}),
    "nanochat-logger": Case(
        "2025-10-23 22:34:49,731 - nanochat.checkpoint_manager - \x1b[32m\x1b[1mINFO\x1b[0m - Loading model from out\n" + base(),
        {"loss": 9.9, "/derivation/lines/matched": 15},
    ),
    "nanochat-screen": Case(
        base().replace("step 00003", "^[[B^[[Bstep 00003").replace("step 00005", "\x1b[Astep 00005").replace("\n", "\r\n"),
        {"/summary/steps/record_count": 12, "loss": 9.9},
    ),
    "autoresearch-end": Case(
        "".join(map(research, range(40))) + RESEARCH_END,
        {"val_bpb": 1.187432, "/summary/training_time_s": 300.1, "/summary/parameter_count": 46_200_000},
    ),
    "autoresearch-stored": Case(
        "".join(map(research, range(40))).replace("\r", "") + "\n", {"/summary/steps/record_count": 40, "loss": 1.1}
    ),
    "autoresearch-fork-lr": Case("".join(map(research, range(40))).replace("lrm:", "lr:"), {"loss": 1.1, "/summary/steps/record_count": 40}),
    "autoresearch-fork-rates": Case(
        "".join(map(research, range(40))).replace("lrm: 1.00", "lrm_muon: 1.00 lrm_adam: 0.50").replace("tok/sec:", "tok/s:"),
        {"loss": 1.1, "/summary/steps/record_count": 40},
    ),
    "autoresearch-fork-end": Case(
        "".join(map(research, range(40))) + "\nTraining completed in 301.2s\n", {"/checks/completed": True}
    ),
}  # fmt: skip

# ------------------------------------------------------------------------------------------------------- TorchSpec


def bar(n: int, *, infer: float = 18.5, train: float = 13.2, wait: float = 0.1, pool: str = "24", perf: bool = True) -> str:
    figures = f", I={infer}, T={train}, wait={wait}s, pool={pool}" if perf else ""
    return (
        f"\rTraining:  {n}%|#         | {n}/1000 [05:00<45:00,  3.00s/step, loss={2 - n / 100:.3f}, acc=0.830, acc_len=2.31, "
        f"thru={min(infer, train):.1f}{figures}, epoch=1/10]"
    )


def bars(count: int = 40, **figures: Any) -> str:
    return "".join(bar(n, **figures) for n in range(1, count + 1)) + "\n"


def timing(n: int, step: float = 1.2, data: float = 0.9, compute: float = 0.25) -> str:
    return (
        f"[2026-04-13 10:{n // 20:02d}:{n % 20 * 3:02d},123] loop.py:340 INFO TIMING step={n}: step={step:.3f}s data={data:.3f}s "
        f"compute={compute:.3f}s [fwd=0.100s bwd=0.120s opt=0.030s] dispatch=0.050s"
    )


def perf(n: int, **more: float) -> dict[str, float]:
    return {
        "train/step": n, "train/avg_loss": 2 - n / 100, "perf/step_time": 1.2, "perf/data_time": 0.9, "perf/compute_time": 0.25,
        "perf/forward_time": 0.1, "perf/backward_time": 0.12, "perf/optimizer_time": 0.03, "perf/train_capacity": 13.333,
        "perf/infer_capacity": 25.0, "perf/dispatch_wait": 0.0, **more,
    }  # fmt: skip


def json_line(record: dict[str, float]) -> str:
    return "{" + ", ".join(f'"{name}": {value}' for name, value in record.items()) + "}"


TORCHSPEC = {
    "torchspec-wait-pool": Case(bars(), {"dispatch_wait_s": 0.1, "pooled_sample_count": 24}),
    "torchspec-pool-exponent": Case(bars(pool="1e+5"), {"pooled_sample_count": 100_000}),
    "torchspec-zeros": Case(
        bars(infer=0.0, train=0.0), {"/summary/metrics/infer_capacity_samples_per_s": None, "loss": 1.6}
    ),
    "torchspec-without-figures": Case(bars(perf=False), {"loss": 1.6, "/summary/bottleneck": None}),
    "torchspec-redraws": Case(bars() + bar(40) + "\n", {"/summary/steps/record_count": 40}),
    "torchspec-glued": Case(
        "".join(f"{bar(n)}2026-07-07 22:20:{n:02d} | INFO | pool has room\n" for n in range(1, 41)),
        {"/summary/steps/record_count": 40, "loss": 1.6},
    ),
    "torchspec-actor-head": Case(
        "".join(f"{bar(n)}\n{timing(n).replace(',123]', ',12310.0.0.7 RANK:0]')}\n" for n in range(1, 41)), {"step_time_s": 1.2}
    ),
    "torchspec-ray-head": Case(
        "".join(f"{bar(n)}\n(TrainerActor pid=123, ip=10.0.0.7) {timing(n)}\n" for n in range(1, 41)), {"step_time_s": 1.2}
    ),
    "torchspec-checkpoint": Case(
        bars() + "[2026-04-13 10:10:00,000] loop.py:400 INFO Saving checkpoint at step 40...\n", {"/derivation/lines/unmatched": 0}
    ),
    "torchspec-messages": Case(
        bars() + "[2026-04-13 10:10:00,000] loop.py:400 INFO Epoch 1 completed (100 steps). Total steps: 100/1000\n"
        "[2026-04-13 10:10:00,000] loop.py:400 INFO Dataset exhausted, reloading (epoch 2)...\n"
        "[2026-04-13 10:10:00,000] loop.py:400 INFO New best checkpoint: iter_0000100 (simulated_acc_len=2.31)\n"
        "[2026-04-13 10:10:00,000] loop.py:400 INFO Still waiting for pool capacity (waited 5.0s): 3 of 8\n",
        {"/derivation/lines/unmatched": 0},
    ),
    "torchspec-end": Case(
        bars() + "[2026-04-13 11:00:00,000] loop.py:500 INFO Training completed: 1000 steps in 3600.0s | "
        "avg inference=12.3 entries/s | avg training=12.1 entries/s\n",
        {"/checks/completed": None, "/summary/training_time_s": 3600.0},  # the bar that was drawn last is far below the plan
    ),
    "torchspec-jsonl": Case(
        lines(lambda n: json_line(perf(n)), 40, 1), {"step_time_s": 1.2, "infer_capacity_samples_per_s": 25.0, "loss": 1.6}
    ),
    "torchspec-dictionaries": Case(
        lines(lambda n: repr(perf(n)), 40, 1), {"step_time_s": 1.2, "train_capacity_samples_per_s": 13.333, "data_time_s": 0.9}
    ),
    "torchspec-verdict-wait": Case(bars(infer=25.0, train=12.3, wait=2.1, pool="0"), {"/summary/bottleneck/verdict": "inference"}),
    "torchspec-verdict-wait-balanced": Case(
        bars(infer=12.4, train=12.3, wait=2.1, pool="0"), {"/summary/bottleneck/verdict": "inference"}
    ),
    "torchspec-verdict-training": Case(bars(infer=25.0, train=12.3, wait=0.0), {"/summary/bottleneck/verdict": "training"}),
    "torchspec-verdict-balanced": Case(bars(infer=12.4, train=12.3, wait=0.0), {"/summary/bottleneck/verdict": "balanced"}),
    "torchspec-verdict-pool": Case(
        "".join(bar(n, infer=12.4, train=12.3, wait=0.0, pool=str(4 * n)) for n in range(1, 41)) + "\n",
        {"/summary/bottleneck/verdict": "training"},
    ),
    "torchspec-verdict-data": Case(
        lines(lambda n: repr(perf(n)), 40, 1), {"/summary/bottleneck/because": lambda text: "within training, data takes" in text}
    ),
}  # fmt: skip

# ------------------------------------------------------------------------------------------------------- Forgather


def stamp(n: int) -> str:
    return f"2025-08-24 09:{n // 60:02d}:{n % 60:02d}"


TABLE = f"{stamp(0)}         step     epoch      loss      grad      maxg          lr      tokens   total_tok       tok/s     mfu     peak_mem\n"


def row(n: int) -> str:
    return (
        f"{stamp(12 * n)}   {n:>6},000    {n / 70:.4f}   {3 - n / 50:.5f}    0.4613    1.0218    1.00e-04   1,638,400        "
        f"{1.6384 * n:.3g}M     142,857   38.5%   12.345 GiB\n"
    )


FINAL = (
    "Training complete:\n  Runtime:                     155.50 s\n  Total steps:                 40,000\n"
    "  Total samples:               212,000\n  Effective batch size:        32\n  Samples/sec:                 1363.34\n"
    "  Steps/sec:                   42.61\n  Epoch:                       1.00\n  Total tokens:                65,536,000\n"
    "  Tokens/sec:                  421,453\n  Total FLOPs:                 3.82e+16\n  FLOPs/sec:                   3.17e+14\n"
)


def first(n: int) -> str:
    return f"{stamp(n)}        {n:,}00  0.{n:02d}  train-loss: {3 - n / 50:.5f}   learning-rate: 9.71e-04"


FORGATHER = {
    "forgather-f4-header-again": Case(
        TABLE + "".join(map(row, range(1, 20))) + TABLE.replace("maxg", "maxg     gn_std")
        + row(20).replace("1.0218 ", "1.0218    0.1000 "),
        {"loss": 2.6, "learning_rate": 1e-4},
    ),
    "forgather-total-tokens": Case(TABLE + "".join(map(row, range(1, 20))), {"tokens_total": pytest.approx(31.1e6)}),
    "forgather-eval-new": Case(
        TABLE + "".join(map(row, range(1, 20))) + f"{stamp(300)}       19,000    0.2714  eval-loss: 2.62731\n", {"val_loss": 2.62731}
    ),
    "forgather-seed-line": Case(
        lines(lambda n: f"{stamp(n)}   {n}00  0.1   train-loss: {3 - n / 50:.5f}  learning-rate: 1.00e-04  tok/s: 142857  mfu: 38.5%", 40, 1),
        {"tokens_per_s": 142857, "mfu_ratio": 0.385},
    ),
    "forgather-final-line": Case(
        lines(first, 40, 1) + "train_runtime: 163.9 train_samples: 212,000 step: 6,625 train_samples_per_second: 1.294e+03 "
        "train_steps_per_second: 40.43 epoch: 1.0 effective_batch_size: 32 \n",
        {"/checks/completed": True, "/summary/training_time_s": 163.9},
    ),
    "forgather-final-keys": Case(
        lines(first, 40, 1) + "train_runtime: 163.9\ntrain_samples: 212,000\nstep: 6,625\ntrain_samples_per_second: 1.294e+03\n"
        "train_steps_per_second: 40.43\nepoch: 1.0\neffective_batch_size: 32\n",
        {"/checks/completed": True, "/summary/training_time_s": 163.9},
    ),
    "forgather-final-block": Case(
        TABLE + "".join(map(row, range(1, 41))) + FINAL, {"/checks/completed": True, "/summary/training_time_s": 155.5}
    ),
    "forgather-closing-figures": Case(
        TABLE + "".join(map(row, range(1, 41))) + FINAL,
        {"/derivation/lines/unmatched": 0, "total_flops": 3.82e16, "tokens_total": 65_536_000},
    ),
    "forgather-start": Case(
        "[INFO|info_logger] total_examples: 212,000\n[INFO|info_logger] total_parameters: 4.4M\n" + lines(first, 40, 1),
        {"/summary/parameter_count": 4_400_000, "/derivation/lines/unmatched": 0},
    ),
    "forgather-dictionary": Case(
        lines(first, 40, 1) + "INFO:forgather.ml.training_script:{'train_runtime': 135.47123, 'train_samples': 212000}\n",
        {"/derivation/lines/unmatched": 0},
    ),
    "forgather-padded-zeros": Case(
        lines(lambda n: f"{stamp(n)}          {n}00  0.02  train-loss: 2.212     grad-norm: 0.5       learning-rate: 2.00e-04", 9, 1),
        {"loss": 2.212, "grad_norm": 0.5},
    ),
}  # fmt: skip

# --------------------------------------------------------------------------------------------------------- MaxText


def maxtext(n: int, tail: str = "") -> str:
    seconds = {0: 38.2, 1: 0.319, 2: 0.002}.get(n, 2.167)
    return f"completed step: {n}, seconds: {seconds}, TFLOP/s/device: {78.4 / seconds:.3f}, Tokens/s/device: {8192 / seconds:.3f},{tail} loss: {10.4 - n / 50:.3f}"


MAXTEXT = {
    "maxtext-device": Case(
        lines(lambda n: f"completed step: {n}, seconds: 2.167, TFLOP/s/device: 36.722, loss: {3 - n / 50:.3f}"),
        {"flops_per_s_per_device": 36.722e12, "/summary/metrics/flops_per_s_per_device/scope": lambda scope: scope in (None, "device")},
    ),
    "maxtext-tokens": Case(lines(maxtext, 30), {"tokens_per_s_per_device": pytest.approx(3780.342, rel=1e-4)}),
    "maxtext-weights": Case(lines(lambda n: maxtext(n, " total_weights: 196608,"), 30), {"loss": 9.82}),
    "maxtext-mixture": Case(
        lines(lambda n: f"{maxtext(n)}, moe_lb_loss: 0.012345, mtp_loss: 2.5", 30), {"moe_aux_loss": 0.012345, "mtp_loss": 2.5}
    ),
    "maxtext-rampup": Case(lines(lambda n: f"[Rampup Batch Size Phase] {maxtext(n)}", 30), {"/summary/steps/record_count": 30}),
    "maxtext-profiler": Case(
        lines(maxtext, 10) + "completed profiler activation/deactivation step: 10\n" + lines(maxtext, 19, 11),
        {"/summary/steps/record_count": 29, "/derivation/lines/unmatched": 0},
    ),
    "maxtext-metrics-file": Case(
        lines(lambda n: json.dumps({"learning/loss": 11 - n / 10, **METRICS_FILE, "step": float(n), "run_name": "llama"})),
        {
            "loss": 9.9, "step_time_s": 2.5, "flops_per_s_per_device": 291.5e12, "tokens_per_s_per_device": 9000.0,
            "/summary/steps/first": 0, "/summary/steps/last": 11,
        },
    ),
    "maxtext-eval-steps": Case(
        lines(maxtext, 30) + "Completed eval step: 0, running loss=2.4\nCompleted eval step: 1, running loss=2.3\n",
        {"/summary/steps/record_count": 30, "/derivation/lines/unmatched": 0},
    ),
    "maxtext-inf": Case(
        lines(maxtext, 30).rsplit("loss: ", 1)[0] + "loss: inf\nAborting training due to Inf loss.\n", {"/failure/reason": "nan_loss"}
    ),
    "maxtext-parameters": Case("number parameters: 15.933 billion\n" + lines(maxtext, 30), {"/summary/parameter_count": 15_933_000_000}),
    "maxtext-startup": Case(
        "Config param per_device_batch_size: 12.0\nPer train step:\n Total TFLOPs: 764.67\nUsing (GB) 44.63 / 95.74 (46.615835%) on TPU_0(process=0,(0,0,0,0))\n"
        + lines(maxtext, 30),
        {"/summary/steps/record_count": 30},
    ),
    "maxtext-rewind": Case(
        lines(maxtext, 150) + lines(maxtext, 100, 101), {"/summary/steps/restart_count": 1, "/summary/steps/superseded_count": 49}
    ),
    "maxtext-impossible-steps": Case(
        lines(maxtext, 30), {"/summary/metrics/step_time_s/max": 2.167, "/summary/metrics/step_time_s/min": 2.167}
    ),
    "maxtext-several-hosts": Case(
        "".join(f"[{host}] {maxtext(n)}\n" for n in range(30) for host in (0, 1)), {"/summary/steps/record_count": 30}
    ),
}  # fmt: skip

# ----------------------------------------------------------------------------------- what other tools were asked for


def plain(n: int) -> str:
    return f"iter {n}: loss {4 - n / 100:.4f}, time {500 + n % 3:.2f}ms, mfu 20.00%"


DEMAND = {
    "closing-means": Case(  # of the whole run, after its records: none of them
        "{'loss': 0.5, 'grad_norm': 1.0, 'learning_rate': 1e-05, 'rewards/margin': 0.7, 'epoch': 0.5}\n"
        "{'loss': 0.4, 'grad_norm': 1.0, 'learning_rate': 1e-06, 'rewards/margin': 0.9, 'epoch': 1.0}\n"
        "{'train_runtime': 10.0, 'train_samples_per_second': 1.0, 'train_steps_per_second': 0.2, 'train_loss': 0.45, 'rewards/margin': 0.8, 'epoch': 1.0}\n",
        {"loss": 0.4, "other:rewards/margin": 0.9, "/summary/steps/record_count": 2},
    ),
    "actor-lost": Case(
        lines(plain, 40) + "Traceback (most recent call last):\n  File \"driver.py\", line 31, in <module>\n    ray.get(refs)\n"
        "ray.exceptions.ActorUnavailableError: The actor 5e is unavailable: worker died\n",
        {"/failure/message": lambda text: text.startswith("ray.exceptions.ActorUnavailableError: The actor 5e")},
    ),
    "an-hour-of-silence": Case(
        lines(lambda n: f"2026-01-01 {(12 * n + 3600 * (n > 19)) // 3600:02d}:{12 * n // 60 % 60:02d}:{12 * n % 60:02d} {plain(n).replace('time 5', 'time 120')}", 40),
        {"/goodput/stalls/count": 1, "/goodput/badput_s/idle": lambda seconds: 3599 <= seconds <= 3600},
    ),
    "line-ends": Case(lines(plain, 40).replace("\n", "\r\n"), {"loss": 3.61}),
    "colours": Case("".join(f"\x1b[32m{plain(n)}\x1b[0m\n" for n in range(40)), {"loss": 3.61}),
    "no-newline": Case(lines(plain, 40).rstrip("\n"), {"/summary/steps/record_count": 40}),
    "out-of-memory": Case(
        lines(plain, 40) + "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
        {"/failure/reason": "cuda_oom"},
    ),
    "out-of-memory-new": Case(
        lines(plain, 40) + "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n"
        "    torch.cuda.set_device(0)\ntorch.AcceleratorError: CUDA error: out of memory\n"
        "Search for `cudaErrorMemoryAllocation' in https://docs.nvidia.com/cuda for more information.\n",
        {"/failure/reason": "cuda_oom"},
    ),
    "disk-full": Case(
        lines(plain, 40) + "Traceback (most recent call last):\n  File \"t.py\", line 3, in <module>\nOSError: [Errno 28] No space left on device\n",
        {"/failure/reason": "disk_full"},
    ),
    "not-enough-disk": Case(
        lines(plain, 40) + "Traceback (most recent call last):\n  File \"t.py\", line 3, in <module>\n"
        "RuntimeError: Data processing error: I/O error: No space left on device (os error 28)\nNot enough disk space to download the file.\n",
        {"/failure/reason": "disk_full"},
    ),
    "child-failed": Case(
        lines(plain, 40) + "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
        "============================================================\nscripts.base_train FAILED\n"
        "------------------------------------------------------------\nRoot Cause (first observed failure):\n[0]:\n"
        "  time      : 2025-10-23_22:34:49\n  host      : node1\n  rank      : 6 (local_rank: 6)\n  exitcode  : 1 (pid: 4711)\n"
        "  error_file: <N/A>\n  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html\n",
        {"/failure/culprit/rank": 6, "/checks/zero_exit_code": False},
    ),
    "rank-of-a-traceback": Case(
        lines(plain, 40) + "[rank6]: Traceback (most recent call last):\n[rank6]:   File \"t.py\", line 3, in <module>\n[rank6]: ValueError: bad\n",
        {"/failure/message": lambda text: "ValueError: bad" in text, "/failure/culprit/rank": 6},
    ),
    "mfu-above-one": Case(
        lines(plain, 40).replace("mfu 20.00%", "mfu 105.70%"), {"/checks/mfu_plausible": False, "/summary/flags/0/kind": "mfu_above_one"}
    ),
}  # fmt: skip

CASES = {**NANOCHAT, **TORCHSPEC, **FORGATHER, **MAXTEXT, **DEMAND}


def found(document: dict[str, Any], at: str) -> Any:
    """Return what the receipt has at a pointer, or the last value of a metric (``other:NAME`` of one outside the registry)."""
    if not at.startswith("/"):
        kind, _, name = at.rpartition(":")
        metrics = document["summary"]["other_metrics" if kind else "metrics"]
        return metrics[name]["last"] if name in metrics else None
    value: Any = document
    for key in at[1:].split("/"):
        if isinstance(value, list):
            value = value[int(key)] if int(key) < len(value) else None
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value


def says(document: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """Return what the receipt says instead of what is ``wanted``."""
    wrong: dict[str, Any] = {}
    for at, value in wanted.items():
        stated = found(document, at)
        good = value(stated) if callable(value) else stated == (pytest.approx(value) if isinstance(value, float) else value)
        if not good:
            wrong[at] = stated
    return wrong


@pytest.mark.parametrize("name", CASES)
def test_log(name: str, tmp_path: Path, invoke: Invoke) -> None:
    case = CASES[name]
    (tmp_path / "run.log").write_bytes(case.log.encode())
    made = invoke("parse", str(tmp_path / "run.log"), "--json", *case.options)
    assert made.code == 0, made.stderr
    assert says(made.document, case.says) == {}
