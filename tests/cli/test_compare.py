"""``receipt compare`` through the command line: made-up runs of which every difference is known."""

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Invoke


def log(path: Path, seed: int, *, ms: float = 400, departs: int | None = None, steps: int = 400, batch: int = 512) -> Path:
    """Write a Megatron-LM log: step times with memory around ``ms``, a falling loss, which may leave its course."""
    draw, wave, lines = random.Random(seed), 0.0, []
    for i in range(steps):
        wave = 0.8 * wave + draw.gauss(0, 1)
        loss = 11 * (i + 1) ** -0.2 + draw.gauss(0, 0.01) + (0.2 if departs is not None and i >= departs else 0)
        lines.append(
            f" iteration {i + 1:8d}/{steps:8d} | consumed samples: {(i + 1) * batch:12d} | elapsed time per iteration (ms): "
            f"{ms * (1 + 0.01 * wave):.1f} | learning rate: 6.0e-4 | global batch size: {batch:5d} | lm loss: {loss:.6E} | "
            f"loss scale: 1.0 | grad norm: {draw.uniform(0.5, 2):.3f} | number of skipped iterations:   0 | "
            "number of nan iterations:   0 |\n"
        )
    path.write_text("".join(lines))
    return path


@pytest.fixture
def receipt(tmp_path: Path, invoke: Invoke) -> Callable[..., Path]:
    """Make the receipt of a log under a name; ``section_key`` are header fields that its job knew."""

    def make(name: str, source: Path, **fields: Any) -> Path:
        made = tmp_path / f"{name}.json"
        run = [f"--{key}={fields[key]}" for key in ("lane", "preset") if key in fields]
        assert invoke("parse", source, "-o", made, *run).code == 0
        document = json.loads(made.read_text())
        for key, value in fields.items():
            section, _, leaf = key.partition("_")
            if not leaf:
                continue
            document["header"][section] = {**(document["header"][section] or {}), leaf: value}
            document["header"]["sources"][f"/{section}/{leaf}"] = "file"
        made.write_text(json.dumps(document))
        return made

    return make


def only(found: Any, metric: str) -> dict[str, Any]:
    entries = [m for m in found["metrics"] if m["name"] == metric]
    assert len(entries) == 1
    return dict(entries[0])


class TestFigures:
    def test_a_planted_slowdown_is_found_and_its_interval_holds_it(self, tmp_path: Path, invoke: Invoke) -> None:
        a, b = log(tmp_path / "a.log", 1), log(tmp_path / "b.log", 2, ms=432)
        done = invoke("compare", a, b, "--json")
        contrast = done.document["contrasts"][0]
        time = only(contrast, "step_time_s")
        assert (done.code, time["outcome"], time["basis"], time["runs"]) == (0, "worse", "within_run", [1, 1])
        assert time["low"] < 0.032 < time["high"]
        assert any("no between-run variance: n = 1" in note for note in contrast["notes"])
        assert invoke("compare", a, b, "--fail").code == 1

    def test_two_runs_of_one_speed_show_no_evidence(self, tmp_path: Path, invoke: Invoke) -> None:
        a, b = log(tmp_path / "a.log", 1), log(tmp_path / "b.log", 3)
        done = invoke("compare", a, b, "--json", "--fail")
        time = only(done.document["contrasts"][0], "step_time_s")
        assert (done.code, time["outcome"]) == (0, "no_evidence")
        assert time["low"] < 0 < time["high"]

    def test_a_log_and_itself_are_equal(self, tmp_path: Path, invoke: Invoke) -> None:
        a = log(tmp_path / "a.log", 1)
        contrast = invoke("compare", a, a, "--json").document["contrasts"][0]
        assert {m["outcome"] for m in contrast["metrics"]} == {"equal"}
        assert [c["first_difference"] for c in contrast["curves"]] == [None]
        assert contrast["fields"] == contrast["outcome"]["checks"] == []

    def test_less_than_a_printed_digit_is_no_claim(self, tmp_path: Path, invoke: Invoke) -> None:
        line = " iteration {:8d}/      33 | elapsed time per iteration (ms): {} | lm loss: 2.5E+00 |\n"
        for name, text in (("a", "412.3"), ("b", "412.4")):
            (tmp_path / f"{name}.log").write_text("".join(line.format(i + 1, text if i % 2 else "412.3") for i in range(33)))
        found = invoke("compare", tmp_path / "a.log", tmp_path / "b.log", "--json").document["contrasts"][0]
        time = only(found, "step_time_s")
        assert (time["floor"], time["outcome"]) == (0.0001, "below_precision")
        assert abs(time["delta"]) == pytest.approx(0.00005)

    def test_receipts_alone_have_figures_and_say_what_is_missing(self, tmp_path: Path, invoke: Invoke, receipt: Any) -> None:
        a, b = receipt("a", log(tmp_path / "a.log", 1)), receipt("b", log(tmp_path / "b.log", 2, ms=432))
        contrast = invoke("compare", a, b, "--json").document["contrasts"][0]
        time = only(contrast, "step_time_s")
        assert (time["low"], time["outcome"], contrast["curves"]) == (None, "different", [])
        assert any("give the logs" in note for note in contrast["notes"])

    def test_repeats_of_a_lane_are_pooled(self, tmp_path: Path, invoke: Invoke, receipt: Any) -> None:
        runs = []
        for number, ms in enumerate((400, 404, 398, 430, 436, 428)):
            torch = "2.9.1" if number < 3 else "2.10.0"
            source = log(tmp_path / f"{number}.log", number, ms=ms)
            runs.append(receipt(f"r{number}", source, lane="8xh100", preset="small", software_torch=torch))
        document = invoke("compare", *runs, "--json").document
        assert document["baseline"]["runs"] == ["r0.json", "r1.json", "r2.json"]
        (contrast,) = document["contrasts"]
        time = only(contrast, "step_time_s")
        assert (time["runs"], time["basis"], time["outcome"]) == ([3, 3], "between_runs", "worse")
        assert [(f["pointer"], f["a"], f["b"]) for f in contrast["fields"]] == [("/header/software/torch", "2.9.1", "2.10.0")]


class TestComparable:
    def test_other_hardware_forbids_and_another_library_warns(self, tmp_path: Path, invoke: Invoke, receipt: Any) -> None:
        source = log(tmp_path / "a.log", 1)
        h100, a100 = ([{"name": name, "count": 8, "memory_bytes": None}] for name in ("H100", "A100"))
        known = {"flags_precision": "bf16", "flags_sequence_length": 2048}
        one = receipt("one", source, hardware_accelerators=h100, software_torch="2.9.1", **known)
        two = receipt("two", source, hardware_accelerators=h100, software_torch="2.10.0", **known)
        three = receipt("three", source, hardware_accelerators=a100, software_torch="2.9.1", **known)
        document = invoke("compare", one, two, three, one, "--json").document
        verdicts = [(c["verdict"], c["reasons"]) for c in document["contrasts"]]
        assert verdicts[0] == ("caveats", ["/header/software/torch differs"])
        assert verdicts[1] == ("not_comparable", ["/header/hardware/accelerators differs"])
        assert verdicts[2] == ("comparable", [])
        assert invoke("compare", one, three, "--fail").code == 1

    def test_unknown_on_one_side_is_not_equal(self, tmp_path: Path, invoke: Invoke, receipt: Any) -> None:
        source = log(tmp_path / "a.log", 1)
        one, two = receipt("one", source, flags_precision="bf16"), receipt("two", source)
        contrast = invoke("compare", one, two, "--json").document["contrasts"][0]
        assert contrast["verdict"] == "caveats"
        assert "/header/flags/precision is unknown on one side" in contrast["reasons"]

    def test_a_policy_decides_by_field(self, tmp_path: Path, invoke: Invoke, receipt: Any) -> None:
        source = log(tmp_path / "a.log", 1)
        one, two = receipt("one", source, software_torch="2.9.1"), receipt("two", source, software_torch="2.10.0")
        policy = tmp_path / "policy.yaml"
        policy.write_text('block: ["/header/software/torch"]\n')
        assert invoke("compare", one, two, "--policy", policy, "--json").document["contrasts"][0]["verdict"] == "not_comparable"
        policy.write_text('ignore: ["/header/software/*"]\n')
        reasons = invoke("compare", one, two, "--policy", policy, "--json").document["contrasts"][0]["reasons"]
        assert not any("torch" in reason for reason in reasons)

    @pytest.mark.parametrize(
        "text", ["blok: []", "block: /header", 'block: ["header"]', "unknown: maybe", "resolution: 2", "resolution: yes", "- 1"]
    )
    def test_a_broken_policy_is_told(self, text: str, tmp_path: Path, invoke: Invoke) -> None:
        a = log(tmp_path / "a.log", 1, steps=5)
        policy = tmp_path / "policy.yaml"
        policy.write_text(text)
        done = invoke("compare", a, a, "--policy", policy)
        assert done.code == 5
        assert "policy.yaml" in done.stderr

    def test_a_resolution_asks_for_more_than_the_digits(self, tmp_path: Path, invoke: Invoke) -> None:
        a, b = log(tmp_path / "a.log", 1), log(tmp_path / "b.log", 2, ms=432)
        policy = tmp_path / "policy.yaml"
        policy.write_text("resolution: 0.1\n")
        contrast = invoke("compare", a, b, "--policy", policy, "--json").document["contrasts"][0]
        assert only(contrast, "step_time_s")["outcome"] == "below_precision"


class TestCurves:
    def test_the_first_departure_is_named(self, tmp_path: Path, invoke: Invoke) -> None:
        a, b = log(tmp_path / "a.log", 1), log(tmp_path / "b.log", 2, departs=250)
        (curve,) = invoke("compare", a, b, "--json").document["contrasts"][0]["curves"]
        assert (curve["metric"], curve["axis"], curve["common"], curve["first_difference"]) == ("loss", "step", 400, 1)
        assert abs(curve["departure"] - 251) <= 5
        assert curve["low"] < 0.2 < curve["high"]

    def test_noise_alone_is_no_departure(self, tmp_path: Path, invoke: Invoke) -> None:
        a, b = log(tmp_path / "a.log", 1), log(tmp_path / "b.log", 2)
        (curve,) = invoke("compare", a, b, "--json").document["contrasts"][0]["curves"]
        assert (curve["departure"], curve["departure_delta"]) == (None, None)

    def test_tokens_lay_runs_of_other_batches_over_one_another(self, tmp_path: Path, invoke: Invoke) -> None:
        for name, batch in (("a", 8), ("b", 16)):
            path = log(tmp_path / f"{name}.log", 1, steps=100, batch=batch)
            lines = [f"  {key} {'.' * 30} {value}\n" for key, value in (("seq_length", 1024), ("global_batch_size", batch))]
            for i, line in enumerate(path.read_text().splitlines(keepends=True), 1):
                lines.append(re.sub(r"lm loss: \S+", f"lm loss: {5 - i * batch / 1000:.6E}", line))
            path.write_text("".join(lines))
        done = invoke("compare", tmp_path / "a.log", tmp_path / "b.log", "--json", "--align", "tokens")
        (curve,) = done.document["contrasts"][0]["curves"]
        assert (curve["metric"], curve["axis"], curve["last"]) == ("loss", "tokens", 100 * 8 * 1024)
        assert abs(curve["end_delta"]) < 1e-6


class TestShown:
    def test_what_a_person_reads_is_plain_and_bounded(self, tmp_path: Path, invoke: Invoke) -> None:
        a, b = log(tmp_path / "a.log", 1), log(tmp_path / "b.log", 2, ms=432, departs=200)
        first = invoke("compare", a, b).stdout.decode()
        assert len(first.splitlines()) <= 12
        for words in ("comparable, with caveats", "finished 400/400", "ms  ", "more  --full · receipt plot"):
            assert words in first
        shown = invoke("compare", a, b, "--full").stdout.decode()
        told = " ".join(shown.split())
        for words in ("comparable, with caveats", "step time", "worse", "95 % interval", "apart for good from step", "n = 1"):
            assert words in told
        assert max(map(len, shown.splitlines())) <= 80
        assert "\x1b" not in shown

    def test_markdown_escapes_what_a_log_or_name_says(self, tmp_path: Path, invoke: Invoke, receipt: Any) -> None:
        source = log(tmp_path / "a.log", 1, steps=30)
        one = receipt("one", source, software_torch="<img src=x>")
        two = receipt("two", source, software_torch="a|b`c](http://x)")
        shown = invoke("compare", one, two, "--markdown", "-").stdout.decode()
        assert "<img" not in shown
        assert "](http" not in shown
        assert r"a\|b" in shown
        assert shown.startswith("### ")


class TestOneSided:
    """Metrics that one side alone prints."""

    def test_a_renamed_loss_is_lost_and_fails_gates(self, tmp_path: Path, invoke: Invoke) -> None:
        before = log(tmp_path / "before.log", 1)
        after = tmp_path / "after.log"
        after.write_text(before.read_text().replace("grad norm:", "norm of grads:"))
        found = json.loads(invoke("compare", before, after, "--json").stdout)["contrasts"][0]
        row = only(found, "grad_norm")
        assert (row["outcome"], row["b"], row["delta"], row["ratio"], row["runs"]) == ("lost", None, None, None, [1, 0])
        assert 0.5 <= row["a"] <= 2
        assert invoke("compare", before, after, "--fail").code == 1
        back = json.loads(invoke("compare", after, before, "--json").stdout)["contrasts"][0]
        assert (only(back, "grad_norm")["outcome"], only(back, "grad_norm")["a"]) == ("gained", None)
        assert invoke("compare", after, before, "--fail").code == 0
        assert " lost" in invoke("compare", before, after).stdout.decode()
        gates = tmp_path / "gates.yaml"
        gates.write_text("metrics:\n  grad_norm:\n    change: {differs_by_at_most: 50%}\n")
        done = invoke("check", after, "--baseline", before, "--gates", gates)
        assert (done.code, "the run does not print this metric" in done.stdout.decode()) == (1, True)

    def test_markdown_of_many_runs_fits_into_a_comment(self, tmp_path: Path, invoke: Invoke) -> None:
        from receipt_cli.render.comparison.markdown import MAX_BYTES, render_markdown

        before, slow = log(tmp_path / "before.log", 1), log(tmp_path / "slow.log", 2, ms=800)
        document = json.loads(invoke("compare", before, slow, "--json").stdout)
        (bad,) = document["contrasts"]
        good = {**bad, "runs": ["calm"], "metrics": [{**m, "outcome": "equal"} for m in bad["metrics"]]}
        whole = render_markdown({**document, "contrasts": [good] * 99 + [bad]}, 10**9)
        text = render_markdown({**document, "contrasts": [good] * 99 + [bad]})
        assert len(whole.encode()) > MAX_BYTES >= len(text.encode())
        assert "slow.log" in text.splitlines()[0] and "more comparisons are left out, 0 of them" in text.splitlines()[-1]
        assert len(render_markdown({**document, "contrasts": [bad]}, 600).encode()) <= 600


@pytest.mark.parametrize(("axis", "rate"), [("samples", 512), ("time", 0.4)])
def test_curves_are_aligned_by_samples_and_time(tmp_path: Path, invoke: Invoke, axis: str, rate: float) -> None:
    a, b = log(tmp_path / "a.log", 1, departs=None), log(tmp_path / "b.log", 1, departs=200)
    found = json.loads(invoke("compare", a, b, "--json", "--align", axis).stdout)["contrasts"][0]
    (curve,) = [each for each in found["curves"] if each["metric"] == "loss"]
    assert curve["axis"] == axis
    assert curve["departure"] == pytest.approx(201 * rate, rel=0.05)
