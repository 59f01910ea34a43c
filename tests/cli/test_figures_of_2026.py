"""Figures of current stacks that no trainer's fixture shows: names of reinforcement learning and GANs, errors of llm.c and XLA.

Formats, checked in the sources or in copies of them: ``gan.py`` of eriklindernoren/PyTorch-GAN, ``actor_critic.py`` of
pytorch/examples, ``llmc/utils.h`` of llm.c; errors of PJRT as users of jaxlib report them. Names with a fixture of their own are
in ``fixtures/logs``.
"""

from typing import Any

import pytest

from tests.tools.logs import receipt_of

GAN = [
    f"[Epoch {e}/3] [Batch {b}/20] [D loss: {0.69 - b / 100:.6f}] [G loss: {0.8 + b / 100:.6f}]"
    for e in range(3)
    for b in range(20)
]
ACTOR_CRITIC = [f"Episode {n * 10}\tLast reward: {n * 2.5:.2f}\tAverage reward: {n * 2.1:.2f}" for n in range(1, 41)]
PPO = [
    f"Iteration {n}: mean_reward = {n * 1.5:.3f}, policy_loss = {0.5 - n / 100:.4f}, value_loss = {2 - n / 50:.4f}"
    for n in range(40)
]


@pytest.mark.parametrize(
    ("lines", "last_step", "figures"),
    [
        (GAN, 59, {"d_loss": (0.69, 0.5), "g_loss": (0.8, 0.99)}),
        (ACTOR_CRITIC, 400, {"Last reward": (2.5, 100.0), "average_reward": (2.1, 84.0)}),
        (PPO, 39, {"mean_reward": (0.0, 58.5), "policy_loss": (0.5, 0.11), "value_loss": (2.0, 1.22)}),
    ],
)
def test_rewards_and_the_losses_of_two_nets_are_no_loss_of_the_run(
    lines: list[str], last_step: int, figures: dict[str, tuple[float, float]]
) -> None:
    summary = receipt_of(lines)["summary"]
    assert "loss" not in summary["metrics"]
    assert summary["steps"]["last"] == last_step
    found: dict[str, Any] = {**summary["metrics"], **summary["other_metrics"]}
    assert {name: (found[name]["first"], found[name]["last"]) for name in figures} == figures


LLM_C = [
    f"step {n:4d}/40 | loss {4 - n / 10:7.6f} (+nanz)| norm 2.1000 (+nanz)| lr 3.00e-04 | 100.00 ms | 30.0% bf16 MFU | 5000 tok/s"
    for n in range(1, 10)
]
STEPS = [f"step {n} loss {4 - n / 10:.3f}" for n in range(10)]


@pytest.mark.parametrize(
    ("lines", "ending", "reason", "message"),
    [
        (LLM_C, "Error: Failed to open file 'dev/data/x.bin' at train_gpt2.cu:1200", "traceback", "Failed to open file"),
        (LLM_C, "Error: Unexpected end of file at llmc/dataloader.h:210", "traceback", "Unexpected end of file"),
        (LLM_C, "Error: Memory allocation failed at llmc/utils.h:12", "traceback", "Memory allocation failed"),
        (LLM_C, "[CUDA ERROR] at file train_gpt2.cu:1043:", "cuda_error", "[CUDA ERROR]"),
        (STEPS, "ValueError: Out of memory while trying to allocate 20971520000 bytes.", "cuda_oom", "Out of memory"),
        (
            STEPS,
            "RuntimeError: Error allocating device buffer: Attempting to allocate 1.95G. That was not possible. There are 8M",
            "cuda_oom",
            "Attempting to allocate",
        ),
    ],
)
def test_an_error_on_stderr_ends_the_run(lines: list[str], ending: str, reason: str, message: str) -> None:
    failure = receipt_of([*lines, ending])["failure"]
    assert (failure["reason"], failure["line_number"]) == (reason, len(lines) + 1)
    assert message in failure["message"]
