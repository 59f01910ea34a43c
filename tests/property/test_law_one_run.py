"""Files are one run only if they prove it: by their names, by equal values, or by steps that go on."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from receipt_cli.events.file_order import SeveralRuns
from receipt_cli.receipts.production import Product, Request, produce
from tests.tools.examples import costly

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
TRACE = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    main()\nRuntimeError: no such table\n'


def steps(first: int, last: int, every: int = 10, loss: float = 4.0, of: int = 1000) -> str:
    return "".join(f"iter {n}: loss {loss - n / of:.4f}, time 21.00ms, mfu 2.00%\n" for n in range(first, last + 1, every))


def read(folder: Path, files: dict[str, str]) -> Product:
    paths = [folder / name for name in files]
    for path, text in zip(paths, files.values(), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return produce(Request(path=str(paths[0]), more=tuple(map(str, paths[1:]))))


def reason(product: Product) -> str | None:
    failure = product.document["failure"]
    return None if failure is None else str(failure["reason"])


ALONE = [
    ("train.log", "ablation.log"),
    ("run_1.log", "run_2.log"),
    ("a/rank0.log", "b/rank0.log"),
    ("lr3/rank0.log", "wide/rank1.log"),
    ("exp-a-rank0.log", "exp-b-rank1.log"),
]


@pytest.mark.parametrize("names", ALONE)
@settings(max_examples=costly(60))
@given(first=st.sampled_from([0, 2000, 5000]), loss=st.floats(5, 9))
def test_other_values_and_other_steps_are_other_runs(
    names: tuple[str, str], first: int, loss: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    files = dict(zip(names, (steps(0, 1000), steps(first, first + 500, loss=loss)), strict=True))
    with pytest.raises(SeveralRuns) as error:
        read(tmp_path_factory.mktemp("runs"), files)
    assert error.value.exit_code == 2
    assert names[1] in error.value.why or names[0] in error.value.why
    assert "--all-runs" in error.value.try_


TOGETHER = [
    ({"rank0.log": steps(0, 500), "rank1.log": steps(0, 500, loss=5.0)}, 51),  # each rank its own loss
    ({"attempt_0/0/stdout.log": steps(0, 500), "attempt_0/1/stdout.log": steps(0, 500, loss=4.5)}, 51),
    ({"a.log": steps(0, 500), "b.log": steps(0, 500)}, 51),  # the same values
    ({"first.log": steps(0, 500), "second.log": steps(510, 900)}, 91),  # the next step
    ({"first.log": steps(0, 500), "second.log": steps(310, 900, loss=4.1)}, 91),  # resumed, with like losses
    ({"attempt_0/rank0.log": steps(0, 500), "attempt_1/rank0.log": steps(0, 900, loss=6.0)}, 91),
]


@pytest.mark.parametrize(("files", "records"), TOGETHER)
def test_what_proves_that_files_are_one_run(files: dict[str, str], records: int, tmp_path: Path) -> None:
    assert read(tmp_path, files).document["summary"]["steps"]["record_count"] == records


def test_a_resume_with_other_losses_is_another_run(tmp_path: Path) -> None:
    with pytest.raises(SeveralRuns):
        read(tmp_path, {"first.log": steps(0, 500), "second.log": steps(310, 900, loss=8.0)})


@pytest.mark.parametrize("error", [OOM, TRACE])
@pytest.mark.parametrize("name", ["monitor.log", "other/train.log", "zz.txt", "preprocess-rank0.log"])
def test_a_file_that_nothing_ties_to_the_run_contributes_nothing(name: str, error: str, tmp_path: Path) -> None:
    product = read(tmp_path, {"train.log": steps(0, 1000), name: "loading tables\n" + error})
    alone = produce(Request(path=str(tmp_path / "train.log")))
    assert reason(product) == reason(alone)
    assert product.document["checks"] == alone.document["checks"]
    assert product.document["derivation"]["observed"] == []
    assert "file_of_another_run" in product.document["derivation"]["problems"]["kinds"]


@pytest.mark.parametrize(
    "names", [("train.out", "train.err"), ("rank0.log", "rank1.log"), ("job/0/stdout.log", "job/0/stderr.log")]
)
def test_an_error_in_a_file_of_the_same_name_is_the_runs(names: tuple[str, str], tmp_path: Path) -> None:
    assert reason(read(tmp_path, dict(zip(names, (steps(0, 1000), OOM), strict=True)))) == "cuda_oom"


def test_files_without_steps_need_names_that_tie_them(tmp_path: Path) -> None:
    assert reason(read(tmp_path, {"rank0.log": "start\n", "rank1.log": OOM})) == "cuda_oom"
    with pytest.raises(SeveralRuns, match="may not belong to one run"):
        read(tmp_path, {"build.log": "gcc -c kernel.c\n", "serve.log": OOM})
