"""Documents besides receipts are equals of them: listed, shown, queried, compared, in history and report, linked to a run.

Ablations are recorded by ``receipt_cli.emit``, GPU profiles imported from sessions in the form of GPU Flight (checked in
``test_flight.py``), evaluations from ``fixtures/foreign/scores``.
"""

# ruff: noqa: E501 (tables of cases)

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.emit import AblationReceipt
from receipt_cli.store.documents import KINDS
from tests.cli.conftest import Invoke
from tests.cli.test_flight import KERNELS, MS, batch, shutdown, start, write

ROOT = Path(__file__).resolve().parents[2]
SCORES = ROOT / "fixtures" / "foreign" / "scores"
EXAMPLES = ROOT / "fixtures" / "receipts"


def ablation(path: Path, *, sink: bool = True, layers: int = 2, losses: tuple[float, ...] = (3.0, 2.5, 2.0), **run: Any) -> Path:
    """Write an ablation of attention sinks with one loss and one mass of each layer a step."""
    receipt = AblationReceipt(
        kind="attention_sink",
        variant="baseline" if sink else "no_sink",
        baseline=None if sink else "baseline",
        changes={} if sink else {"sink_bias": False},
        architecture="gpt",
        config={"n_layer": layers},
        run={"started_at": "2026-05-01T10:00:00Z", **run},
    )
    for step, loss in enumerate(losses):
        receipt.record(100 * step, {"loss": loss}, {"sink_mass": [0.25 if sink else 0.25 - step / 100] * layers})
    receipt.write(path)
    return path


def profile(
    invoke: Invoke,
    path: Path,
    kernels: dict[str, list[int]],
    *,
    stalls: dict[str, int] | None = None,
    device: str = "NVIDIA Test GPU",
    cut: bool = False,
    options: tuple[str, ...] = (),
) -> Path:
    """Write the profile of a session of a second, in which kernels ran for milliseconds one after another."""
    names = {str(number): name for number, name in enumerate(kernels, 1)}
    spans, at = [], 0
    for number, lengths in enumerate(kernels.values(), 1):
        for length in lengths:
            spans.append([at * MS, number, 0, length * MS])
            at += length
    listed = [{"id": 0, "name": device, "vendor": "NVIDIA"}]
    records: list[Any] = [
        start(gpu_static_devices=listed),
        {"version": 1, "type": "dictionary_update", "session_id": "s", "kernel_dict": names},
    ]
    records.append(batch("kernel_event_batch", KERNELS, spans))
    if stalls:
        rows = [[0, count, number, reason] for number, (reason, count) in enumerate(stalls.items(), 5)]
        records.append(batch("profile_sample_batch", ["dt_ns", "metric_value", "stall_reason", "reason_name"], rows))
    session = write(path.with_suffix(".log"), *records, *([] if cut else [shutdown(1000)]))
    done = invoke("import", session, "-o", path, *options)
    assert done.code == 0, done.stderr
    return path


# ------------------------------------------------------------------------------- comparing


@pytest.fixture
def compared(invoke: Invoke) -> Callable[..., dict[str, Any]]:
    def call(a: Path, b: Path) -> dict[str, Any]:
        done = invoke("compare", a, b, "--json")
        assert done.code == 0, done.stderr
        return done.document["comparisons"][0]

    return call


def test_two_ablations(compared, invoke: Invoke, tmp_path: Path) -> None:
    a = ablation(tmp_path / "a.json")
    b = ablation(tmp_path / "b.json", sink=False, losses=(3.0, 2.6, 2.25, 2.0))
    found = compared(a, b)
    assert found["verdict"] == "caveats" and found["reasons"] == ["only 3 of 3 and 4 steps are in both"]
    assert found["changes"] == [{}, {"sink_bias": False}]
    loss, mass = found["curves"]
    assert (loss["cell_count"], loss["differing_count"]) == (3, 2)
    assert loss["greatest"] == {"step": 200, "a": 2.0, "b": 2.25}
    assert (mass["cell_count"], mass["differing_count"]) == (6, 4)
    assert {key: mass["greatest"][key] for key in ("step", "layer", "a")} == {"step": 200, "layer": 0, "a": 0.25}
    assert {part["name"]: part["difference"] for part in loss["window"]}["last"] == 0.0
    shown = invoke("compare", a, b).stdout.decode()
    assert re.search(r"sink_bias\s+–\s+False", shown) and re.search(r"loss\s+model\s+3\s+2\s+2.000 → 2.250 at step 200", shown)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"layers": 3}, "the number of layers differs: 2 and 3"),
        ({"kind": "activation_outlier"}, "the study differs: attention_sink and activation_outlier"),
        ({"steps": [7, 8, 9]}, "there is no common step"),
    ],
)
def test_other_axes_make_no_comparison(compared, invoke: Invoke, tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    a, b = ablation(tmp_path / "a.json"), ablation(tmp_path / "b.json", layers=change.get("layers", 2))
    document = json.loads(b.read_text("utf-8"))
    document["ablation"]["kind"] = change.get("kind", "attention_sink")
    document["steps"] = change.get("steps", document["steps"])
    b.write_text(json.dumps(document), "utf-8")
    found = compared(a, b)
    assert (found["verdict"], reason in found["reasons"], found["curves"]) == ("not_comparable", True, [])
    assert invoke("compare", a, b, "--fail").code == 1


def test_two_profiles_are_matched_by_the_names_of_kernels(compared, invoke: Invoke, tmp_path: Path) -> None:
    a = profile(
        invoke, tmp_path / "a.json", {"gemm": [40] * 10, "softmax": [10] * 5, "copy": [5]}, stalls={"wait": 30, "barrier": 10}
    )
    b = profile(
        invoke, tmp_path / "b.json", {"gemm": [50] * 10, "copy": [5], "flash": [20] * 3}, stalls={"wait": 10, "barrier": 30}
    )
    found = compared(a, b)
    assert found["verdict"] == "comparable"
    assert [(k["kernel"], k["state"], round(k["difference"], 6)) for k in found["kernels"]] == [
        ("gemm", "both", 0.1), ("flash", "appeared", 0.06), ("softmax", "vanished", -0.05), ("copy", "both", 0.0),
    ]  # fmt: skip
    gemm = found["kernels"][0]
    assert (gemm["ratio"], gemm["a_mean_s"], gemm["b_mean_s"]) == (pytest.approx(1.25), 0.04, 0.05)
    figures = {part["name"]: (part["a"], part["b"]) for part in found["figures"]}
    assert figures["busy_s"] == (pytest.approx(0.455), pytest.approx(0.565))
    assert figures["launch_count"] == (16, 14)
    assert [(s["reason"], s["difference"]) for s in found["stalls"]] == [("wait", -0.5), ("barrier", 0.5)]
    shown = invoke("compare", a, b).stdout.decode()
    assert re.search(r"gemm\s+400 ms\s+500 ms\s+\+25.0 %\s+\+100 ms", shown) and "1 kernel as before" in shown
    assert re.search(r"wait\s+75.0 %\s+25.0 %\s+−50.0 points", shown)


def test_a_cut_recording_does_not_say_that_a_kernel_vanished(compared, invoke: Invoke, tmp_path: Path) -> None:
    a = profile(invoke, tmp_path / "a.json", {"gemm": [40], "softmax": [10]})
    b = profile(invoke, tmp_path / "b.json", {"gemm": [40]}, cut=True)
    found = compared(a, b)
    assert found["reasons"] == ["the second recording lacks an end of its session"]
    assert {k["kernel"]: (k["state"], k["difference"]) for k in found["kernels"]}["softmax"] == ("not_listed", None)


def test_profiles_of_other_devices_are_not_compared(compared, invoke: Invoke, tmp_path: Path) -> None:
    a = profile(invoke, tmp_path / "a.json", {"gemm": [40]})
    b = profile(invoke, tmp_path / "b.json", {"gemm": [20]}, device="NVIDIA Other GPU")
    found = compared(a, b)
    assert (found["verdict"], found["kernels"]) == ("not_comparable", [])


@pytest.fixture
def evaluated(invoke: Invoke, tmp_path: Path) -> Callable[..., Path]:
    def call(name: str, change: Callable[[dict[str, Any]], None] = lambda results: None, *options: str) -> Path:
        results = json.loads((SCORES / f"lm-eval-{name}.json").read_text("utf-8"))
        change(results)
        (tmp_path / f"{name}.raw.json").write_text(json.dumps(results), "utf-8")
        assert invoke("import", tmp_path / f"{name}.raw.json", "-o", tmp_path / f"{name}.json", *options).code == 0
        return tmp_path / f"{name}.json"

    return call


def outcomes(found: dict[str, Any]) -> dict[str, str]:
    return {f"{s['task']} {s['metric']} {s['filter'] or ''}".strip(): s["outcome"] for s in found["scores"]}


def test_two_evaluations_within_their_combined_error(compared, evaluated) -> None:
    found = compared(evaluated("before"), evaluated("after"))
    assert outcomes(found) == {
        "hellaswag acc": "better", "hellaswag acc_norm": "noise", "gsm8k exact_match strict-match": "noise",
        "gsm8k exact_match flexible-extract": "noise", "wikitext word_perplexity": "not_judged", "mmlu acc": "equal",
    }  # fmt: skip
    first = found["scores"][0]
    assert (first["a"], first["b"], first["combined_stderr"]) == (0.3021, 0.324, pytest.approx(0.0049 * 2**0.5))
    assert (first["a_step"], first["b_step"]) == (500, 1000)
    assert [(one["task"], one["side"]) for one in found["unmatched"]] == [("arc_easy", "b")]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda r: r["n-shot"].update(gsm8k=8), "shots of the other: 5"),
        (lambda r: r["versions"].update(gsm8k=4), "versions of the task: 3.0 and 4"),
    ],
    ids=["shots", "version"],
)
def test_scores_of_other_settings_are_not_compared(
    compared, evaluated, change: Callable[[dict[str, Any]], None], said: str
) -> None:
    found = compared(evaluated("before"), evaluated("after", change))
    assert not any(name.startswith("gsm8k") for name in outcomes(found))
    assert said in {one["why"] for one in found["unmatched"] if one["task"] == "gsm8k"}


def test_the_direction_is_what_the_results_say(compared, evaluated, invoke: Invoke) -> None:
    def error(results: dict[str, Any]) -> None:
        results["results"]["wikitext"]["word_perplexity_stderr,none"] = 0.1
        results["results"]["hellaswag"]["acc,none"] = 0.2

    a, b = evaluated("before", error), evaluated("after", error)
    assert outcomes(compared(a, b))["wikitext word_perplexity"] == "better", "a lower perplexity"
    assert invoke("compare", a, b, "--fail").code == 0
    assert outcomes(compared(b, a))["wikitext word_perplexity"] == "worse"
    assert invoke("compare", b, a, "--fail").code == 1


def test_other_samples_are_a_caveat(compared, evaluated) -> None:
    found = compared(evaluated("before", lambda r: r["n-samples"]["gsm8k"].update(effective=100)), evaluated("after"))
    assert (found["verdict"], found["reasons"]) == ("caveats", ["2 of 6 scores are of another number of samples"])


def test_evaluations_without_a_common_score(compared, evaluated, invoke: Invoke, tmp_path: Path) -> None:
    invoke("import", SCORES / "mteb.json", "-o", tmp_path / "mteb.json")
    found = compared(evaluated("before"), tmp_path / "mteb.json")
    assert (found["verdict"], found["scores"]) == ("not_comparable", [])


def test_recorded_figures_of_two_evaluations(compared) -> None:
    tracked = EXAMPLES / "evaluation-1.0" / "valid" / "full.json"
    found = compared(tracked, EXAMPLES / "evaluation-2.0" / "valid" / "tracked.json")
    assert {part["difference"] for part in found["figures"]} == {0} and len(found["figures"]) > 3


def test_two_documents_of_golden_curves(compared, tmp_path: Path) -> None:
    a = EXAMPLES / "golden-1.0" / "valid" / "exact.json"
    document = json.loads(a.read_text("utf-8"))
    curve = next(curve for curve in document["references"][0]["curves"] if curve["metric"] == "loss")
    curve["values"][1] = "9.5"
    (tmp_path / "b.json").write_text(json.dumps(document), "utf-8")
    found = compared(a, tmp_path / "b.json")
    loss = next(one for one in found["curves"] if one["metric"] == "loss")
    assert (loss["differing_count"], loss["first"]["step"], loss["first"]["b"]) == (1, curve["steps"][1], "9.5")


def test_documents_of_different_kinds_are_refused(invoke: Invoke, tmp_path: Path, evaluated) -> None:
    a = ablation(tmp_path / "a.json")
    done = invoke("compare", a, evaluated("before"))
    assert done.code == 2
    assert "documents of different kinds cannot be compared" in done.stderr
    assert "is an ablation, " in done.stderr and "is an evaluation" in done.stderr and "try: receipt show" in done.stderr
    mixed = invoke("compare", ROOT / "fixtures" / "logs" / "nanogpt" / "char-ok.log", a)
    assert (mixed.code, "char-ok.log is a run" in mixed.stderr) == (2, True)
    assert invoke("compare", a, a, "--scaling").code == 2
    assert invoke("compare", a).code == 2


# ------------------------------------------------------------------------------- in a store


@pytest.fixture
def store(invoke: Invoke, tmp_path: Path, evaluated) -> Path:
    """A store with a run, two of each kind, and files that are no documents."""
    folder = tmp_path / "store"
    log = SCORES / "training.log"
    assert invoke("parse", log, "-o", tmp_path / "run.json", "--name", "tiny-run", "--lane", "tiny").code == 0
    assert invoke("import", log, "-o", tmp_path / "tables.json").code == 0
    files = [
        tmp_path / "run.json", tmp_path / "tables.json",
        evaluated("before", lambda r: None, "--lane", "tiny"), evaluated("after", lambda r: None, "--lane", "tiny"),
        ablation(tmp_path / "base.json", name="tiny-run"), ablation(tmp_path / "no.json", sink=False, name="another"),
        profile(invoke, tmp_path / "p.json", {"gemm": [40]}, options=("--name", "tiny-run")),
        profile(invoke, tmp_path / "q.json", {"gemm": [50], "flash": [10]}, stalls={"wait": 4}, options=("--lane", "tiny")),
        EXAMPLES / "golden-1.0" / "valid" / "exact.json",
    ]  # fmt: skip
    done = invoke("store", "add", folder, *files)
    assert done.code == 0, done.stderr
    broken = folder / "documents"
    for path, text in (
        ("evaluation/ab/ab.json", '{"schema_version": "evaluation/2.0"}'),
        ("ablation/cd/cd.json", "not JSON"),
        ("invoice/ef/ef.json", '{"schema_version": "invoice/1.0"}'),
        ("gpu_profile/01/01.json", '{"schema_version": "gpu_profile/9.0"}'),
    ):
        (broken / path).parent.mkdir(parents=True, exist_ok=True)
        (broken / path).write_text(text, "utf-8")
    return folder


def listed(invoke: Invoke, store: Path, kind: str) -> list[dict[str, Any]]:
    done = invoke("store", "ls", store, "--kind", kind, "--json")
    assert done.code == 0
    return [row for row in map(json.loads, done.stdout.splitlines()) if row["refusal"] is None]


def test_every_kind_is_listed(invoke: Invoke, store: Path) -> None:
    assert {kind: len(listed(invoke, store, kind)) for kind in KINDS} == {
        "ablation": 2,
        "evaluation": 3,
        "gpu_profile": 2,
        "golden": 1,
    }
    done = invoke("store", "ls", store)
    assert (
        b"2 ablations, 3 evaluations, 2 GPU profiles, 1 golden document, 4 documents unreadable: receipt store ls" in done.stdout
    )
    assert b"tiny-run" in done.stdout and done.stdout.startswith(b"1 run: ")
    for kind, words in (
        ("ablation", "no_sink"),
        ("evaluation", "checkpoint-1000"),
        ("gpu_profile", "40.0 ms"),
        ("golden", "loss"),
    ):
        assert words in invoke("store", "ls", store, "--kind", kind).stdout.decode(), kind
    assert invoke("store", "ls", store, "--kind", "evaluation", "--limit", "1").stdout.count(b"checkpoint-") == 1


def test_what_is_no_document_is_named(invoke: Invoke, store: Path) -> None:
    told = invoke("store", "ls", store).stderr
    for path in ("evaluation/ab/ab.json", "ablation/cd/cd.json", "invoice/ef/ef.json", "gpu_profile/01/01.json"):
        assert f"documents/{path} is damaged: " in told
    assert "the kind 'invoice' is unknown" in told or "unknown kind of document invoice" in told
    for command in (("history", store), ("report", store, "-o", store.parent / "r.html"), ("store", "query", store, "from runs")):
        done = invoke(*command)
        assert done.code == 0, done.stderr
    assert "documents/ablation/cd/cd.json is skipped" in invoke("history", store).stderr
    found = json.loads(invoke("store", "query", store, "from documents_passed_over order by path", "--json").stdout)
    assert [row["kind"] for row in found] == ["ablation", "evaluation", "gpu_profile", "invoice"]


def test_documents_belong_to_runs(invoke: Invoke, store: Path) -> None:
    run = json.loads(invoke("store", "query", store, "select run_id from runs", "--json").stdout)[0]["run_id"]
    links = {}
    for kind in KINDS:
        for row in listed(invoke, store, kind):
            links[kind, row["title"], row["name"]] = (row["run_id"] == run, row["linked_by"], row["lane"])
    assert links["evaluation", "out/ckpt.pt", None] == (True, "digest", "tiny"), "by the log that the tables are in"
    assert links["ablation", "baseline", "tiny-run"] == (True, "name", "tiny")
    assert links["gpu_profile", "a", "tiny-run"] == (True, "name", "tiny")
    assert links["ablation", "no_sink", "another"] == (False, None, None)
    assert links["evaluation", "runs/tiny/checkpoint-500", None] == (False, None, "tiny")


def test_a_document_that_a_receipt_attaches_is_its_own(invoke: Invoke, tmp_path: Path, evaluated) -> None:
    before = evaluated("before")
    raw = tmp_path / "before.raw.json"
    log = ROOT / "fixtures" / "logs" / "nanogpt" / "char-ok.log"
    assert invoke("parse", log, "-o", tmp_path / "run.json", "--attach", f"results={raw}").code == 0
    assert invoke("store", "add", tmp_path / "store", tmp_path / "run.json", before).code == 0
    (row,) = listed(invoke, tmp_path / "store", "evaluation")
    assert (row["linked_by"], row["run_id"] is not None) == ("digest", True)


def test_two_runs_of_one_name_claim_nothing(invoke: Invoke, tmp_path: Path) -> None:
    logs = ROOT / "fixtures" / "logs" / "nanogpt"
    for log in ("char-ok", "char-nan"):
        assert invoke("parse", logs / f"{log}.log", "-o", tmp_path / f"{log}.json", "--name", "twice").code == 0
    files = [tmp_path / "char-ok.json", tmp_path / "char-nan.json", ablation(tmp_path / "a.json", name="twice")]
    assert invoke("store", "add", tmp_path / "store", *files).code == 0
    (row,) = listed(invoke, tmp_path / "store", "ablation")
    assert (row["run_id"], row["linked_by"]) == (None, None)


def test_a_document_is_shown_by_digest_name_and_title(invoke: Invoke, store: Path) -> None:
    row = next(row for row in listed(invoke, store, "evaluation") if row["title"].endswith("1000"))
    for named in (row["sha256"][:8], "runs/tiny/checkpoint-1000", "evaluation:runs/tiny/checkpoint-1000"):
        for command in (("show", named, "--store", store), ("store", "show", store, named)):
            assert re.search(r"hellaswag\s+acc\s+.*0\.3240\s+0\.0049", invoke(*command).stdout.decode()), (named, command)
    assert b"nanoGPT" in invoke("store", "show", store, "tiny-run").stdout, "a run comes first"
    assert b"ablation baseline" in invoke("store", "show", store, "ablation:tiny-run").stdout
    assert b"samples_total" in invoke("store", "show", store, "golden:any system").stdout
    several = invoke("store", "show", store, "gpu_profile:a")
    assert (several.code, "2 documents are called 'gpu_profile:a'" in several.stderr) == (3, True)
    nothing = invoke("store", "show", store, "nothing")
    assert (nothing.code, "the store has no run 'nothing'" in nothing.stderr) == (3, True)
    names = "evaluation:runs/tiny/checkpoint-500", "evaluation:runs/tiny/checkpoint-1000"
    assert b"better" in invoke("compare", *names, "--store", store).stdout


QUERIES = [
    ("select kind, count(*) n from documents group by all order by all",
     [("ablation", 2), ("evaluation", 3), ("golden", 1), ("gpu_profile", 2)]),
    ("select checkpoint_step, value, stderr from scores join evaluations using (sha256) where metric = 'acc_norm' order by 1",
     [(500, 0.331, 0.0048), (1000, 0.3372, 0.0048)]),
    ("select after_step, line_number from scores where task = 'mmlu' and after_step is not null", [(250, 33)]),
    ("select variant, baseline, changes, layer_count from ablations order by 1",
     [("baseline", None, "{}", 2), ("no_sink", "baseline", '{"sink_bias": false}', 2)]),
    ("select metric, median from ablation_curves where title = 'no_sink'", [("loss", 2.5)]),
    ("select kernel, count, round(total_s, 6) from kernels order by all", [("flash", 1, 0.01), ("gemm", 1, 0.04), ("gemm", 1, 0.05)]),
    ("select reason, ratio from stall_reasons", [("wait", 1.0)]),
    ("select label, device_name, round(busy_s, 6) from gpu_profiles order by 3",
     [("a", "NVIDIA Test GPU", 0.04), ("a", "NVIDIA Test GPU", 0.06)]),
    ("select reference_count, len(golden_runs) from goldens", [(1, 1)]),
    ("select metric, rule from golden_curves order by 1", [("loss", "exact"), ("samples_total", "exact")]),
]  # fmt: skip


def test_every_kind_has_views(invoke: Invoke, store: Path) -> None:
    for question, want in QUERIES:
        found = json.loads(invoke("store", "query", store, question, "--json").stdout)
        assert [tuple(row.values()) for row in found] == want, question


def test_documents_are_listed_without_duckdb(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from receipt_cli.store import listing

    want = listing.list_documents(store)
    assert any(row.get("linked_by") == "digest" for row in want)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert listing.list_documents(store) == want


def test_history_follows_documents_by_lane(invoke: Invoke, store: Path) -> None:
    found = invoke("history", store, "--json").document["documents"]
    groups = {(group["kind"], group["lane"]): group for group in found["groups"]}
    assert set(groups) == {("evaluation", "tiny"), ("gpu_profile", "tiny"), ("ablation", "tiny")}
    series = {
        (one["of"]["task"], one["of"]["metric"]): one for one in groups["evaluation", "tiny"]["series"] if not one["of"]["filter"]
    }
    accuracy = series["hellaswag", "acc"]
    assert (accuracy["values"], accuracy["steps"], accuracy["outcome"]) == ([0.3021, 0.324], [500, 1000], "better")
    assert found["alone_count"] == 1, "the ablation of a run that is not in the store"
    shown = invoke("history", store).stdout.decode()
    assert "evaluations · tiny" in shown and re.search(r"hellaswag acc\s+0.3021\s+0.3240 ± 0.0049\s+✓ better", shown)
    assert "GPU profiles · tiny" in shown
    assert invoke("history", store, "tiny").code == 0
    assert invoke("history", store, "--fail").code == 0


def test_a_worse_score_is_a_change_for_the_worse(invoke: Invoke, tmp_path: Path, evaluated) -> None:
    def worse(results: dict[str, Any]) -> None:
        results["results"]["hellaswag"]["acc,none"] = 0.2

    files = [evaluated("before", lambda r: None, "--lane", "tiny"), evaluated("after", worse, "--lane", "tiny")]
    assert invoke("store", "add", tmp_path / "store", *files).code == 0
    done = invoke("history", tmp_path / "store", "--fail")
    assert (done.code, "✗ worse" in done.stdout.decode()) == (1, True)


def test_the_report_has_a_page_for_each_document(invoke: Invoke, store: Path) -> None:
    path = store.parent / "report.html"
    done = invoke("report", store, "-o", path)
    assert done.code == 0 and "documents/ablation/cd/cd.json is skipped" in done.stderr
    page = path.read_text("utf-8")
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    documents = data["documents"]
    assert {kind["kind"]: len(kind["rows"]) for kind in documents["listed"]} == {
        "ablation": 2,
        "evaluation": 3,
        "gpu_profile": 2,
        "golden": 1,
    }
    titles = {one["title"]: one for one in documents["pages"].values()}
    table = next(one for one in titles["runs/tiny/checkpoint-1000"]["tables"] if one["title"] == "Scores")
    assert ["hellaswag acc", "0.3240 ± 0.0049", "10042", "1000"] in table["rows"]
    assert titles["out/ckpt.pt"]["run"] == 0, "the place of its run"
    assert [path for path, _ in documents["unreadable"]] == sorted(path for path, _ in documents["unreadable"]) and len(
        documents["unreadable"]
    ) == 4
    assert "2 ablations, 3 evaluations, 2 GPU profiles, 1 golden document" in page, "for a reader without scripts"
    assert page.encode() == (invoke("report", store, "-o", path), path.read_bytes())[1]
