"""An object behind text that is not ASCII: its places are those of bytes, so that no figure is kept a second time."""

import pytest

from tests.tools.logs import receipt_of

TRAINED = "{{'loss': {loss}, 'grad_norm': 0.5291, 'learning_rate': 0.0001, 'epoch': {epoch}}}"
EVALUATED = (
    "{{'eval_loss': {loss}, 'eval_runtime': 30.2{n}, 'eval_note': '{note}', 'eval_steps_per_second': 2.47, 'epoch': {epoch}}}"
)


def log(head: str, note: str = "") -> str:
    lines = []
    for n in range(1, 6):
        lines.append(TRAINED.format(loss=1 - n / 10, epoch=n / 10))
        lines.append(head + EVALUATED.format(loss=2 - n / 10, n=n, note=note, epoch=n / 10))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("head", "note"),
    [
        (" 14%|█▍        | 300/2115 [10:37<57:54,  1.91s/it]", ""),
        ("████████████████████████████████████████| ", ""),
        ("验证: ", ""),
        ("🚀 ", "été"),
        ("", "précision 检查 🚀"),
    ],
)
def test_no_figure_is_kept_twice(head: str, note: str) -> None:
    plain, found = receipt_of(log("")), receipt_of(log(head, note))
    assert found["summary"]["metrics"] == plain["summary"]["metrics"]
    assert found["summary"]["other_metrics"] == plain["summary"]["other_metrics"] == {}
    assert found["summary"]["metrics"]["val_loss"]["record_count"] == 5
