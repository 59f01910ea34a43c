"""Gates files, and the rulings that follow from them: tables of what is written and what becomes of it."""

import random
from typing import Any

import pytest

from receipt_cli.ci.gates import DEFAULT, Bound, Change, Gates, Unknown, read_gates
from receipt_cli.ci.verdict import Baseline, Ruling, hold_against, rule
from receipt_cli.comparison.comparable import DEFAULT as POLICY
from receipt_cli.comparison.contrasts import Run
from receipt_cli.definitions.metrics import load_registry
from receipt_cli.errors import DataError

CORE = {"finite_losses": True, "zero_exit_code": None, "has_steps": True, "no_oom": True}


def read(text: str) -> Gates:
    checks = [*CORE, "completed", "steps_monotonic"]
    return read_gates(text.encode(), "gates.yaml", checks=checks, registry=load_registry())


def statistic(name: str, value: float) -> dict[str, Any]:
    metric = load_registry().by_name[name]
    same = dict.fromkeys(("first", "last", "min", "max", "mean", "median"), value)
    return {"id": metric.id, "window": metric.window, "scope": "global", "definition": None, **same}


def receipt(checks: dict[str, bool | None] | None = None, *, gpu: str = "H100", **metrics: float) -> dict[str, Any]:
    """Make what rulings and comparisons read of a receipt."""
    return {
        "run": {"lane": "lane", "preset": None},
        "header": {
            "hardware": {"accelerators": [{"name": gpu, "count": 8}]},
            "flags": {"precision": "bf16", "sequence_length": 4096},
            "git": {"commit": None},
        },
        "summary": {
            "steps": {"restart_count": 0},
            "steady_state": {"rule": "steady/1"},
            "metrics": {n: statistic(n, v) for n, v in metrics.items()},
        },
        "phases": [],
        "checks": {**CORE, "completed": None, **(checks or {})},
        "failure": None,
        "derivation": {"rules": "derive/1", "grammars": [{"id": "x", "version": 1, "sha256": "0"}]},
    }


def one(document: dict[str, Any], gates: Gates, name: str, baseline: Baseline | None = None) -> Ruling:
    found = [r for r in rule(document, gates, baseline).rulings if r.name == name]
    assert len(found) == 1
    return found[0]


class TestReading:
    def test_an_empty_mapping_means_the_default(self) -> None:
        assert read("{}") == DEFAULT == Gates(("healthy",))

    @pytest.mark.parametrize(
        ("metric", "written", "want"),
        [
            ("loss", "3", 3.0),
            ("loss", "3.0e0", 3.0),  # YAML 1.1 takes this for a text
            ("tokens_per_s", "1e6", 1e6),
            ("tokens_per_s", "1.1 M", 1.1e6),
            ("tokens_per_s", '"1,100,000"', 1.1e6),
            ("step_time_s", "450 ms", 0.45),
            ("peak_memory_bytes", "70 GiB", 70 * 2**30),
            ("peak_memory_bytes", "70GB", 70e9),
            ("mfu_ratio", "40%", 0.4),
            ("mfu_ratio", "0.4", 0.4),
            ("flops_per_s_per_device", "400 TFLOPS", 4e14),
            ("val_loss", "-1.5", -1.5),
        ],
    )
    def test_a_limit_is_in_base_units(self, metric: str, written: str, want: float) -> None:
        gates = read(f"metrics: {{{metric}: {{median: {{at_least: {written}}}}}}}")
        assert gates.gates == (Bound(f"{metric}.median", f"/summary/metrics/{metric}/median", metric, want, None),)

    def test_fields_changes_and_the_unknown(self) -> None:
        gates = read(
            "fields: {/summary/steps/restart_count: {at_most: 0}}\n"
            "metrics: {loss: {change: {worse_by_at_most: 2.5%, differs_by_at_most: 5 %, interval: required}}}\n"
            "unknown: skip\n"
        )
        restarts = Bound("/summary/steps/restart_count", "/summary/steps/restart_count", "restart_count", None, 0)
        worse, differs = Change("loss", "worse", 0.025, "required"), Change("loss", "differs", 0.05, "required")
        assert gates.gates == (worse, differs, restarts)
        assert gates.unknown == Unknown("skip", "skip", "skip")
        assert not gates.allow_truncated
        assert read("allow_truncated: true").allow_truncated
        assert read("unknown: {changes: fail}").unknown == Unknown("fail", "fail", "fail")

    @pytest.mark.parametrize(
        ("text", "line", "message"),
        [
            ("requires: [healthy]", 1, "no 'requires'"),
            ("require: healthy", 1, "not a list of checks"),
            ("require: [healthy, compleeted]", 1, "no check 'compleeted'"),
            ("metrics:\n  tokens_per_sec:\n    median: {at_least: 1}", 2, "no metric 'tokens_per_sec'"),
            ("metrics: {}", 1, "not a mapping with an entry"),
            ("metrics:\n  loss:\n    p100: {at_most: 1}", 3, "no 'p100'"),
            ("metrics:\n  loss:\n    last: {below: 1}", 3, "no 'below'"),
            ("metrics:\n  loss:\n    last: {at_most: 5%}", 3, "'5%' is not a limit"),
            ("metrics:\n  step_time_s:\n    median: {at_most: 5 GiB}", 3, "not a limit"),
            ("metrics:\n  loss:\n    last: {at_most: .nan}", 3, "not a limit"),
            ("metrics:\n  loss:\n    last: {at_most: yes}", 3, "not a limit"),
            ("metrics:\n  loss:\n    last: {at_most: 1.0e+999}", 3, "not a limit"),
            ("metrics:\n  loss:\n    last: {at_least: 2, at_most: 1}", 3, "larger than at_most"),
            ("metrics:\n  loss:\n    change: {worse_by_at_most: 0.05}", 3, "not a percentage"),
            ("metrics:\n  loss:\n    change: {worse_by_at_most: -5%}", 3, "not a percentage"),
            ("metrics:\n  loss:\n    change: {interval: required}", 3, "has no limit"),
            ("metrics:\n  loss:\n    change: {worse_by_at_most: 5%, interval: maybe}", 3, "interval is one of"),
            ("metrics:\n  learning_rate:\n    change: {worse_by_at_most: 5%}", 3, "neither more nor less"),
            ("fields:\n  goodput: {at_least: 1}", 2, "JSON pointer"),
            ("fields:\n  /goodput/wall_time_s: {at_least: 5 min}", 2, "not a limit"),
            ("unknown: maybe", 1, "fail, skip"),
            ("require: [healthy]\nallow_truncated: maybe", 2, "'maybe', not true or false"),
            ("unknown: {gates: fail}", 1, "no 'gates'"),
            ("require: [healthy]\nrequire: []", 2, "duplicate key"),
        ],
    )
    def test_a_mistake_is_an_error_with_its_line(self, text: str, line: int, message: str) -> None:
        with pytest.raises(DataError) as caught:
            read(text)
        assert message in caught.value.message
        assert caught.value.where == f"gates.yaml:{line}"

    def test_a_near_name_is_offered(self) -> None:
        with pytest.raises(DataError) as caught:
            read("metrics: {tokens_per_sec: {median: {at_least: 1}}}")
        assert "tokens_per_s" in caught.value.try_


class TestChecks:
    @pytest.mark.parametrize(
        ("require", "name", "answer", "state"),
        [
            (["healthy"], "zero_exit_code", None, "unknown"),
            (["healthy"], "zero_exit_code", False, "failed"),
            (["healthy"], "has_steps", None, "failed"),
            (["healthy"], "has_steps", False, "failed"),
            (["proven"], "zero_exit_code", None, "failed"),
            (["proven"], "zero_exit_code", True, "passed"),
            (["healthy"], "completed", False, "noted"),
            (["completed"], "completed", False, "failed"),
            (["completed"], "completed", None, "failed"),
            (["completed"], "no_oom", False, "noted"),
            ([], "has_steps", False, "noted"),
        ],
    )
    def test_a_check_fails_the_job_only_where_it_is_required(
        self, require: list[str], name: str, answer: bool | None, state: str
    ) -> None:
        assert one(receipt({name: answer}), Gates(tuple(require)), name).state == state

    def test_an_unknown_check_may_be_skipped_but_proof_may_not(self) -> None:
        gates = Gates(("completed", "proven"), unknown=Unknown(checks="skip"))
        assert one(receipt(), gates, "completed").state == "unknown"
        assert one(receipt(), gates, "zero_exit_code").state == "failed"

    def test_a_check_that_an_older_receipt_lacks_is_unknown(self) -> None:
        document = receipt()
        del document["checks"]["completed"]
        assert one(document, Gates(("completed",)), "completed").state == "failed"

    def test_passing_with_the_default_is_health(self) -> None:
        for checks in ({}, {"no_oom": False}, {"has_steps": None}, {"completed": False}):
            verdict = rule(receipt(checks), DEFAULT, None)
            assert verdict.passed is verdict.healthy


class TestBounds:
    @pytest.mark.parametrize(
        ("value", "low", "high", "answer"),
        [(5.0, 5.0, None, True), (5.0, None, 5.0, True), (5.0, 5.1, None, False), (5.0, None, 4.9, False), (5.0, 4.0, 6.0, True)],
    )
    def test_limits_are_inclusive(self, value: float, low: float | None, high: float | None, answer: bool) -> None:
        bound = Bound("loss.last", "/summary/metrics/loss/last", "loss", low, high)
        assert one(receipt(loss=value), Gates((), (bound,)), "loss.last").answer is answer

    @pytest.mark.parametrize("pointer", ["/summary/metrics/val_loss/last", "/phases/0/summary", "/checks/no_oom", "/run/lane/0"])
    @pytest.mark.parametrize(("word", "state"), [("fail", "failed"), ("skip", "unknown")])
    def test_what_is_no_number_is_unknown(self, pointer: str, word: Any, state: str) -> None:
        gates = Gates((), (Bound("x", pointer, "x", 0, None),), unknown=Unknown(bounds=word))
        found = one(receipt(loss=1.0), gates, "x")
        assert (found.answer, found.state) == (None, state)

    def test_a_figure_that_reads_like_its_limit_is_shown_in_full(self) -> None:
        bound = Bound("loss.last", "/summary/metrics/loss/last", "loss", None, 3.0)
        assert "3.0000001" in one(receipt(loss=3.0000001), Gates((), (bound,)), "loss.last").found


def against(a: dict[str, Any], b: dict[str, Any], **steady: tuple[list[float], list[float]]) -> Baseline:
    sides = [Run(name, d, {k: v[i] for k, v in steady.items()}) for i, (name, d) in enumerate((("a", a), ("b", b)))]
    return hold_against(sides[1], [sides[0]], POLICY, load_registry())


def change(metric: str, share: float, *, differs: bool = False, required: bool = False) -> Gates:
    gate = Change(metric, "differs" if differs else "worse", share, "required" if required else "used")
    return Gates((), (gate,))


def ruled(gates: Gates, a: dict[str, Any], b: dict[str, Any], **steady: tuple[list[float], list[float]]) -> Ruling:
    return one(b, gates, gates.gates[0].name, against(a, b, **steady))


class TestChanges:
    @pytest.mark.parametrize(
        ("metric", "a", "b", "differs", "answer"),
        [
            ("tokens_per_s", 1e6, 0.96e6, False, True),
            ("tokens_per_s", 1e6, 0.94e6, False, False),
            ("tokens_per_s", 1e6, 1.5e6, False, True),
            ("tokens_per_s", 1e6, 1.5e6, True, False),
            ("step_time_s", 0.4001, 0.4301, False, False),
            ("step_time_s", 0.4001, 0.3001, False, True),
            ("step_time_s", 0.4001, 0.3001, True, False),
            ("loss", 2.0, 2.0, True, True),
            ("loss", -2.0001, -1.8001, False, False),
        ],
    )
    def test_figures_decide_where_nothing_else_is_known(
        self, metric: str, a: float, b: float, differs: bool, answer: bool
    ) -> None:
        found = ruled(change(metric, 0.05, differs=differs), receipt(**{metric: a}), receipt(**{metric: b}))
        assert (found.answer, found.fails) == (answer, not answer)

    @pytest.mark.parametrize(
        ("gates", "a", "b", "words"),
        [
            (change("tokens_per_s", 0.05, required=True), {"tokens_per_s": 1e6}, {"tokens_per_s": 5e5}, "no interval"),
            (change("tokens_per_s", 0.05), {"tokens_per_s": 1e6}, {"gpu": "B200", "tokens_per_s": 1e5}, "accelerators differs"),
            (change("loss", 0.01), {"loss": 2.1}, {"loss": 2.2}, ""),  # 2.15 and 2.15 may have been printed so
            (change("loss", 0.05), {"loss": 0.0}, {"loss": 1.0}, ""),
            (change("loss", 0.05), {}, {"loss": 1.0}, ""),
        ],
    )
    def test_what_two_figures_do_not_tell_is_unknown(self, gates: Gates, a: Any, b: Any, words: str) -> None:
        found = ruled(gates, receipt(**a), receipt(**b))
        assert (found.answer, found.state, words in found.found) == (None, "unknown", True)

    def test_within_noise_nothing_is_said(self) -> None:
        draw = random.Random(1)
        sides = receipt(tokens_per_s=1.0e6), receipt(tokens_per_s=0.93e6)
        before, after = ([middle * draw.gauss(1, 0.3) for _ in range(200)] for middle in (1.0e6, 0.93e6))
        found = ruled(change("tokens_per_s", 0.05), *sides, tokens_per_s=(before, after))
        assert (found.answer, found.state) == (None, "unknown")
        assert "noise" in (found.reason or "")

    def test_beyond_noise_it_fails(self) -> None:
        steady = [1.0e6 + 10.0 * (i % 7) for i in range(200)]
        sides = receipt(tokens_per_s=1.0e6), receipt(tokens_per_s=0.9e6)
        found = ruled(change("tokens_per_s", 0.05), *sides, tokens_per_s=(steady, [0.9 * v for v in steady]))
        assert found.state == "failed"
        assert "95 %" in found.found

    def test_the_unknown_may_be_made_to_fail(self) -> None:
        gates = Gates((), (Change("loss", "worse", 0.05, "used"),), Unknown(changes="fail"))
        assert one(receipt(loss=1.0), gates, "loss.change.worse_by_at_most").state == "failed"

    def test_one_baseline_of_another_kind_is_enough_to_forbid(self) -> None:
        runs = [Run("a", receipt(loss=1.0)), Run("c", receipt(gpu="B200", loss=1.0))]
        held = hold_against(Run("b", receipt(loss=1.0)), runs, POLICY, load_registry())
        assert held.verdict == "not_comparable"
