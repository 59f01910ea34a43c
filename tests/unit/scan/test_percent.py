"""A percent sign makes a ratio of a number, in a field of a grammar as behind any other label."""

import pytest

from tests.tools.logs import receipt_of

BARS = [
    "Training:  49%|████▉     | {n}/640 [05:12<05:28,  1.00it/s, loss=0.5{n}, acc={acc}]",
    "Epoch 1/3:  49%|####      | {n}/640 [05:12<05:28,  1.00it/s, acc={acc}, loss=0.5{n}]",
    "Epoch 2:  49%|####      | {n}/640 [05:12<05:28,  1.00it/s, loss=0.5{n}, train_acc={acc}, lr=1e-4]",
]


@pytest.mark.parametrize("bar", BARS)
@pytest.mark.parametrize(("form", "factor"), [("{:.2f}%", 0.01), ("{:.1f}%", 0.01), ("{:.2f}", 1)])
def test_a_percentage_in_a_bar_is_a_ratio(bar: str, form: str, factor: float) -> None:
    log = "\n".join(bar.format(n=n, acc=form.format(70 + n / 10)) for n in range(10, 60)) + "\n"
    receipt = receipt_of(log)
    found = receipt["summary"]["other_metrics"]["train_accuracy"]
    assert (found["first"], found["last"]) == pytest.approx((71 * factor, 75.9 * factor))
    assert found["record_count"] == 50
    assert not [problem for problem in receipt["derivation"]["problems"] if "unreadable" in str(problem)]
