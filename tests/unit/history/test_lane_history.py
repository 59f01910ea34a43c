"""History: planted changes are found and named, spikes and noise are not."""

from typing import Any

import numpy as np
import pytest

from benchmarks.planted import PLANTS, SPIKE, documents
from receipt_cli.comparison.comparable import DEFAULT, Policy
from receipt_cli.definitions.metrics import load_registry
from receipt_cli.history.changes import find_changes
from receipt_cli.history.lane_history import BY, describe, history, make_lanes


def noise(count: int, seed: int, level: float = 100.0, part: float = 0.01) -> np.ndarray:
    return level * (1 + part * np.random.default_rng(seed).standard_normal(count))


class TestChanges:
    @pytest.mark.parametrize("seed", range(5))
    def test_a_step_is_found_where_it_is_though_a_spike_stands_beside_it(self, seed: int) -> None:
        values = noise(75, seed)
        values[40:] *= 0.92
        values[20] *= 0.7
        found = find_changes(values)
        assert [(c.kind, c.at) for c in found.changes] == [("step", 40)]
        assert 20 in found.spikes
        assert found.changes[0].after / found.changes[0].before == pytest.approx(0.92, abs=0.01)

    @pytest.mark.parametrize("seed", range(5))
    def test_a_creep_is_one_change_and_not_many_steps(self, seed: int) -> None:
        values = noise(75, seed, 60e9, 0.003)
        values[30:] *= 1 + 0.003 * np.arange(45)
        (change,) = find_changes(values).changes
        assert change.kind == "creep"
        assert abs(change.at - 30) <= 5

    def test_two_steps_are_two(self) -> None:
        values = noise(90, 1)
        values[30:] *= 1.1
        values[60:] *= 1.1
        assert [c.at for c in find_changes(values).changes] == [30, 60]

    @pytest.mark.parametrize("seed", range(20))
    def test_noise_is_no_change(self, seed: int) -> None:
        assert find_changes(noise(75, seed)).changes == ()

    def test_less_than_asked_for_is_no_change(self) -> None:
        values = noise(60, 1, part=0.001)
        values[30:] *= 1.01
        assert find_changes(values, 0.02).changes == ()
        assert [c.at for c in find_changes(values, 0.005).changes] == [30]

    @pytest.mark.parametrize("values", [[], [1.0], [1.0] * 50, [1.0, 2.0] * 3, [0.0] * 20 + [1e-300] * 2])
    def test_what_says_nothing_gives_nothing(self, values: list[float]) -> None:
        assert find_changes(values).changes == ()

    def test_passed_runs_are_a_share(self) -> None:
        lone = [1.0] * 70 + [0.0] + [1.0] * 4
        assert find_changes(lone, 0.1, relative=False).changes == ()
        broke = [1.0] * 40 + [0.0, 1.0, 0.0, 0.0] * 8
        (change,) = find_changes(broke, 0.1, relative=False).changes
        assert (change.before, change.after) == (1.0, 0.25)
        assert abs(change.at - 40) <= 2

    def test_the_same_values_give_the_same_changes(self) -> None:
        values = noise(75, 3)
        values[50:] *= 0.9
        assert find_changes(values) == find_changes(values.tolist())


class TestHistory:
    @pytest.mark.parametrize("seed", [1, 2])
    def test_every_planted_change_is_found_and_its_field_named(self, seed: int) -> None:
        lanes = history(documents(seed), DEFAULT, load_registry())["lanes"]
        found = {
            (lane["lane"], metric["metric"], change["kind"]): [field["pointer"] for field in change["fields"]]
            for lane in lanes
            for metric in lane["metrics"]
            for change in metric["changes"]
        }
        assert found == {key: [field] for key, field in PLANTS.items()}
        spikes = [s["name"] for lane in lanes if lane["lane"] == SPIKE[0] for m in lane["metrics"] for s in m["spikes"]]
        assert f"{SPIKE[0]}-{SPIKE[1]:03d}" in spikes

    def test_without_a_change_nothing_is_said(self) -> None:
        lanes = history(documents(4, planted=False), DEFAULT, load_registry())["lanes"]
        assert [change for lane in lanes for metric in lane["metrics"] for change in metric["changes"]] == []

    def test_the_order_of_the_receipts_does_not_matter(self) -> None:
        receipts = list(documents(1))
        wanted = history(receipts, DEFAULT, load_registry())
        assert history(receipts[::-1], DEFAULT, load_registry()) == wanted

    def test_a_field_that_flips_or_is_ignored_is_no_cause(self) -> None:
        receipts = list(documents(1))
        for number, document in enumerate(receipts):
            document["header"]["software"]["python"] = f"3.{number % 2 + 11}"
        ignored = Policy((("/header/software/torch", "ignore"), *DEFAULT.rules))
        (lane,) = history(receipts, ignored, load_registry(), "8xh100-base")["lanes"]
        (change,) = [c for metric in lane["metrics"] for c in metric["changes"]]
        assert change["fields"] == []

    def test_commits_between_are_named(self) -> None:
        receipts = list(documents(1))
        (lane,), _ = make_lanes(d for d in receipts if d["run"]["lane"] == "8xh100-base")
        for number, run in enumerate(lane.runs):
            run.document["header"]["git"]["commit"] = f"{number:040x}"  # type: ignore[index]
        (found,) = history([run.document for run in lane.runs], DEFAULT, load_registry())["lanes"]
        (change,) = [c for metric in found["metrics"] for c in metric["changes"]]
        place = next(n for n, run in enumerate(lane.runs) if run.name == change["run"]["name"])
        assert change["commits"] == {"from": f"{place - 1:040x}", "to": f"{place:040x}"}

    def test_runs_without_a_time_are_counted_and_left_out(self) -> None:
        receipts = list(documents(1))[:10]
        for document in receipts[:3]:
            document["run"]["started_at"] = None
            document["header"]["collected_at"] = None
        (lane,), _ = make_lanes(receipts)
        assert (len(lane.runs), len(lane.undated)) == (7, 3)

    def test_a_fraction_of_a_second_orders_runs(self) -> None:
        receipts = list(documents(1))[:3]
        times = ["2026-01-01T00:00:01Z", "2026-01-01T00:00:01.5Z", "2026-01-01T00:00:02Z"]
        for document, time in zip(receipts, reversed(times), strict=True):
            document["run"]["started_at"] = time
        (lane,), _ = make_lanes(receipts)
        assert [run.time for run in lane.runs] == times


def unnamed(count: int, **known: Any) -> list[dict[str, Any]]:
    """Return planted receipts without a lane, of one trainer, model, hardware and number of ranks unless ``known`` differs."""
    made = [d for d in documents(1) if d["run"]["lane"] == "8xh100-base"][:count]
    for document in made:
        header = document["header"]
        document["run"] |= {"lane": None, "preset": None}
        header["parallelism"] = {**(header["parallelism"] or {}), "world_size": known.get("ranks", 8)}
        header["model"] |= {"architecture": known.get("model", "qwen3 14B")}
        header["hardware"]["accelerators"] = known.get("hardware", [{"name": "NVIDIA B200", "count": None, "memory_bytes": None}])
        document["derivation"]["grammars"][0]["id"] = known.get("trainer", "torchtitan")
        document["header"]["software"]["trainer"] = None
    return made


class TestGroups:
    def test_runs_of_one_trainer_model_hardware_and_ranks_are_a_group(self) -> None:
        other = unnamed(3, model="llama3 8B")
        lanes, alone = make_lanes([*unnamed(5), *other])
        assert [(lane.lane, lane.group, len(lane.runs)) for lane in lanes] == [
            (None, ("torchtitan", "qwen3 14B", "NVIDIA B200", "8"), 5),
            (None, ("torchtitan", "llama3 8B", "NVIDIA B200", "8"), 3),
        ]
        assert alone == []

    @pytest.mark.parametrize(
        ("field", "known"),
        [
            ("ranks", {"ranks": None}),
            ("hardware", {"hardware": None}),
            ("hardware", {"hardware": [{"name": None, "count": 8, "memory_bytes": None}]}),
            ("trainer", {"trainer": "generic"}),
        ],
    )
    def test_a_run_with_one_of_the_four_unknown_is_alone(self, field: str, known: dict[str, Any]) -> None:
        runs = unnamed(9, **known)
        lanes, alone = make_lanes(runs)
        assert (lanes, len(alone)) == ([], 9)
        found = history(runs, DEFAULT, load_registry())
        assert {tuple(run["unknown"]) for run in found["alone"]} == {(field,)}

    def test_one_run_is_no_group(self) -> None:
        lanes, alone = make_lanes([*unnamed(1), *unnamed(1, model="llama3 8B")])
        assert (lanes, len(alone)) == ([], 2)

    @pytest.mark.parametrize(("finished", "searched"), [(7, False), (8, True), (75, True)])
    def test_changes_are_sought_in_a_group_of_eight_finished_runs(self, finished: int, searched: bool) -> None:
        runs = unnamed(75)
        for number, document in enumerate(runs):
            document["checks"] |= {"completed": True if number < finished else None, "zero_exit_code": None}
            document["failure"], document["run"]["exit_code"] = None, None
        (lane,) = history(runs, DEFAULT, load_registry())["lanes"]
        assert (lane["finished_count"], lane["searched"]) == (finished, searched)
        assert any(metric["changes"] for metric in lane["metrics"]) is searched

    def test_the_outcomes_are_those_of_all_runs(self) -> None:
        found = history([*unnamed(3), *documents(2)], DEFAULT, load_registry())
        assert sum(found["outcomes"].values()) == 3 + len(list(documents(2)))

    def test_fields_are_named_or_pointers(self) -> None:
        runs = unnamed(6)
        for number, document in enumerate(runs):
            document["header"]["git"]["branch"] = "main" if number < 4 else "a/b"
        lanes, _ = make_lanes(runs, ["trainer", "/header/git/branch"])
        assert [(lane.group, len(lane.runs)) for lane in lanes] == [(("torchtitan", "main"), 4), (("torchtitan", "a/b"), 2)]
        assert [describe(runs[0], field) for field in (*BY, "/header/no/thing")] == [
            "torchtitan", "qwen3 14B", "NVIDIA B200", "8", None,
        ]  # fmt: skip
