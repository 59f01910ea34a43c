"""Seeds, determinism and the resume point: from the lines in which trainers print them to the header, each with its line."""

from typing import Any

import pytest

from tests.tools.logs import receipt_of

STEPS = {
    "detectron2": "[03/05 09:12:45 d2.utils.events]:  eta: 0:41:17  iter: {i}  total_loss: 2.318  time: 0.2104  data_time: 0.0051"
    "  lr: 0.00011988  max_mem: 3307M",
    "mmengine": "2024/10/09 11:42:25 - mmengine - INFO - Epoch(train)  [1][{i}/212]  lr: 5.0000e-03  eta: 0:31:40  time: 0.2911"
    "  data_time: 0.0104  memory: 5122  loss: 1.9044",
    "swin": "[2023-12-21 22:44:51 swin] (main.py 151): INFO Train: [2/30][{i}/312]\teta 0:02:11 lr 0.000117\t wd 0.0500\t"
    "time 0.4411 (0.4820)\tloss 5.8814 (6.1203)\tgrad_norm 2.1044 (2.6331)\tloss_scale 32768.0000 (40114.1000)\tmem 5120MB",
    "nanotron": "01/27/2025 15:50:39 [INFO|DP=0|PP=0|TP=0]: iteration: {i} / 5000 | consumed_tokens: 131K |"
    " elapsed_time_per_iteration_ms: 412 | tokens_per_sec: 79.5K | tokens_per_sec_per_gpu: 9.94K | global_batch_size: 16 |"
    " lm_loss: 10.7 | lr: 1.2e-05 | model_tflops_per_gpu: 143 | hardware_tflops_per_gpu: 143 | grad_norm: 21.5",
    "torchtitan": "[rank0]:[titan] 2025-07-31 14:56:20,460 - root - INFO - step: {i}  loss:  6.23821  grad_norm: 35.5833"
    "  memory: 22.43GiB(17.14%)  tps: 10,576  tflops: 902.12  mfu: 42.44%",
    "megatron-lm": " iteration {i:8d}/    2000 | elapsed time per iteration (ms): 812.5 | learning rate: 4.500E-05 |"
    " lm loss: 9.123456E+00 | number of skipped iterations:   0 | number of nan iterations:   0 |",
    "hf-trainer": "{{'loss': 1.4872, 'grad_norm': 2.8125, 'learning_rate': 4.75e-05, 'epoch': 0.1{i}}}",
    "fairseq": "2024-01-02 03:04:05 | INFO | train_inner | epoch 001:    {i} / 2100 loss=8.412, nll_loss=7.660, ppl=202.31,"
    " wps=301220, ups=4.3, wpb=69830, bsz=2411, num_updates={i}, lr=0.0012425, gnorm=1.552, train_wall=1, wall=121",
}
MM = "2024/10/09 11:42:20 - mmengine - INFO - "
TITAN = "[rank0]:[titan] 2025-07-31 14:56:10,460 - root - INFO - "


@pytest.mark.parametrize(
    ("trainer", "line", "want"),
    [
        ("detectron2", "[03/05 09:12:30 d2.utils.env]: Using a generated random seed 20325641", {"/seeds/seed": 20325641}),
        ("detectron2", "SEED: 42", {"/seeds/seed": 42}),
        ("detectron2", "SEED: -1", {}),
        ("detectron2", "CUDNN_BENCHMARK: false", {"/flags/cudnn_benchmark": False}),
        ("mmengine", "    numpy_random_seed: 1890946773", {"/seeds/seed": 1890946773}),
        ("mmengine", "    deterministic: True", {"/flags/deterministic": True}),
        ("mmengine", "    cudnn_benchmark: False", {"/flags/cudnn_benchmark": False}),
        ("mmengine", f"{MM}resumed epoch: 4, iter: 720", {"/flags/start_step": 720}),
        ("swin", "SEED: 7", {"/seeds/seed": 7}),
        ("nanotron", "01/27/2025 15:49:39 [INFO|DP=0|PP=0|TP=0]:                            seed=6,", {"/seeds/seed": 6}),
        ("torchtitan", f"{TITAN}Deterministic algorithm enabled (expect perf degradation).", {"/flags/deterministic": True}),
        ("megatron-lm", "  seed ............................................ 1234", {"/seeds/seed": 1234}),
        ("megatron-lm", "  deterministic_mode .............................. False", {"/flags/deterministic": False}),
        (
            "megatron-lm",
            "  successfully loaded checkpoint from ckpt/small [ t 1/2, p 1/1 ] at iteration 350",
            {"/flags/start_step": 350},
        ),
        ("hf-trainer", "seed=42,", {"/seeds/seed": 42}),
        ("hf-trainer", "data_seed=7,", {"/seeds/data_seed": 7}),
        ("hf-trainer", "data_seed=None,", {}),
        ("hf-trainer", "full_determinism=False,", {"/flags/deterministic": False}),
        (
            "hf-trainer",
            "Training parameters TrainingArguments(output_dir=out, data_seed=None, full_determinism=True, seed=43, fp16=True)",
            {"/seeds/seed": 43, "/flags/deterministic": True},
        ),
        ("hf-trainer", "  Continuing training from global step 740", {"/flags/start_step": 740}),
        (
            "fairseq",
            "2024-01-02 03:04:04 | INFO | fairseq.trainer | Loaded checkpoint ckpt/last.pt (epoch 4 @ 720 updates)",
            {"/flags/start_step": 720},
        ),
    ],
)
def test_what_a_line_says_of_the_run(trainer: str, line: str, want: dict[str, Any]) -> None:
    log = line + "\n" + "".join(STEPS[trainer].format(i=i) + "\n" for i in range(1, 6))
    document = receipt_of(log)
    assert document["derivation"]["grammars"][0]["id"] == trainer
    header = document["header"]
    named = {f"/seeds/{name}": value for name, value in (header["seeds"] or {}).items()}
    names = ("cudnn_benchmark", "deterministic", "start_step")
    named |= {f"/flags/{name}": value for name, value in (header["flags"] or {}).items() if name in names}
    assert named == want
    for pointer, value in want.items():
        assert type(named[pointer]) is type(value)
        assert header["sources"][pointer] == "log:1"
