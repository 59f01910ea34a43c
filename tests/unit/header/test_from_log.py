from typing import Any

import pytest

from receipt_cli.header.document import LogFact, log_facts, merge


@pytest.mark.parametrize(
    ("facts", "want"),
    [
        ({}, {}),
        ({"parameter_count": (124439808, 3)}, {"/model/parameter_count": (124439808, "log:3")}),
        ({"parameter_count": (123.59e6, 3)}, {"/model/parameter_count": (123590000, "log:3")}),
        ({"world_size": (8, 1)}, {"/parallelism/world_size": (8, "log:1")}),
        ({"expert_parallel": (2, 1)}, {"/parallelism/expert": (2, "log:1")}),
        ({"seed": (1337, 2)}, {"/seeds/seed": (1337, "log:2")}),
        ({"model_name": ("gpt2-xl", 5)}, {"/model/architecture": ("gpt2-xl", "log:5")}),
        ({"torch_version": ("2.9.0+cu130", 5)}, {"/software/torch": ("2.9.0+cu130", "log:5")}),
        ({"git_commit": ("C6B7AB7", 6)}, {"/git/commit": ("c6b7ab7", "log:6")}),
        ({"precision": ("bf16", 7)}, {"/flags/precision": ("bf16", "log:7")}),
        ({"samples_per_step": (480.0, 7)}, {"/flags/global_batch_size": (480, "log:7")}),
        ({"tokens_per_step": (491520, 7)}, {"/flags/tokens_per_step": (491520, "log:7")}),
        ({"gradient_accumulation_steps": (5, 7)}, {"/flags/gradient_accumulation_steps": (5, "log:7")}),
        ({"trainer": ("nanogpt", 9)}, {"/software/trainer": ("nanogpt", "log:9")}),
        ({"trainer": ("axolotl", 9), "trainer_version": ("0.13.0", 4)}, {"/software/trainer": ("axolotl 0.13.0", "log:4")}),
        (
            {"accelerator_name": ("NVIDIA H100", 2)},
            {"/hardware/accelerators": ([{"name": "NVIDIA H100", "count": None, "memory_bytes": None}], "log:2")},
        ),
        (
            {"accelerator_count": (8, 1), "accelerator_memory_bytes": (85 * 10**9, 3), "accelerator_name": ("NVIDIA H100", 2)},
            {"/hardware/accelerators": ([{"name": "NVIDIA H100", "count": 8, "memory_bytes": 85 * 10**9}], "log:2")},
        ),
        (
            {"accelerator_count": (8, 1)},
            {"/hardware/accelerators": ([{"name": None, "count": 8, "memory_bytes": None}], "log:1")},
        ),
        ({"training_time_s": (12.5, 99), "exit_code": (0, 100)}, {}),
        ({"start_step": (500.0, 8)}, {"/flags/start_step": (500, "log:8")}),
        ({"deterministic": ("enabled", 3)}, {"/flags/deterministic": (True, "log:3")}),
        ({"cudnn_benchmark": ("false", 3)}, {"/flags/cudnn_benchmark": (False, "log:3")}),
        ({"deterministic": ("warn_only", 3)}, {"/flags/deterministic": ("warn_only", "log:3")}),
    ],
)
def test_a_fact_of_the_log_is_a_header_fact(facts: dict[str, LogFact], want: dict[str, Any]) -> None:
    got, notes = log_facts(facts)
    assert notes == []
    assert {fact.pointer: (fact.value, fact.source) for fact in got} == want
    for fact in got:
        wanted = want[fact.pointer][0]
        assert type(fact.value) is type(wanted)
    merge(got)


@pytest.mark.parametrize(
    ("facts", "note"),
    [
        ({"git_commit": ("c6b7ab7 (dirty)", 6)}, "log:6: /git/commit left out"),
        ({"parameter_count": (1.5, 3)}, "log:3: /model/parameter_count left out"),
        ({"world_size": (0, 3)}, "log:3: /parallelism/world_size left out"),
        ({"seed": ("none", 3)}, "log:3: /seeds/seed left out"),
        ({"accelerator_count": (0, 3)}, "log:3: /hardware/accelerators left out"),
        ({"trainer_version": ("0.1", 3)}, "log:3: trainer_version left out"),
        ({"precision": ("", 3)}, "log:3: /flags/precision left out"),
    ],
)
def test_a_value_that_cannot_be_true_is_a_note(facts: dict[str, LogFact], note: str) -> None:
    got, notes = log_facts(facts)
    assert got == []
    assert len(notes) == 1
    assert notes[0].startswith(note)
