"""The cards of a log of each form, 80 columns wide; ``make goldens`` rewrites them, the diff is reviewed."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len as cells

from receipt_cli.render.card import MOST_LINES, render_card
from receipt_cli.render.style import Style
from tests.tools.fixture_receipts import receipt_of

HERE = Path(__file__).resolve().parent / "cards"
LOGS = Path(__file__).resolve().parents[2] / "fixtures" / "logs"
FORMS = {
    "out-of-memory": "litgpt/finetune-between-steps-oom",
    "cut-off": "nanotron/2024-samples-in-batch",
    "exception-named-losses": "stable-baselines3/a2c-crash",
    "out-of-memory-before-steps": "nanochat/base-2026-03-oom",
    "unknown-end": "nanogpt/gpt2-early-2023-no-mfu",
    "finished": "torchtitan/llama3-2026-ansi",
    "resumed": "fairseq/v09-epochs-resumed",
    "loss-is-nan": "modded-nanogpt/fork-tokens-seen-nan",
    "time-limit": "megatron-lm/2021-fp16-slurm-time-limit",
    "two-runs": "generic/two-scripts",
    "rounds": "xgboost/sklearn-two-sets",
}


@pytest.mark.parametrize("form", [*FORMS, "no-grammar"])
def test_card(form: str, check_golden: Callable[[Path, bytes], None]) -> None:
    log = LOGS / f"{FORMS[form]}.log" if form in FORMS else HERE / "no-grammar.log"
    check_golden(HERE / f"{form}.txt", render_card(receipt_of(log), Style(), log=log.name).encode())


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_card_is_too_large(width: int) -> None:
    for log in sorted(LOGS.glob("*/*.receipt.json")):
        shown = render_card(json.loads(log.read_bytes()), Style(width=width), log=log.name)
        assert shown.count("\n") <= MOST_LINES, log.name
        assert max(map(cells, shown.splitlines())) <= width, log.name
