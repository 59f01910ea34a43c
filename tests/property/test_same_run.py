"""Is it the same run? What differs in print is found wherever it is printed, and what is not printed is not named."""

import random
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.same_run import COUNTS, FORMS, Form, Simulated, simulated_pairs, verdict_of, write
from receipt_cli.comparison.comparable import DEFAULT
from receipt_cli.comparison.load import load_side
from receipt_cli.comparison.rerun import Question, reproducibility
from tests.tools.examples import costly

RUN = Simulated(seed=1337, order=5, last=39)
PLACED = [form for form, printed in FORMS.items() if printed and form not in COUNTS]
SEEDED: list[Form] = ["nanochat", "megatron", "shards", "labels"]
forms = st.sampled_from(list(FORMS))
FEW = settings(max_examples=costly(32))
"""Two logs are read for each example."""


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the answer about two logs."""
    folder = tmp_path_factory.mktemp("pair")

    def call(a: str, b: str, question: Question = "rerun") -> dict[str, Any]:
        for name, text in (("a.log", a), ("b.log", b)):
            (folder / name).write_text(text, "utf-8")
        first, second = (load_side(str(folder / name), lambda file: nullcontext(None))[0] for name in ("a.log", "b.log"))
        return reproducibility(first, second, DEFAULT, question=question)

    return call


@FEW
@given(form=forms, clock=st.integers(1, 1000))
def test_other_speed_is_the_same_run(form: Form, clock: int, ask: Any) -> None:
    assert ask(write(RUN, form), write(replace(RUN, clock=clock), form))["verdict"] == "identical"


@FEW
@given(form=st.sampled_from(PLACED), order=st.integers(6, 1000))
def test_permuted_data_is_found_where_a_place_is_printed(form: Form, order: int, ask: Any) -> None:
    found = ask(write(RUN, form), write(replace(RUN, order=order), form))
    assert (found["verdict"], found["data"]["same"]) == ("other_data", False)
    assert any(curve["role"] == "data" and curve["departs"] for curve in found["curves"])


@FEW
@given(form=st.sampled_from([form for form in FORMS if form not in PLACED]), order=st.integers(6, 1000))
def test_permuted_data_is_not_named_where_none_is_printed(form: Form, order: int, ask: Any) -> None:
    other = replace(RUN, order=order, seed=RUN.seed + (form in COUNTS))  # where samples are counted, the seed gives the order
    assert ask(write(RUN, form), write(other, form))["verdict"] == "other_numbers_data_not_printed"


@FEW
@given(form=forms, data=st.data())
def test_one_changed_digit_is_found_with_its_step_and_lines(form: Form, data: st.DataObject, ask: Any) -> None:
    lines = write(RUN, form).splitlines(keepends=True)
    begin = next(number for number, line in enumerate(lines) if "loss" in line)
    at = data.draw(st.integers(begin, len(lines) - 1))
    start = lines[at].index(next(label for label in ("lm loss: ", "loss: ", "loss ", "loss=") if label in lines[at]))
    start = next(place for place in range(start, len(lines[at])) if lines[at][place].isdigit())
    digits = [start + 2 + n for n in range(4)]
    where = data.draw(st.sampled_from(digits))
    digit = data.draw(st.sampled_from([d for d in "0123456789" if d != lines[at][where]]))
    changed = [*lines[:at], lines[at][:where] + digit + lines[at][where + 1 :], *lines[at + 1 :]]
    found = ask("".join(lines), "".join(changed))
    (loss,) = [curve for curve in found["curves"] if curve["metric"] == "loss"]
    assert found["verdict"] in ("same_data_other_numbers", "other_numbers_data_not_printed")
    assert (found["verdict"] == "same_data_other_numbers") == FORMS[form]
    assert (loss["departs"]["a_line"], loss["departs"]["b_line"]) == (at + 1, at + 1)
    assert (loss["matches"], loss["compared"]) == (len(lines) - begin - 1, len(lines) - begin)


@FEW
@given(form=st.sampled_from(SEEDED), seed=st.integers(1, 1000))
def test_a_changed_seed_is_found_even_if_every_number_is_the_same(form: Form, seed: int, ask: Any) -> None:
    text = write(RUN, form)
    found = ask(text, text.replace("1337", str(seed), 1))
    assert found["verdict"] == ("same_data_other_numbers" if form in PLACED else "other_numbers_data_not_printed")
    assert found["seeds"]["because"] == f"seed is 1337 and {seed}"


@FEW
@given(form=forms, begin=st.integers(5, 35), dropped=st.integers(-3, 4000).filter(bool))
def test_samples_dropped_at_a_resume_are_found(form: Form, begin: int, dropped: int, ask: Any) -> None:
    whole, resumed = write(RUN, form), replace(RUN, first=begin, last=60)
    fine = ask(whole, write(resumed, form), "resume")
    lost = ask(whole, write(replace(resumed, offset=dropped), form), "resume")
    assert fine["verdict"] == "identical"
    assert lost["verdict"] == ("other_data" if FORMS[form] else "other_numbers_data_not_printed")


@FEW
@given(first=st.integers(1, 400), jumped=st.integers(-200, 9000))
def test_a_resume_without_a_common_step_is_held_against_the_position(first: int, jumped: int, ask: Any) -> None:
    stopped = replace(RUN, last=first + 40)
    resumed = replace(RUN, first=stopped.last + 1, last=stopped.last + 41, offset=jumped)
    found = ask(write(stopped, "megatron"), write(resumed, "megatron"), "resume")
    assert found["verdict"] == ("other_data" if jumped else "same_within_printed_precision")


@FEW
@given(form=forms, digits=st.integers(2, 5))
def test_fewer_digits_are_never_identical(form: Form, digits: int, ask: Any) -> None:
    fine, coarse = replace(RUN, digits=6), replace(RUN, digits=digits, clock=9)
    for a, b in ((fine, coarse), (coarse, fine)):
        assert ask(write(a, form), write(b, form))["verdict"] == "same_within_printed_precision"


def test_a_resume_on_other_devices_is_compared_at_equal_samples(ask: Any) -> None:
    """From sixteen ranks to eight with half the batch: step 41 of the second run has seen as much as step 20 of the first."""
    lines = write(replace(RUN, first=0, last=39), "megatron").splitlines(keepends=True)
    half = [
        line.replace("global batch size:     8", "global batch size:     4")
        for line in write(replace(RUN, first=20, last=39), "megatron").splitlines(keepends=True)[1:]
    ]
    twice = []
    for number, line in enumerate(half):
        for part in (0, 1):
            step, samples = 41 + 2 * number + part, 8 * 20 + 4 * (2 * number + part + 1)
            text = line.replace(f"iteration {21 + number:8d}/", f"iteration {step:8d}/")
            twice.append(text.replace(f"consumed samples: {8 * (21 + number):12d}", f"consumed samples: {samples:12d}"))
    found = ask("".join(lines), lines[0] + "".join(twice), "resume")
    assert (found["aligned_by"], found["verdict"]) == ("samples", "identical")
    lost = [line.replace("consumed samples:          1", "consumed samples:         11") for line in twice]
    assert ask("".join(lines), lines[0] + "".join(lost), "resume")["verdict"] in ("other_data", "not_comparable")


def test_a_step_digest_tells_data_from_parameters(ask: Any) -> None:
    def log(row: str, params: str) -> str:
        rows = [f"step={n} loss={4 - n / 50:.4f} packed_row_hash: {row}{n:04x} param_hash: {params}{n:04x}\n" for n in range(30)]
        return "".join(rows)

    assert ask(log("ab12", "cd34"), log("ab12", "cd34"))["verdict"] == "identical"
    assert ask(log("ab12", "cd34"), log("ab13", "cd34"))["verdict"] == "other_data"
    assert ask(log("ab12", "cd34"), log("ab12", "cd35"))["verdict"] == "same_data_other_numbers"


def test_the_first_pairs_of_the_benchmark_get_the_exact_verdict(tmp_path: Path) -> None:
    pairs = list(simulated_pairs(random.Random(7)))[: costly(40)]
    answers = [(pair, verdict_of(pair, tmp_path)) for pair in pairs]
    assert [pair.kind for pair, found in answers if found is None or found["verdict"] not in pair.exact] == []


HEADS = [
    ("tokenizer: gpt2", "tokenizer", "gpt2"),
    ("  tokenizer_type .................. HFTokenizer.................updated", "tokenizer", "HFTokenizer"),
    ("dataset: fineweb-edu", "name", "fineweb-edu"),
    ("Dataset: loaded", "name", None),
    ("  data_path ....................................... ['/data/pile_text_document']", "name", "/data/pile_text_document"),
    ("[rank0]:   data_path ............................. ['/data/pile_text_document']", "name", "/data/pile_text_document"),
    ("packing: best_fit", "packing_policy", "best_fit"),
    ("packing: True", "packing_policy", None),
    ("packing_policy=first_fit", "packing_policy", "first_fit"),
    ("number of training samples: 12,345", "size_samples", 12345),
    ("  train_samples ................................... 12345", "size_samples", None),  # the plan, not the data set's size
    ("dataset fingerprint: 0xAB12CD34", "digest", "dataset ab12cd34"),
    ("the dataset: fineweb-edu is large", "name", None),
    ("dataset: fineweb-edu\ndataset: wikitext", "name", None),
]


@pytest.mark.parametrize(("head", "field", "value"), HEADS)
def test_a_line_about_one_fact_of_the_data_is_read_and_no_other(head: str, field: str, value: Any, tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(f"{head}\n{write(RUN, 'labels')}", "utf-8")
    side, _ = load_side(str(tmp_path / "run.log"), lambda file: nullcontext(None))
    assert (side.document["header"].get("data") or {}).get(field) == value
    later = write(RUN, "labels").splitlines(keepends=True)
    (tmp_path / "run.log").write_text("".join([*later[:9], f"{head}\n", *later[9:]]), "utf-8")
    side, _ = load_side(str(tmp_path / "run.log"), lambda file: nullcontext(None))
    assert "data" not in side.document["header"]  # not behind the first record


CELLS = {
    "tokens": "step {n} | loss {loss} | tokens seen {tokens:,}",
    "images": "iteration {n}: loss {loss}, images seen {samples}",
    "json": '{{"step": {n}, "loss": {loss}, "consumed_samples": {samples}}}',
    "loader": "step: {n} loss: {loss} dataloader_step: {place}",
    "epoch": "epoch {epoch} batch {batch} step {n} loss {loss}",
    "shard": "it {n} loss {loss} shard {epoch} offset {batch}",
    "row group": "Step {n} loss {loss} row_group={batch} file_idx={epoch}",
    "place": "step {n} loss {loss} data_pos {place}",
    "sampler": "step={n} loss={loss} sampler_state={digest:08x}",
    "digest": "step {n} loss {loss}\nbatch hash: {digest:08x}",
    "ranks": "step {n} loss {loss}\n[rank0] batch hash: {digest:08x}\n[rank1] batch hash: {other:08x}",
}
"""Forms in which scripts print a place in the data, with the record or behind it."""


def script(form: str, first: int = 0, last: int = 40, lost: int = 0, turned: bool = False) -> str:
    """Return the log of a script that prints the same losses whatever its data is."""
    lines = []
    for n in range(first, last):
        place = n + lost
        digests = place * 2654435761 % 2**32, (place + 1) * 40503 % 2**32
        digest, other = reversed(digests) if turned else digests
        facts = {
            "place": place,
            "samples": 8 * (place + 1),
            "tokens": 4096 * (place + 1),
            "epoch": place // 10,
            "batch": place % 10,
        }
        lines.append(CELLS[form].format(n=n, loss=f"{3 - n / 50:.4f}", digest=digest, other=other, **facts) + "\n")
    return "".join(lines)


@pytest.mark.parametrize("form", CELLS)
def test_a_place_that_a_script_prints_is_compared(form: str, ask: Any) -> None:
    assert ask(script(form), script(form, turned=form == "ranks"))["verdict"] == "identical"
    assert ask(script(form), script(form, lost=5))["verdict"] == "other_data"
    assert ask(script(form), script(form, first=30, last=60), "resume")["verdict"] == "identical"
    lost = ask(script(form), script(form, first=30, last=60, lost=3), "resume")
    (at, *_) = sorted(curve["departs"]["step"] for curve in lost["curves"] if curve["departs"])
    assert (lost["verdict"], at) == ("other_data", 30)
