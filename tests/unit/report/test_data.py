"""What a report holds: rows, details, curves, signs of drift, within a bound of bytes; and the page around it."""

import copy
import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from benchmarks.report_store import MARKUP, varied
from receipt_cli.analysis.checks import outcome
from receipt_cli.comparison.comparable import DEFAULT
from receipt_cli.definitions.metrics import load_registry
from receipt_cli.render.store import OUTCOMES, tally
from receipt_cli.report.curves import thin
from receipt_cli.report.data import one_run_report, render_page, store_report
from receipt_cli.report.drift import alarms, signs, vanished
from receipt_cli.report.packing import Pool, number
from receipt_cli.report.row import CHECKS


@pytest.fixture(scope="module")
def documents() -> list[dict[str, Any]]:
    return list(varied(1, runs=12))


def report_of(documents: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return store_report(documents, DEFAULT, load_registry(), title="Runs", **more)


def test_runs_are_in_order_of_time_whatever_the_order_of_the_receipts(
    documents: list[dict[str, Any]],
) -> None:
    report = report_of(documents)
    assert report["runs"]["at"] == sorted(report["runs"]["at"])
    assert render_page(report) == render_page(report_of(documents[::-1]))


def test_a_run_without_a_time_stands_first_and_is_in_no_lane(documents: list[dict[str, Any]]) -> None:
    undated = copy.deepcopy(documents[5])
    undated["run"]["started_at"] = undated["run"]["finished_at"] = undated["header"]["collected_at"] = None
    report = report_of([*documents[:5], undated, *documents[6:]])
    assert report["runs"]["at"][0] is None
    assert all(0 not in lane["runs"] for lane in report["lanes"])
    assert sum(lane["undated"] for lane in report["lanes"]) == 1


def test_the_row_of_a_run_says_what_its_receipt_says(documents: list[dict[str, Any]]) -> None:
    report = report_of(documents[:1])
    row = {name: values[0] for name, values in report["runs"].items()}
    metrics = documents[0]["summary"]["metrics"]
    assert report["texts"][row["name"]] == documents[0]["run"]["name"]
    assert row["tokens"] == pytest.approx(metrics["tokens_per_s"]["median"], rel=1e-5)
    assert (row["recomputed"], row["memory"]) == (0, metrics["peak_memory_bytes"]["max"])
    assert row["checks"] == "".join({True: "1", False: "0", None: "-"}[documents[0]["checks"][name]] for name in CHECKS)


def test_throughput_that_is_not_printed_is_the_recomputed_one(documents: list[dict[str, Any]]) -> None:
    document = copy.deepcopy(documents[0])
    printed = document["summary"]["metrics"].pop("tokens_per_s")
    document["summary"]["derived"]["tokens_per_s"] = {**printed, "inputs": {"tokens_per_step": 1}}
    row = report_of([document])["runs"]
    assert (row["tokens"], row["recomputed"]) == ([number(printed["median"])], [1])


def test_what_does_not_fit_is_left_out_the_oldest_first_and_said(documents: list[dict[str, Any]]) -> None:
    whole = report_of(documents)
    size = len(render_page(whole))
    short = report_of(documents, most=70_000)
    kept = [detail is not None for detail in short["details"]]
    assert whole["left_out"] == [0, 0]
    assert 0 < sum(kept) < len(kept) and kept == sorted(kept)
    assert short["left_out"] == [kept.count(False), 0]
    assert len(json.dumps(short, ensure_ascii=False, separators=(",", ":")).encode()) <= 70_000
    assert short["runs"] == {**whole["runs"]} and len(render_page(short)) < size


class Drawn:
    """Curves of every run, large enough to be left out."""

    def curves(self, document: Any) -> list[list[Any]]:
        return [[0, "loss", 500, list(range(1000)), [], 0]]


def test_curves_are_left_out_before_pages_are(documents: list[dict[str, Any]]) -> None:
    whole = report_of(documents)
    bound = len(json.dumps(whole, ensure_ascii=False).encode()) + 20_000
    report = report_of(documents, series=Drawn(), most=bound)
    drawn = ["curves" in detail for detail in report["details"]]
    assert 0 < sum(drawn) < len(drawn) and drawn == sorted(drawn)
    assert report["left_out"] == [0, drawn.count(False)]


def test_ends_of_failed_logs_are_cut_before_curves_are(documents: list[dict[str, Any]]) -> None:
    def tails(report: dict[str, Any]) -> set[int]:
        return {len(detail["failure"]["tail"]) for detail in report["details"] if "failure" in detail}

    whole = report_of(documents)
    assert tails(whole) == {21}
    bound = len(json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()) - 1000
    short = report_of(documents, most=bound)
    assert (tails(short), short["left_out"]) == ({12}, [0, 0])


def test_the_page_holds_hostile_texts_as_data_alone() -> None:
    page = render_page(report_of(list(varied(1, runs=3, hostile=True)))).decode()
    data = page.partition('id="data">')[2].partition("</script>")[0]
    assert "<" not in data and ">" not in data and "\u2028" not in data
    assert MARKUP in json.loads(data)["texts"]
    assert page.count("<script") == 2 and page.count("</script>") == 2


def test_the_policy_names_the_digests_of_what_the_page_runs(documents: list[dict[str, Any]]) -> None:
    import base64
    import hashlib

    page = render_page(report_of(documents[:1])).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None and policy[1].startswith("default-src 'none'; ")
    assert "unsafe" not in policy[1] and "connect-src" not in policy[1]
    for element in ("script", "style"):
        body = page.partition(f"<{element}>")[2].partition(f"</{element}>")[0]
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in policy[1]
    assert not re.search(r"(?:src|href)=\"(?!data:,|#)", page)


def test_thinned_curves_keep_ends_and_extremes() -> None:
    values = [math.sin(n / 50) for n in range(10_000)]
    values[7777], values[3333] = 9.0, -9.0
    records, points, *bad = thin(range(10_000), values, 200) or [0, [], [], 0]
    assert (records, bad) == (10_000, [[], 0])
    assert len(points) <= 400
    assert (points[0], points[-2]) == (0, 9999)
    assert max(points[1::2]) == 9 and min(points[1::2]) == -9
    assert points[::2] == sorted(points[::2])


def test_values_that_are_not_finite_are_told_apart() -> None:
    assert thin([1, 2, 3, 4], [1.0, math.nan, math.inf, 0.5], 100) == [4, [1, 1, 4, 0.5], [2, 3], 2]
    assert thin([1], [1.0], 100) is None


def test_signs_of_drift_are_counted_by_what_they_are_about(documents: list[dict[str, Any]]) -> None:
    found = [list(signs(document)) for document in varied(1, runs=40)]
    pool = Pool()
    made = {(a["kind"], pool.texts[a["about"]]): a for a in alarms(found, pool)}
    near = made["near_miss", "lines that nearly match nanochat@v1 step"]
    assert len(near["runs"]) >= 2 and near["count"] == 3 * len(near["runs"])
    told = made["inconsistent", "tokens_per_s printed by nanochat@v1"]
    assert "batch size and step time give" in pool.texts[told["example"]]


@pytest.mark.parametrize(("absent", "want"), [(range(8, 12), [8, 9, 10, 11]), (range(10, 12), []), ([5], []), (range(2, 12), [])])
def test_a_metric_that_a_lane_prints_no_more_is_a_sign(absent: Sequence[int], want: list[int]) -> None:
    lane = list(varied(1, runs=12))[:12]
    for place in absent:
        del lane[place]["summary"]["metrics"]["mfu_ratio"]
    found = vanished(lane)
    assert [place for place, gone in enumerate(found) if gone] == want
    told = {(sign.about, sign.example) for gone in found for sign in gone}
    assert told == ({("mfu_ratio is no longer printed in 8xh100-base · base", "last in 8xh100-base-007")} if want else set())


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"grammars": []}, "unrecognised"),
        ({"grammars": [{"id": "generic", "version": 1, "sha256": "0", "chosen_by": "default"}]}, "generic"),
        ({"lines": {"matched": 10, "ignored": 0, "unmatched": 90, "undecodable": 0}}, "unread"),
    ],
)
def test_each_sign_is_seen(documents: list[dict[str, Any]], change: dict[str, Any], kind: str) -> None:
    document = copy.deepcopy(documents[0])
    document["derivation"] |= change
    assert kind in [sign.kind for sign in signs(document)]
    assert kind not in [sign.kind for sign in signs(documents[0])]


def test_a_row_has_what_the_columns_overlay_and_cost_show(documents: list[dict[str, Any]]) -> None:
    shown = copy.deepcopy(documents[:2])
    first, second = shown
    first["run"]["log_paths"] = ["gpt/a/run7.log", "copy/run7.log"]
    first["header"]["model"]["architecture"] = "gpt2"
    first["header"]["flags"] = {"global_batch_size": 8, "sequence_length": 1024}
    first["cost"] = {"device_hours": 16.0, "amount": 40.5, "currency": "USD"}
    second["header"]["flags"] = {"tokens_per_step": 500}
    second["header"]["model"]["architecture"] = None
    report = report_of(shown)
    runs, texts = report["runs"], report["texts"]
    place = {texts[path] if path is not None and path >= 0 else None: row for row, path in enumerate(runs["path"])}
    row, other = place["gpt/a/run7.log"], place[None]
    assert (texts[runs["model"][row]], runs["step_tokens"][row]) == ("gpt2", 8192)
    assert (runs["device_hours"][row], runs["cost"][row], texts[runs["currency"][row]]) == (16, 40.5, "USD")
    assert (runs["step_tokens"][other], runs["cost"][other]) == (500, None)
    assert texts[runs["model"][other]] == (second["header"]["software"]["trainer"] or second["derivation"]["grammars"][0]["id"])


def test_a_page_of_one_run_is_called_by_its_file_and_begins_with_its_card(documents: list[dict[str, Any]]) -> None:
    document = copy.deepcopy(documents[0])
    assert one_run_report(document, load_registry(), [], [], "logs/a.log")["title"] == document["run"]["name"]
    document["run"]["name"] = None
    report = one_run_report(document, load_registry(), [], [], "logs/<a>.log")
    assert report["title"] == "<a>.log"
    assert report["plain"].startswith(("✓ finished", "✗ failed", "? unknown"))
    page = render_page(report).decode()
    assert "<title>&lt;a&gt;.log · receipt</title>" in page
    assert f'<pre class="card">{report["plain"].splitlines()[0]}' in page


def test_a_report_counts_the_runs_as_other_commands_do(documents: list[dict[str, Any]]) -> None:
    report = report_of(documents)
    words = Counter(outcome(document) for document in documents)
    first, *lines = report["plain"].splitlines()
    assert first == tally([{"outcome": outcome(document)} for document in documents])
    assert [report["runs"]["state"].count(number) for number in range(len(OUTCOMES))] == [words[word] for word in OUTCOMES]
    assert lines[0].split()[:4] == ["run", "when", "outcome", "steps"]
    assert "--limit" not in report["plain"] and "--full" not in report["plain"]
