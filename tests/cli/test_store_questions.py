"""``receipt store query``, ``stats`` and ``export``: what they answer, refuse and leave behind."""

import csv
import hashlib
import io
import json
import os
import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.receipts.production import Request, produce
from receipt_cli.store.answers import QUESTIONS, RECIPES
from receipt_cli.store.files import Store
from receipt_cli.store.views import VIEWS

from .conftest import ROOT, Invoke

duckdb = pytest.importorskip("duckdb")

LOGS = ROOT / "fixtures" / "logs"
CONSISTENT = LOGS / "nanochat" / "speedrun-2025-10.log"
OOM = LOGS / "nanochat" / "base-2026-03-oom.log"
FIGURES = ("id", "scope", "definition", "record_count", "nonfinite_count", "first", "last", "min", "max", "mean", "median")
BADPUT = ("checkpoint", "eval", "compilation", "data_loading", "initialization", "wasted_progress", "idle")


def receipt_of(log: Path) -> dict[str, Any]:
    return dict(produce(Request(path=str(log))).document)


@pytest.fixture(scope="module")
def good() -> dict[str, Any]:
    return receipt_of(CONSISTENT)


@pytest.fixture(scope="module")
def failed() -> dict[str, Any]:
    return receipt_of(OOM)


def variant(
    document: dict[str, Any], number: int, *, goodput: float | None = None, rate: float = 1, **run: Any
) -> dict[str, Any]:
    """Return the receipt of another log: its figures of the tokens per second times ``rate``."""
    made = json.loads(canonical_bytes(document))
    made["derivation"]["log"]["sha256"] = hashlib.sha256(bytes([number])).hexdigest()
    made["run"] |= run
    if goodput is not None:
        spent = {"goodput_ratio": goodput, "wall_time_s": 100.0, "step_time_s": goodput * 100}
        made["goodput"] = {**spent, "badput_s": dict.fromkeys(BADPUT), "evidence": "log_timestamps"}
    for summary in [made["summary"], *(phase["summary"] for phase in made["phases"])]:
        summary["time"] = None
        for key in ("first", "last", "min", "max", "mean", "median"):
            for statistic in (summary["metrics"].get("tokens_per_s"), summary["metrics"].get("peak_memory_allocated_bytes")):
                if statistic is not None:
                    statistic[key] *= rate
    assert isinstance(made, dict)
    return made


@pytest.fixture(scope="module")
def five(good: dict[str, Any], failed: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five runs on two days, one of a later day, one without a time."""
    made = Store(tmp_path_factory.mktemp("five") / "store")
    day = "2026-03-0{}T{}:00:00Z"
    for number, (hour, rate) in enumerate(((1, 1), (2, 2), (3, 4))):
        at = day.format(1, f"0{hour}")
        made.add(
            variant(good, number, rate=rate, goodput=0.25 * hour, preset="d20", lane="h100", name=f"r{number}", started_at=at)
        )
    made.add(variant(good, 3, rate=8, preset="d20", lane="h100", name="later", finished_at=day.format(2, "00")))
    made.add(variant(failed, 4, preset="d34", name="dead"))
    return made.root


@pytest.fixture
def store(five: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(five, tmp_path / "store"))


def rows(done: Any) -> list[dict[str, Any]]:
    assert done.code == 0, done.stderr
    return json.loads(done.stdout)


def first_value(document: dict[str, Any], metric: str, figure: str) -> float:
    return document["summary"]["metrics"][metric][figure]


def test_a_run_is_a_row(invoke: Invoke, store: Path, good: dict[str, Any]) -> None:
    asked = (
        "select name, preset, lane, run_at, run_at_source, healthy, loss_last, tokens_per_s_median, step_record_count, "
        "memory_bytes, memory_metric, goodput_ratio, failure_reason, origin from runs order by run_at nulls last"
    )
    found = rows(invoke("store", "query", store, asked, "--json"))
    assert [row["name"] for row in found] == ["r0", "r1", "r2", "later", "dead"]
    assert found[0] == {
        "name": "r0",
        "preset": "d20",
        "lane": "h100",
        "run_at": "2026-03-01T01:00:00Z",
        "run_at_source": "started_at",
        "healthy": True,
        "loss_last": first_value(good, "loss", "last"),
        "tokens_per_s_median": first_value(good, "tokens_per_s", "median"),
        "step_record_count": good["summary"]["steps"]["record_count"],
        "memory_bytes": first_value(good, "peak_memory_allocated_bytes", "max"),
        "memory_metric": "peak_memory_allocated_bytes",
        "goodput_ratio": 0.25,
        "failure_reason": None,
        "origin": None,
    }
    assert (found[3]["run_at"], found[3]["run_at_source"]) == ("2026-03-02T00:00:00Z", "finished_at")
    assert (found[4]["run_at"], found[4]["run_at_source"], found[4]["failure_reason"]) == (None, None, "cuda_oom")


def test_long_views_hold_what_the_receipt_says(invoke: Invoke, store: Path, good: dict[str, Any]) -> None:
    key = hashlib.sha256(bytes([0])).hexdigest()
    told = rows(invoke("store", "query", store, f"from metrics where log_sha256 = '{key}' and source = 'reported'", "--json"))
    want = {(n, name): statistic for n, p in enumerate(good["phases"]) for name, statistic in p["summary"]["metrics"].items()}
    assert {(row["phase_index"], row["metric"]) for row in told} == set(want)
    for row in told:
        statistic = want[row["phase_index"], row["metric"]]
        assert {name: row[name] for name in FIGURES} == {name: statistic[name] for name in FIGURES}
        assert row["window_name"] == statistic["window"]
    phases = rows(invoke("store", "query", store, f"from phases where log_sha256 = '{key}' order by phase_index", "--json"))
    assert [row["phase"] for row in phases] == [phase["name"] for phase in good["phases"]]
    assert [row["steps_last"] for row in phases] == [phase["summary"]["steps"]["last"] for phase in good["phases"]]
    checks = rows(invoke("store", "query", store, f"from checks where log_sha256 = '{key}'", "--json"))
    assert {row["check_name"]: row["passed"] for row in checks} == good["checks"]
    (failure,) = rows(invoke("store", "query", store, "from failures", "--json"))
    assert (failure["reason"], failure["category"]) == ("cuda_oom", "memory") and len(failure["log_tail"]) > 10


def test_only_the_current_receipt_counts(invoke: Invoke, store: Path, good: dict[str, Any]) -> None:
    assert Store(store).add(variant(good, 0, name="anew", preset="d20")).change == "replaced"
    names = rows(invoke("store", "query", store, "select name from runs order by name", "--json"))
    assert [row["name"] for row in names] == ["anew", "dead", "later", "r1", "r2"]
    asked = "select name, generation, is_current from history where name in ('r0', 'anew') order by generation"
    old, new = rows(invoke("store", "query", store, asked, "--json"))
    assert old == {"name": "r0", "generation": 1, "is_current": False}
    assert new == {"name": "anew", "generation": 2, "is_current": True}


def test_what_cannot_count_is_told_and_passed_over(invoke: Invoke, store: Path, good: dict[str, Any]) -> None:
    paths = [found.path for found in Store(store).receipts()]
    paths[0].write_bytes(b"{")
    newer = json.loads(paths[1].read_bytes()) | {"schema_version": "receipt/9.0"}
    paths[1].write_bytes(canonical_bytes(newer))
    paths[2].write_bytes(canonical_bytes(variant(good, 77)))
    minor = json.loads(paths[3].read_bytes()) | {"schema_version": "receipt/1.999", "a_later_field": 1}
    paths[3].write_bytes(canonical_bytes(minor))
    done = invoke("store", "query", store, "select count(*) as n from runs", "--json")
    assert rows(done) == [{"n": 2}]
    assert done.stderr.count("passed over") == 3
    assert "is not JSON" in done.stderr and "unknown schema version" in done.stderr and "belongs to another log" in done.stderr
    refused = rows(invoke("store", "query", store, "from passed_over", "--json"))
    assert len(refused) == 3 and all(row["refusal"] for row in refused)


@pytest.mark.parametrize("question", ["store ls STORE", "history STORE", "report STORE -o PAGE"])
def test_a_named_pipe_in_a_store_is_told_and_passed_over(question: str, invoke: Invoke, store: Path, tmp_path: Path) -> None:
    receipt = next(Store(store).receipts()).path.name
    for kind, name in (("receipts", receipt), ("places", f"{receipt[:64]}.{'0' * 16}.json"), ("marks", receipt)):
        pipe = store / kind / receipt[:2] / name
        pipe.parent.mkdir(parents=True, exist_ok=True)
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe)
    words = {"STORE": store, "PAGE": tmp_path / "page.html"}
    done = invoke(*(words.get(word, word) for word in question.split()))
    assert done.code == 0
    assert "not a regular file" in done.stderr


def test_answers_for_machines(invoke: Invoke, store: Path) -> None:
    asked = (
        "select 'ä,\"' as a, 1 as b, 2 as b, 'nan'::double as c, '-inf'::double as d, null as e, true as f, [1, 2] as g, "
        "{'k': 1.5} as h, 1.25::decimal(9, 2) as i, 170141183460469231731687303715884105727::hugeint as j, "
        "'2026-01-02 03:04:05+02'::timestamptz as k, date '2026-01-02' as l, interval 90 second as m, '\\xFF'::blob as n"
    )
    (row,) = rows(invoke("store", "query", store, asked, "--json"))
    assert row == {
        "a": 'ä,"', "b": 1, "b_2": 2, "c": None, "d": None, "e": None, "f": True, "g": [1, 2], "h": {"k": 1.5}, "i": 1.25,
        "j": 170141183460469231731687303715884105727, "k": "2026-01-02T01:04:05Z", "l": "2026-01-02", "m": 90.0, "n": "ff",
    }  # fmt: skip
    head, line = csv.reader(io.StringIO(invoke("store", "query", store, asked, "--csv").stdout.decode()))
    assert head == list(row)
    assert line[:8] == ['ä,"', "1", "2", "", "", "", "true", "[1,2]"]


def test_an_answer_for_people(invoke: Invoke, store: Path) -> None:
    asked = "select name, -1.5 as change, count(*) over () as n, null as nothing from runs order by name limit 2"
    assert invoke("store", "query", store, asked).stdout.decode().splitlines() == [
        "name   change  n  nothing",
        "─────────────────────────",
        "dead     -1.5  5        –",
        "later    -1.5  5        –",
    ]
    assert invoke("store", "query", store, "select name from runs where false").stdout == b""
    assert invoke("store", "query", store, asked, "--json", "--csv").code == 2
    assert invoke("store", "query", store, "--csv").stdout.startswith(b"view,column,type,meaning\nruns,log_sha256,VARCHAR,")
    views = invoke("store", "query", store).stdout.decode()
    assert "goodput_ratio" not in views and "passed_over" in views
    assert b"goodput_ratio" in invoke("store", "query", store, "runs").stdout


def test_what_failed_is_told_with_and_without_duckdb(store: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = json.loads(invoke("store", "ask", store, "failures", "--json").stdout)
    shown = invoke("store", "ask", store, "failures").stdout
    rows = [json.loads(line) for line in invoke("store", "ls", store, "--json").stdout.splitlines()]
    bad = [row for row in rows if row["outcome"] in ("failed", "stopped", "cut off")]
    assert bad and sum(group["run_count"] for group in groups) == len(bad)
    assert shown.decode().startswith(f"{len(bad)} of {len(rows)} runs: ")
    some = json.loads(invoke("store", "ask", store, "failures", "--json", "--where", "name = 'dead'").stdout)
    assert sum(group["run_count"] for group in some) == sum(row["name"] == "dead" for row in bad)
    assert invoke("store", "ask", store, "failures", "--where", "nothing = 1").code == 2
    assert invoke("store", "ask", store, "failures", "--sql").code == 2
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert invoke("store", "ask", store, "failures").stdout == shown


def test_sql_from_stdin(store: Path, process: Invoke) -> None:
    done = process("store", "query", store, "-", "--csv", input=b"select count(*) as n\nfrom runs -- all of them\n")
    assert (done.code, done.stdout, done.stderr) == (0, b"n\n5\n", "")


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ("selec 1", "syntax error"),
        ("select nope from runs", 'column "nope" not found'),
        ("", "single SELECT"),
        ("select 1; select 2", "single SELECT"),
        ("create table t as select 1", "single SELECT"),
        ("delete from stored.files", "single SELECT"),
        ("copy (select 1) to 'stolen.csv'", "single SELECT"),
        ("attach 'other.db'", "single SELECT"),
        ("set enable_external_access = true", "single SELECT"),
        ("install httpfs", "single SELECT"),
        ("select * from read_text('/etc/passwd')", "disabled"),
        ("select * from '/etc/passwd'", "does not exist"),
        ("select * from read_csv('https://example.org/x.csv')", ""),
        ("select * from glob('/*')", "disabled"),
        ("select * from os", "does not exist"),
        ("select [now()]", "TIMESTAMP"),
        ("select error('\x1b[31mred')", ""),
    ],
)
def test_what_is_no_question_is_refused(
    invoke: Invoke, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str, why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = invoke("store", "query", store, asked)
    assert (done.code, done.stdout) == (2, b""), done.stdout
    assert why in done.stderr and "\x1b" not in done.stderr and "Traceback" not in done.stderr
    assert sorted(os.listdir(tmp_path)) == ["store"]


def test_a_question_without_an_end_is_given_up(invoke: Invoke, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("receipt_cli.io.duckdb.ASK_S", 0.5)
    endless = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i > 0) SELECT max(i) FROM n"
    done = invoke("store", "query", store, endless)
    assert (done.code, "the query took more than 0.5 seconds" in done.stderr) == (2, True)


def test_a_receipt_that_contradicts_itself_is_named(invoke: Invoke, tmp_path: Path, good: dict[str, Any]) -> None:
    store = Store(tmp_path / "store")
    honest = variant(good, 1, exit_code=0)
    store.add(honest)
    assert "contradicts" not in invoke("store", "stats", store.root).stderr
    other = variant(good, 2, exit_code=1)
    other["checks"]["zero_exit_code"] = True
    other["derivation"]["options"]["exit_code"] = 0
    store.add(other)
    done = invoke("store", "stats", store.root, "checks", "--json")
    digest = other["derivation"]["log"]["sha256"][:12]
    assert f"{digest[:2]}/{digest}" in done.stderr and "not valid: /run/exit_code: is 1 though" in done.stderr


def test_no_store(invoke: Invoke, tmp_path: Path) -> None:
    for command in (("query", tmp_path / "no", "select 1"), ("stats", tmp_path / "no"), ("export", tmp_path / "no", "-o", "x")):
        assert invoke("store", *command).code == 3
    (tmp_path / "empty").mkdir()
    assert rows(invoke("store", "query", tmp_path / "empty", "from runs", "--json")) == []
    panels = rows(invoke("store", "stats", tmp_path / "empty", "--json"))
    assert [panel["run_count"] for panel in panels] == [0, 0, 0, 0]
    assert b"no run has a figure" in invoke("store", "stats", tmp_path / "empty").stdout


ASKED = [
    *(("ask", name, "--metric", "loss") for name in QUESTIONS),
    ("ask", "best", "--metric", "tokens_per_s"),
    ("ask", "latest", "--limit", "2"),
    *(("stats", "--by", period) for period in ("run", "day", "week", "month")),
    ("stats", "checks", "--last", "3"),
    ("ls",),
]


@pytest.mark.parametrize("form", [pytest.param((), marks=pytest.mark.slow), ("--json",)], ids=["text", "json"])
def test_answers_are_the_same_with_and_without_duckdb(
    form: tuple[str, ...], invoke: Invoke, store: Path, failed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of runs that were excluded, replaced or damaged."""
    kept = Store(store)
    kept.add(variant(failed, 5, name="out", lane="h100"))
    assert invoke("store", "exclude", store, "out").code == 0
    kept.add(variant(failed, 4, preset="d34", name="dead again"))
    kept.add(variant(failed, 6, name="broken"))
    [broken] = [each.path for each in kept.receipts() if each.path.name.startswith(hashlib.sha256(bytes([6])).hexdigest())]
    broken.write_bytes(b"{")
    asked = [("store", command, store, *rest, *form) for command, *rest in ASKED]
    told = [invoke(*words) for words in asked]
    assert all(each.code == 0 and each.stdout for each in told), told
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert [invoke(*words) for words in asked] == told


def test_a_condition_is_sql_and_needs_duckdb(invoke: Invoke, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    done = invoke("store", "ask", store, "latest", "--where", "true")
    assert (done.code, "pip install 'receipt-cli[store]'" in done.stderr) == (2, True)


def panel(invoke: Invoke, store: Path, *arguments: str) -> dict[str, Any]:
    return invoke("store", "stats", store, *arguments, "--json").document


def test_tokens_over_time_by_preset(invoke: Invoke, store: Path, good: dict[str, Any]) -> None:
    unit = first_value(good, "tokens_per_s", "median")
    found = panel(invoke, store, "tokens")
    assert {key: found[key] for key in found if key != "rows"} == {
        "question": "tokens", "by": "day", "run_count": 5, "without_figure": 1, "without_time": 0,
    }  # fmt: skip
    one, two = found["rows"]
    group = {"preset": "d20", "source": "reported", "inconsistent_count": 0}
    assert one == {**group, "period": "2026-03-01T00:00:00Z", "run_count": 3, "median": 2 * unit, "min": unit, "max": 4 * unit}
    assert two == {
        **group, "period": "2026-03-02T00:00:00Z", "run_count": 1, "median": 8 * unit, "min": 8 * unit, "max": 8 * unit,
    }  # fmt: skip
    (month,) = panel(invoke, store, "tokens", "--by", "month")["rows"]
    assert (month["period"], month["run_count"], month["median"]) == ("2026-03-01T00:00:00Z", 4, 3 * unit)
    single = panel(invoke, store, "tokens", "--by", "run")["rows"]
    assert [row["name"] for row in single] == ["r0", "r1", "r2", "later"]


def test_goodput_over_time_by_lane(invoke: Invoke, store: Path, good: dict[str, Any]) -> None:
    Store(store).add(variant(good, 20, goodput=1.0, lane="b200"))
    found = panel(invoke, store, "goodput")
    assert (found["without_figure"], found["without_time"]) == (2, 1)
    undated, dated = found["rows"]
    assert undated == {"lane": "b200", "period": None, "run_count": 1, "median": 1, "min": 1, "max": 1, "overall": 1}
    assert (dated["lane"], dated["run_count"], dated["median"], dated["overall"]) == ("h100", 3, 0.5, 0.5)


def test_memory_over_time_by_preset_and_metric(invoke: Invoke, store: Path, good: dict[str, Any]) -> None:
    peak = first_value(good, "peak_memory_allocated_bytes", "max")
    found = panel(invoke, store, "memory", "--by", "week")
    one, two = found["rows"]
    group = {"preset": "d20", "metric": "peak_memory_allocated_bytes"}
    assert one == {**group, "period": "2026-02-23T00:00:00Z", "run_count": 3, "median": 2 * peak, "min": peak, "max": 4 * peak}
    assert (two["period"], two["run_count"], two["median"]) == ("2026-03-02T00:00:00Z", 1, 8 * peak)
    assert found["without_figure"] == 1
    assert " GiB" in invoke("store", "stats", store, "memory", "--by", "week").stdout.decode()


def test_checks_of_the_last_runs(invoke: Invoke, store: Path, good: dict[str, Any], failed: dict[str, Any]) -> None:
    found = panel(invoke, store, "checks")
    assert (found["run_count"], found["without_time"], "by" in found) == (5, 1, False)
    told = {row["check"]: row for row in found["rows"]}
    assert list(told)[:6] == ["healthy", "proven", "finite_losses", "zero_exit_code", "has_steps", "no_oom"]
    assert set(told) == {"healthy", "proven", *good["checks"]}
    assert told["healthy"] == {"check": "healthy", "passed": 4, "failed": 1, "unknown": 0, "pass_ratio": 0.8}
    for name, row in told.items():
        if name in good["checks"]:
            values = [good["checks"][name]] * 4 + [failed["checks"][name]]
            assert (row["passed"], row["failed"], row["unknown"]) == (values.count(True), values.count(False), values.count(None))
            known = len(values) - values.count(None)
            assert row["pass_ratio"] == (values.count(True) / known if known else None)
    newest = panel(invoke, store, "checks", "--last", "4")  # the run without a time is the last in order
    assert (newest["run_count"], newest["without_time"], newest["rows"][0]["pass_ratio"]) == (4, 0, 1)


def test_all_questions_for_people(invoke: Invoke, store: Path) -> None:
    shown = invoke("store", "stats", store).stdout.decode()
    titles = [line.split("  ")[0] for line in shown.splitlines() if line and not line.startswith(" ")]
    assert titles == [
        "Tokens per second over time, by preset",
        "Goodput over time, by lane",
        "Memory over time, by preset",
        "Checks",
    ]
    assert "2026-03-01" in shown and "50.0 %" in shown and "the last 5 runs" in shown
    assert [p["question"] for p in rows(invoke("store", "stats", store, "--json"))] == ["tokens", "goodput", "memory", "checks"]


def indices(store: Path) -> list[Path]:
    return sorted((store / ".cache").glob("index-*.parquet"))


def test_the_index_may_be_deleted_damaged_or_old(invoke: Invoke, store: Path, good: dict[str, Any]) -> None:
    asked = ("store", "query", store, "select name, loss_last from runs order by all", "--json")
    want = rows(invoke(*asked))
    (index,) = indices(store)
    assert rows(invoke(*asked)) == want and indices(store) == [index]  # nothing new: the same file
    sound = index.read_bytes()
    for damaged in (b"", b"PAR1", sound[:-9], sound[:1000] + b"\0" + sound[1001:]):
        index.write_bytes(damaged)
        assert rows(invoke(*asked)) == want
        named = index.with_name(f"index-{hashlib.sha256(damaged).hexdigest()}.parquet")  # and one whose name agrees
        named.write_bytes(damaged)
        for other in indices(store):
            if other != named:
                other.unlink()
        if damaged[:1000] != sound[:1000]:
            assert rows(invoke(*asked)) == want
    for path in (store / ".cache").iterdir():
        path.unlink() if path.is_file() else None
    assert rows(invoke(*asked)) == want
    gone = next(Store(store).receipts()).path
    gone.unlink()
    Store(store).add(variant(good, 50, name="new"))
    names = [row["name"] for row in rows(invoke(*asked))]
    assert "new" in names and len(names) == 5 and len(indices(store)) == 1


def test_a_changed_file_is_read_again(invoke: Invoke, store: Path) -> None:
    asked = ("store", "query", store, "select name from runs order by name", "--json")
    before = rows(invoke(*asked))
    path = next(found.path for found in Store(store).receipts() if b'"later"' in found.path.read_bytes())
    stat = path.stat()
    path.write_bytes(path.read_bytes().replace(b'"later"', b'"LATER"'))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # same size, same time of change in content
    assert {row["name"] for row in rows(invoke(*asked))} == {row["name"] for row in before} - {"later"} | {"LATER"}


def test_a_store_that_cannot_be_written_answers(invoke: Invoke, store: Path) -> None:
    (store / ".cache").rename(store / "was")
    (store / ".cache").write_bytes(b"in the way")
    assert len(rows(invoke("store", "query", store, "from runs", "--json"))) == 5


def test_several_ask_at_once(store: Path, process: Invoke) -> None:
    answers: list[bytes] = []
    ask = ("store", "query", store, "select count(*) as n from runs", "--csv")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: answers.append(process(*ask).stdout), range(4)))
    assert answers == [b"n\n5\n"] * 4
    assert not list((store / ".cache").glob("*.tmp"))


def test_a_folder_of_any_name_keeps_an_index(invoke: Invoke, store: Path) -> None:
    odd = store.rename(store.with_name("it's [1]* {x}=y?"))
    for _ in range(2):
        assert rows(invoke("store", "query", odd, "select count(*) as n from runs", "--json")) == [{"n": 5}]
        (index,) = indices(odd)
    assert invoke("store", "query", odd, "select 1").stdout and indices(odd) == [index]


def test_many_receipts_are_read_by_several_processes(invoke: Invoke, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("store", "query", store, "from history order by all", "--json")
    want = rows(invoke(*asked))
    indices(store)[0].unlink()
    monkeypatch.setattr("receipt_cli.store.index.MANY", 0)
    monkeypatch.setattr("receipt_cli.store.index._CHUNK", 2)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert rows(invoke(*asked)) == want and len(indices(store)) == 1


def test_views_as_parquet(invoke: Invoke, store: Path, tmp_path: Path) -> None:
    out = tmp_path / "it's [x] *"
    done = invoke("store", "export", store, "-o", out, "--json")
    written = {Path(row["path"]).name: row["row_count"] for row in rows(done)}
    assert set(written) == {f"{view.name}.parquet" for view in VIEWS} == set(os.listdir(out))
    assert (written["runs.parquet"], written["failures.parquet"]) == (5, 1)
    first = {name: (out / name).read_bytes() for name in written}
    assert invoke("store", "export", store, "-o", out).code == 0
    assert {name: (out / name).read_bytes() for name in written} == first
    copied = tmp_path / "runs.parquet"
    copied.write_bytes(first["runs.parquet"])
    connection = duckdb.connect()
    described = connection.execute(f"describe from '{copied}'").fetchall()
    assert [(name, kind) for name, kind, *_ in described] == [(c.name, c.type) for c in VIEWS[0].columns]
    kinds = connection.execute(f"select distinct compression from parquet_metadata('{copied}')").fetchall()
    assert kinds == [("ZSTD",)]
    assert invoke("store", "export", store, "-o", tmp_path / "m.parquet", "--view", "metrics").code == 0
    assert connection.execute(f"select count(*) from '{tmp_path}/m.parquet'").fetchone() == (written["metrics.parquet"],)
    assert invoke("store", "export", store, "-o", tmp_path / "m.parquet", "--view", "nope").code == 2
    assert invoke("store", "export", store, "-o", copied / "below").code == 6
    assert [name for name in os.listdir(tmp_path) if name.startswith(".")] == []


def test_the_documented_questions_are_answered(invoke: Invoke, store: Path) -> None:
    text = (ROOT / "docs" / "store.md").read_text("utf-8")
    asked = [part for block in re.findall(r"```sql\n(.*?)```", text, re.DOTALL) for part in block.split(";") if part.strip()]
    assert len(asked) == 4 + len(RECIPES)
    answers = [rows(invoke("store", "query", store, "--json", "--", question)) for question in asked]
    assert all(answers[:4]) and any(answers[4:])


def test_the_documented_columns_are_the_views() -> None:
    text = (ROOT / "docs" / "store.md").read_text("utf-8")
    sections = dict(part.split("`\n", 1) for part in text.split("\n### `")[1:])
    assert list(sections) == [view.name for view in VIEWS]
    for view in VIEWS:
        told = re.findall(r"^\| `(\w+)` \| (\S+) \| (.+) \|$", sections[view.name], re.MULTILINE)
        want = [(c.name, c.type, c.meaning) for c in view.columns]
        assert told == (want[-1:] if view.name == "history" else want), view.name


def test_series_beside_a_receipt(invoke: Invoke, tmp_path: Path) -> None:
    done = invoke("parse", CONSISTENT, "--json", "--series", tmp_path / "s.parquet")
    steps = done.document["phases"][0]["summary"]["steps"]["record_count"]
    asked = f"select count(*) from '{tmp_path}/s.parquet' where event = 'step' and phase_index = 0"
    assert duckdb.connect().execute(asked).fetchone() == (steps,)
    assert done.stdout == invoke("parse", CONSISTENT, "--json").stdout
    assert invoke("parse", CONSISTENT, "--series", tmp_path / "all", "--all-runs").code == 0
    assert os.listdir(tmp_path / "all") == ["run-1.parquet"]
    assert invoke("parse", CONSISTENT, "--series", tmp_path / "no" / "s.parquet").code == 6
    assert invoke("parse", CONSISTENT, "--series", tmp_path).code == 6
    (tmp_path / "x.log").write_text("nothing to see\n")
    assert invoke("parse", tmp_path / "x.log", "--series", tmp_path / "x.parquet").code == 4
    assert sorted(os.listdir(tmp_path)) == ["all", "s.parquet", "x.log", "x.parquet"]
