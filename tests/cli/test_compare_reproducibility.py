"""``receipt compare --reproducibility`` on six runs of one real loop, and on what is done to their lines."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Invoke

PARTS = ("configuration", "seeds", "resume")
KEYS = [
    "schema_version", "a", "b", "question", "verdict", "because", "steps", "tolerance", "aligned_by", "configuration", "seeds",
    "parameters", "resume", "data", "curves", "notes",
]  # fmt: skip
UNKNOWN_DATA = "other_numbers_data_not_printed"


@pytest.fixture
def runs(root: Path) -> Path:
    return root / "fixtures" / "reproducibility"


@pytest.fixture
def ask(invoke: Invoke) -> Callable[..., tuple[int, dict[str, Any]]]:
    """Return the exit code and the document for two runs."""

    def call(a: Path, b: Path, *more: str) -> tuple[int, dict[str, Any]]:
        done = invoke("compare", "--reproducibility", a, b, "--json", *more)
        return done.code, done.document

    return call


def altered(source: Path, path: Path, change: Callable[[str], str]) -> Path:
    """Write the lines of ``source`` as ``change`` makes them to ``path``."""
    path.write_text("".join(change(line) for line in source.read_text().splitlines(keepends=True)))
    return path


def scaled(by: float, digits: int = 6) -> Callable[[str], str]:
    return lambda line: re.sub(r"loss=([\d.]+)", lambda m: f"loss={float(m[1]) * by:.{digits}f}", line)


def sames(document: dict[str, Any]) -> dict[str, bool | None]:
    return {**{part: document[part]["same"] for part in PARTS}, **{c["metric"]: c["same"] for c in document["curves"]}}


def departs(document: dict[str, Any], metric: str = "loss") -> tuple[int, float | None, float | None] | None:
    (found,) = [curve["departs"] for curve in document["curves"] if curve["metric"] == metric]
    return None if found is None else (found["step"], found["a"], found["b"])


class TestRealRuns:
    def test_the_same_run_again_is_identical(self, runs: Path, ask: Any) -> None:
        code, document = ask(runs / "first.log", runs / "again.log")
        assert (code, document["verdict"], list(document)) == (0, "identical", KEYS)
        assert set(sames(document).values()) == {True}
        assert [c["metric"] for c in document["curves"]] == ["loss", "grad_norm", "learning_rate"]
        assert {(c["compared"], c["matches"], c["first"], c["last"]) for c in document["curves"]} == {(120, 120, 0, 119)}

    @pytest.mark.parametrize(
        ("log", "code", "verdict", "different", "departure"),
        [
            ("other-seed", 1, UNKNOWN_DATA, {"seeds", "loss", "grad_norm"}, (0, 3.922104, 3.873666)),
            ("other-rate", 1, UNKNOWN_DATA, {"loss", "grad_norm", "learning_rate"}, (1, 3.862339, 3.859094)),
            ("other-batch", 2, "not_comparable", {"configuration", "loss", "grad_norm"}, (0, 3.922104, 3.903316)),
            ("resumed", 2, "not_comparable", {"resume"}, None),
        ],
    )
    def test_another_run_departs_where_it_does(
        self, runs: Path, ask: Any, log: str, code: int, verdict: str, different: set[str], departure: Any
    ) -> None:
        found, document = ask(runs / "first.log", runs / f"{log}.log")
        assert (found, document["verdict"]) == (code, verdict)
        assert {part for part, same in sames(document).items() if same is False} == different
        assert departs(document) == departure

    def test_fewer_steps_end_before_the_departure(self, runs: Path, ask: Any) -> None:
        code, document = ask(runs / "first.log", runs / "other-rate.log", "--steps", "1")
        assert document["curves"][0]["same"] is True
        assert (code, document["curves"][2]["same"]) == (1, False)  # the learning rate says it at once

    def test_what_a_person_reads(self, runs: Path, invoke: Invoke) -> None:
        done = invoke("compare", "--reproducibility", runs / "first.log", runs / "other-rate.log")
        text = done.stdout.decode()
        assert "✗ other numbers; the data is not shown" in text
        assert re.search(r"loss +differs +step 1: 3\.862339 and 3\.859094 \(lines \d+ and \d+\)", text)
        assert re.search(r"loss +1 +3\.862339 :\d+ +3\.859094 :\d+ +\d+ of 120", text)
        assert re.search(r"seeds +same +seed 1337", text)


class TestResume:
    @pytest.fixture
    def resume(self, invoke: Invoke) -> Callable[..., tuple[int, dict[str, Any]]]:
        def call(a: Path, b: Path, *more: str) -> tuple[int, dict[str, Any]]:
            done = invoke("compare", "--resume", a, b, "--json", *more)
            return done.code, done.document

        return call

    def test_it_goes_on_where_the_first_run_was(self, runs: Path, resume: Any) -> None:
        code, document = resume(runs / "first.log", runs / "resumed.log")
        assert (code, document["question"], document["verdict"], list(document)) == (0, "resume", "identical", KEYS)
        assert document["resume"]["because"] == "b begins with step 60, which a trained"
        assert [(c["compared"], c["first"], c["last"], c["same"]) for c in document["curves"]] == [(60, 60, 119, True)] * 3

    def test_a_run_that_stopped_is_compared_as_far_as_it_came(self, runs: Path, tmp_path: Path, resume: Any) -> None:
        stopped = tmp_path / "stopped.log"
        stopped.write_text("".join((runs / "first.log").read_text().splitlines(keepends=True)[:80]))
        code, document = resume(stopped, runs / "resumed.log")
        (loss, *_) = document["curves"]
        assert (code, loss["same"], loss["first"]) == (0, True, 60)
        assert 0 < loss["compared"] < 30

    @pytest.mark.parametrize(
        ("first", "second", "part", "code"),
        [
            ("other-rate", "resumed", "loss", 1),
            ("resumed", "first", "resume", 2),
            ("first", "again", "resume", 2),
            ("other-seed", "resumed", "seeds", 1),
        ],
    )
    def test_what_does_not(self, runs: Path, resume: Any, first: str, second: str, part: str, code: int) -> None:
        found, document = resume(runs / f"{first}.log", runs / f"{second}.log")
        assert (found, sames(document)[part]) == (code, False)

    def test_no_common_step_and_no_position_prove_nothing(self, runs: Path, tmp_path: Path, resume: Any) -> None:
        stopped = tmp_path / "stopped.log"
        stopped.write_text("".join((runs / "first.log").read_text().splitlines(keepends=True)[:30]))
        code, document = resume(stopped, runs / "resumed.log")
        assert (code, document["verdict"]) == (2, "not_comparable")

    def test_one_question_at_a_time(self, runs: Path, invoke: Invoke) -> None:
        done = invoke("compare", "--resume", "--reproducibility", runs / "first.log", runs / "again.log")
        assert done.code == 2
        assert "exclude each other" in done.stderr


class TestUnknown:
    def test_receipts_alone_hold_no_steps(self, runs: Path, tmp_path: Path, invoke: Invoke, ask: Any) -> None:
        for name in ("first", "again"):
            assert invoke("parse", runs / f"{name}.log", "-o", tmp_path / f"{name}.json").code == 0
        code, document = ask(tmp_path / "first.json", tmp_path / "again.json")
        assert (code, document["verdict"], document["because"]) == (2, "not_comparable", "no losses of both runs are known")
        assert sames(document) == {"configuration": True, "seeds": True, "resume": True}

    def test_receipts_and_the_series_of_their_logs_hold_all(self, runs: Path, tmp_path: Path, invoke: Invoke, ask: Any) -> None:
        for name in ("first", "again", "other-rate"):
            more = ("--series", tmp_path / f"{name}.parquet") if name != "again" else ()
            assert invoke("parse", runs / f"{name}.log", "-o", tmp_path / f"{name}.json", *more).code == 0
        given = ("--series", str(tmp_path))
        assert ask(tmp_path / "first.json", tmp_path / "again.json", *given)[0] == 0  # one log, byte for byte: one series
        code, document = ask(tmp_path / "first.json", tmp_path / "other-rate.json", *given)
        assert (code, departs(document)) == (1, (1, 3.862339, 3.859094))
        assert ask(tmp_path / "first.json", runs / "again.log", *given)[0] == 0

    def test_what_one_log_leaves_out_is_named_and_decides_nothing(self, runs: Path, tmp_path: Path, ask: Any) -> None:
        first, again = (
            altered(runs / f"{name}.log", tmp_path / f"{name}.log", lambda line: line.replace(" seed=1337", ""))
            for name in ("first", "again")
        )
        code, document = ask(first, again)
        assert (code, document["verdict"]) == (0, "identical")
        assert (document["seeds"]["same"], document["seeds"]["because"]) == (None, "no seed is known of either run")
        assert ask(runs / "first.log", again)[1]["seeds"]["because"] == "no seed is known of b"
        again = altered(runs / "again.log", tmp_path / "again.log", lambda line: "" if "precision:" in line else line)
        code, document = ask(runs / "first.log", again)
        assert (code, document["verdict"]) == (0, "identical")
        assert document["configuration"]["unknown"] == [{"pointer": "/header/flags/precision", "a": "float32", "b": None}]


class TestEqual:
    def test_noise_is_equal_within_a_stated_tolerance_only(self, runs: Path, tmp_path: Path, ask: Any) -> None:
        noisy = altered(runs / "again.log", tmp_path / "noisy.log", scaled(1 + 2**-9))
        assert ask(runs / "first.log", noisy)[0] == 1
        code, document = ask(runs / "first.log", noisy, "--tolerance", str(2**-8))
        assert (code, document["tolerance"], document["verdict"]) == (0, 2**-8, "same_within_tolerance")
        assert document["curves"][0]["because"] == "equal at 120 steps within 0.00390625 of their size"
        assert ask(runs / "first.log", noisy, "--tolerance", "0.001")[0] == 1

    def test_fewer_digits_are_no_departure_and_not_identical(self, runs: Path, tmp_path: Path, ask: Any) -> None:
        code, document = ask(runs / "first.log", altered(runs / "again.log", tmp_path / "b.log", scaled(1, 3)))
        assert (code, document["verdict"]) == (0, "same_within_printed_precision")
        code, document = ask(runs / "first.log", altered(runs / "again.log", tmp_path / "c.log", scaled(1.001, 3)))
        assert (code, document["curves"][0]["departs"]["step"]) == (1, 0)

    def test_the_last_digit_counts_and_the_curves_meet_again(self, runs: Path, tmp_path: Path, ask: Any) -> None:
        off = altered(runs / "again.log", tmp_path / "off.log", lambda line: line.replace("loss=3.862339", "loss=3.862340"))
        code, document = ask(runs / "first.log", off)
        assert (code, departs(document)) == (1, (1, 3.862339, 3.86234))
        loss = document["curves"][0]
        assert (loss["departs"]["b_text"], loss["matches"], loss["meets"]) == ("3.86234", 119, 2)
        assert loss["greatest"] == {"step": 1, "delta": pytest.approx(1e-6)}

    def test_records_without_steps_are_compared_in_their_order(self, tmp_path: Path, ask: Any) -> None:
        losses = [f"{4 - n / 30:.4f}" for n in range(30)]
        paths = []
        for name, found in (("a", losses), ("b", losses), ("c", [*losses[:11], "3.5000", *losses[12:]])):
            paths.append(tmp_path / f"{name}.log")
            paths[-1].write_text(
                "".join(f"{{'loss': {loss}, 'learning_rate': 0.001, 'epoch': 0.1}}\n" for loss in found), "utf-8"
            )
        assert ask(paths[0], paths[1])[1]["verdict"] == "identical"
        code, document = ask(paths[0], paths[2])
        assert (code, document["because"]) == (1, "loss: record 11: 3.6333 and 3.5000 (lines 12 and 12)")

    def test_runs_that_fail_alike_are_alike(self, runs: Path, tmp_path: Path, ask: Any) -> None:
        def break_at(line: str) -> str:
            return re.sub(r"loss=[\d.]+", "loss=nan", line) if re.search(r"step=[5-9]\d/", line) else line

        broken = altered(runs / "again.log", tmp_path / "broken.log", break_at)
        assert ask(broken, broken)[0] == 0
        code, document = ask(runs / "first.log", broken)
        assert (code, document["curves"][0]["departs"]["step"]) == (1, 50)
        assert document["curves"][0]["departs"]["b"] is None


class TestUsage:
    @pytest.mark.parametrize(
        "arguments",
        [
            pytest.param(["--reproducibility", "first.log"], id="one-run"),
            pytest.param(["--reproducibility", "first.log", "again.log", "again.log"], id="three-runs"),
            pytest.param(["--reproducibility", "--markdown", "-", "first.log", "again.log"], id="markdown"),
            pytest.param(["--steps", "10", "first.log", "again.log"], id="steps-alone"),
            pytest.param(["--tolerance", "0.1", "first.log", "again.log"], id="tolerance-alone"),
            pytest.param(["--series", "folder", "first.log", "again.log"], id="series-alone"),
            pytest.param(["--reproducibility", "--tolerance", "inf", "first.log", "again.log"], id="endless-tolerance"),
            pytest.param(["--reproducibility", "--tolerance=-1", "first.log", "again.log"], id="negative-tolerance"),
            pytest.param(["--reproducibility", "--steps", "0", "first.log", "again.log"], id="no-steps"),
        ],
    )
    def test_misuse_is_refused(self, runs: Path, invoke: Invoke, arguments: list[str]) -> None:
        found = invoke("compare", *(runs / a if a.endswith(".log") else a for a in arguments))
        assert (found.code, found.stdout) == (2, b"")

    def test_a_policy_may_mind_less(self, runs: Path, tmp_path: Path, ask: Any) -> None:
        policy = tmp_path / "policy.yaml"
        policy.write_text('ignore: ["/header/flags/global_batch_size"]\n')
        assert ask(runs / "first.log", runs / "other-batch.log", "--policy", str(policy))[1]["configuration"]["same"] is True
