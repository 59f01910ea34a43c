"""Rows of numbers under a header: CSV, tabs and columns of blanks."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.logs import learned_of

ROWS = 12


def figures(text: str) -> dict[str, object] | None:
    derivation = learned_of(text)
    if derivation.primary is None:
        return None
    summary = derivation.summaries[derivation.primary]
    metrics = {**summary.metrics, **summary.other_metrics}
    ends = {name: (s.first, s.last) for name, s in metrics.items() if name != "epoch"}
    return {"steps": (summary.record_count, summary.first, summary.last), **ends}


def table(header: str, row: str) -> str:
    return "".join(f"{line}\n" for line in ["loading", header, *(row.format(n=n, x=4 - n / 10) for n in range(ROWS)), "done"])


LOSS = (4.0, 2.9)
TABLES: dict[str, tuple[str, dict[str, object]]] = {
    "CSV": (table("epoch,acc,loss", "{n},.9,{x:.1f}"), {"steps": (12, 0, 11), "loss": LOSS, "acc": (0.9, 0.9)}),
    "CSV with blanks": (
        table("step, loss, lr, val_loss", "{n}, {x:.1f}, 1e-4, 5.5"),
        {"steps": (12, 0, 11), "loss": LOSS, "learning_rate": (1e-4, 1e-4), "val_loss": (5.5, 5.5)},
    ),
    "tabs and no counter": (
        table("total loss\tscore loss\t", "{x:.3f}\t0.24\t"),
        {"steps": (12, None, None), "loss": LOSS, "score_loss": (0.24, 0.24)},
    ),
    "columns": (
        table("Iteration      Wall_Time     Train_Return    Critic_Steps", "{n}00      0.5{n}    {x:.1f}   2{n}"),
        {"steps": (12, 0, 1100), "wall_time": (0.5, 0.511), "train_return": LOSS},
    ),
    "times and a rule": (
        table("| epoch | train_loss | valid_loss | time  |\n|-------|------------|---|---|", "| {n} | {x:.6f} | 5.5 | 0{n}:12 |"),
        {"steps": (12, 0, 11), "loss": LOSS, "val_loss": (5.5, 5.5)},
    ),
    "a chainer's report": (
        table("epoch       main/loss   validation/main/loss  elapsed_time", "{n}           {x:.5f}     5.5     1{n}.25     "),
        {"steps": (12, 0, 11), "loss": LOSS, "val_loss": (5.5, 5.5), "elapsed_time": (10.25, 111.25)},
    ),
    "semicolons, and a score of the validation": (
        table("epoch;train loss;val loss;Val Acc", "{n};{x:.1f};5.5;0.{n}"),
        {"steps": (12, 0, 11), "loss": LOSS, "val_loss": (5.5, 5.5), "val_acc": (0.0, 0.11)},
    ),
    "names with digits": (
        table("epoch,loss,top1,F1", "{n},{x:.1f},55.5%,0.{n}"),
        {"steps": (12, 0, 11), "loss": LOSS, "top1": (0.555, 0.555), "f1": (0.0, 0.11)},
    ),
    "single blanks": (table("epoch loss", "{n} {x:.1f}"), {"steps": (12, 0, 11), "loss": LOSS}),
    "another writer below the header": (
        table("step,loss\nSanity checking ...\ncheck 0,77.5\nSanity check passed", "{n},{x:.1f}"),
        {"steps": (12, 0, 11), "loss": LOSS},
    ),
    "two words above the rows": (table("step,loss\nall done", "{n},{x:.1f}"), {"steps": (12, 0, 11), "loss": LOSS}),
}


@pytest.mark.parametrize("name", TABLES)
def test_the_rows_of_a_table_are_records(name: str) -> None:
    text, wanted = TABLES[name]
    assert figures(text) == wanted


@pytest.mark.parametrize("head", ["[rank0]: ", "2026-05-06 07:08:09,123 - train - INFO - ", "trainer-0  | ", "0.200123 "])
@pytest.mark.parametrize("name", ["CSV", "tabs and no counter"])
def test_the_rows_of_a_table_are_records_behind_heads(name: str, head: str) -> None:
    text, wanted = TABLES[name]
    if head != "0.200123 " or "\t" in text:  # before ``5,0.9`` seconds could be a cell
        assert figures("".join(head + line for line in text.splitlines(keepends=True))) == wanted


@pytest.mark.parametrize("head", ["[rank0]: ", "2026-05-06T07:08:09.1Z stdout F "])
@pytest.mark.parametrize("name", ["CSV", "columns", "tabs and no counter"])
def test_the_redraws_of_a_line_are_rows_behind_its_one_head(name: str, head: str) -> None:
    text, wanted = TABLES[name]
    lines = text.splitlines()[1:-1]
    assert figures(head + "\r".join(lines) + "\n") == wanted


@pytest.mark.parametrize("head", ["[rank0]: ", "INFO:root:", "[1,0]<stdout>:", "2026-05-06 07:08:09 - train - INFO - ", "  "])
@pytest.mark.parametrize("rule", ["-----{}------", "#####{}#####"])
def test_a_number_in_a_rule_counts_epochs_behind_heads(head: str, rule: str) -> None:
    lines = [line for n in range(12) for line in (rule.format(n), f"train_mean loss: {4 - n / 10:.1f}", "test_accuracy: 0.5")]
    found = figures("".join(f"{head}{line}\n" for line in lines))
    assert (found["steps"], found["loss"]) == ((12, 0, 11), LOSS)


@pytest.mark.parametrize(
    "text",
    [
        table("layer  parameters  size", "{n}  {x:.1f}  3"),
        table("step,loss\n" + "of others\n" * 20, "{n},{x:.1f}"),
        table("name,loss,value", "{n},{x:.1f}"),  # a name too many
        table("loss,size", "0.5,{n}"),  # a setting
        table("loss,total loss,loss", "{x},{x},{x}"),  # which of them?
        "epoch,loss\n0,2.5\n1,2.4\n",
        "".join(f"{n},{4 - n / 10}\n" for n in range(ROWS)),
    ],
)
def test_a_table_of_something_else_is_left_alone(text: str) -> None:
    assert figures(text) is None


@settings(max_examples=25)
@given(
    separator=st.sampled_from([",", ", ", "\t", "   "]),
    names=st.permutations(["step", "loss", "lr", "alpha"]),
    losses=st.lists(st.floats(0.01, 9).map(lambda x: float(f"{x:.4f}")), min_size=8, max_size=40, unique=True),
)
def test_any_order_of_columns_is_read(separator: str, names: list[str], losses: list[float]) -> None:
    lines = [separator.join(names)]
    for n, loss in enumerate(losses, start=1):
        row = {"step": str(n), "loss": f"{loss:.4f}", "lr": "1e-3", "alpha": f"{n / 7:.3f}"}
        lines.append(separator.join(row[name] for name in names))
    found = figures("\n".join(lines) + "\n")
    assert (found["steps"], found["loss"]) == ((len(losses), 1, len(losses)), (losses[0], losses[-1]))
