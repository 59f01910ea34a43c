"""Results of evaluation programs become evaluation documents.

``fixtures/foreign/scores/README.md`` says where their forms were checked.
"""

# ruff: noqa: E501 (tables as programs print them)

import json
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.documents.validate import validate_bytes
from tests.cli.conftest import Invoke

SCORES = Path(__file__).resolve().parents[2] / "fixtures" / "foreign" / "scores"


def named(document: dict[str, Any]) -> dict[tuple[str, ...], dict[str, Any]]:
    """Task, subset, metric and filter → score."""
    return {tuple(filter(None, (s["task"], s["subset"], s["metric"], s["filter"]))): s for s in document["scores"]}


@pytest.fixture
def imported(invoke: Invoke):
    def call(path: Path | str, *more: str) -> dict[str, Any]:
        done = invoke("import", path, "--json", *more)
        assert done.code == 0, done.stderr
        assert validate_bytes(done.stdout, "stdout") == []
        return done.document

    return call


FILES = [
    # (file, format, producer, model, step, scores, (name of a score: value, stderr, shots, samples, whether higher is better))
    ("lm-eval-before.json", "lm-eval", "lm_eval 0.4.9.2", "runs/tiny/checkpoint-500", 500, 6,
     {("hellaswag", "acc_norm"): (0.331, 0.0048, 0, 10042, True), ("gsm8k", "exact_match", "strict-match"): (0.0212, 0.0121, 5, 1319, True),
      ("wikitext", "word_perplexity"): (21.4, None, 0, 62, False), ("mmlu", "acc"): (0.2688, 0.0037, None, None, True)}),
    ("lm-eval-after.json", "lm-eval", "lm_eval 0.4.9.2", "runs/tiny/checkpoint-1000", 1000, 7,
     {("arc_easy", "acc"): (None, None, 0, None, None)}),
    ("lm-eval-0.3.json", "lm-eval", "lm_eval", "lab/tiny-1b", 3000, 1, {("sciq", "acc"): (0.874, 0.0105, 2, None, None)}),
    ("every-eval-ever.json", "every-eval-ever", "lm_eval 0.4.9.2", "lab/tiny", 2000, 3,
     {("gsm8k", "exact_match"): (0.0311, 0.0048, 5, 1319, True), ("IFEval", "Accuracy"): (0.4486, None, None, None, True),
      ("safety", "Level of safety"): (None, None, None, None, False)}),
    ("mteb.json", "mteb", "mteb 2.1.4", None, None, 6,
     {("STS17", "en-de", "main_score"): (0.8121, None, None, None, True), ("STS17", "en-en", "pearson"): (0.841, None, None, None, None)}),
    ("mteb-1.1.json", "mteb", "mteb 1.1.1", None, None, 2,
     {("Banking77Classification", "accuracy"): (0.7712, 0.0061, None, None, None)}),
]  # fmt: skip
FIELDS = ("value", "stderr", "shots", "sample_count", "higher_is_better")


@pytest.mark.parametrize(("file", "form", "producer", "model", "step", "count", "wanted"), FILES, ids=[row[0] for row in FILES])
def test_results_of_a_program(imported, file, form, producer, model, step, count, wanted) -> None:
    document = imported(SCORES / file)
    assert (document["origin"]["format"], document["origin"]["producer"]) == (form, producer)
    assert {key: (document["model"] or {}).get(key) for key in ("name", "step")} == {"name": model, "step": step}
    assert len(document["scores"]) == count
    found = named(document)
    assert {name: tuple(found[name][field] for field in FIELDS) for name in wanted} == wanted
    assert document["series"] is document["summary"] is None


def test_a_file_may_stand_beside_its_model(imported, tmp_path: Path) -> None:
    (tmp_path / "STS17.json").write_bytes((SCORES / "mteb.json").read_bytes())
    (tmp_path / "model_meta.json").write_text('{"name": "lab/tiny-embed", "revision": "12ab"}', "utf-8")
    document = imported(tmp_path / "STS17.json")
    assert document["model"] == {"name": "lab/tiny-embed", "revision": "12ab", "step": None}
    assert [file["name"] for file in document["origin"]["files"]] == ["STS17.json", "model_meta.json"]


TABLES = {
    ("gsm8k", "exact_match", "strict-match"): (0.0311, 0.0048, 5, None, True),
    ("humanities", "acc"): (0.2421, 0.0062, None, None, True),
    ("wikitext", "word_perplexity"): (18.9, None, 0, None, False),
    ("ifeval", "tiny / main", "AverageAccuracy"): (0.412, None, None, 500, None),
    ("sst2", "Accuracy"): (0.912, None, None, None, None),
    ("Average", "Accuracy"): (0.912, None, None, None, None),
    ("bbox", "AP", "IoU=0.50:0.95 area=all maxDets=100"): (0.345, None, None, None, True),
    ("bbox", "AP", "IoU=0.50:0.95 area=small maxDets=100"): (None, None, None, None, True),
    ("classification report", "class b", "recall"): (0.95, None, None, 60, True),
    ("classification report", "accuracy"): (0.9, None, None, 100, True),
}


def test_tables_behind_a_training(imported, invoke: Invoke) -> None:
    document = imported(SCORES / "training.log")
    found = named(document)
    assert {name: tuple(found[name][field] for field in FIELDS) for name in TABLES} == TABLES
    assert len(found) == len(document["scores"]) == 26, "the table of groups repeats a score, and adds none"
    assert {score["after_step"] for score in document["scores"]} == {250}
    lines = (SCORES / "training.log").read_text("utf-8").splitlines()
    assert all(
        score["task"] in "".join(lines[: score["line_number"]]) or score["line_number"] > 58 for score in document["scores"]
    )
    receipt = invoke("parse", SCORES / "training.log", "--json").document
    assert document["origin"]["files"][0]["sha256"] == receipt["derivation"]["log"]["sha256"], "which links it to its run"


HEAD = "|Tasks|Version|Filter|n-shot|Metric|   |Value |   |Stderr|\n|-----|------:|------|-----:|------|---|-----:|---|-----:|\n"


@pytest.mark.parametrize(
    ("log", "scores", "kinds"),
    [
        ("hf (pretrained=out/step_400,dtype=auto), gen_kwargs: (None), limit: None\n" + HEAD + "|copa|1|none|0|acc|↑|0.8|±|0.04|\n",
         [("copa", "acc", 0.8, 0.04, 400)], []),
        (HEAD + "|copa|1|none|0|acc|↑|nan|±|N/A|\n", [("copa", "acc", None, None, None)], ["no_value"]),
        (HEAD + "|copa|1|none|0|acc|↑|0.8|±|0.04|\n|copa|1|none|0|acc|↑|0.7|±|0.04|\n|boolq|1|none|0|acc|↑|0.6|±|0.01|\n",
         [("boolq", "acc", 0.6, 0.01, None)], ["contradicting_scores"]),
        (HEAD + "|copa|1|none|0|acc|↑|0.8|±|0.04|\n|boolq|1|none|0|acc|0.6|\n", [("copa", "acc", 0.8, 0.04, None)], ["row_not_read"]),
        ("[rank0]: 2026-01-01 INFO " + HEAD.replace("\n|-", "\n[rank0]: |-") + "[rank0]: |copa|1|none|0|acc|↑|\x1b[32m0.8\x1b[0m|±|0.04|\n",
         [("copa", "acc", 0.8, 0.04, None)], []),
        (HEAD + "|copa|1|none|0|acc|↑|0.8|±|0.04|\n" + "step\n" + HEAD + "|copa|1|none|0|acc|↑|0.9|±|0.04|\n" + "step\n" + HEAD
         + "|copa|1|none|0|acc|↑|0.8|±|0.04|\n", [("copa", "acc", v, 0.04, None) for v in (0.8, 0.9, 0.8)], []),
    ],
    ids=["the line above names the checkpoint", "not a number", "one score twice", "a cut row", "behind other words", "three evaluations"],
)  # fmt: skip
def test_rows_of_a_table(imported, tmp_path: Path, log: str, scores: list[Any], kinds: list[str]) -> None:
    (tmp_path / "eval.txt").write_text(log, "utf-8")
    document = imported(tmp_path / "eval.txt", "--format", "score-tables")
    assert [(s["task"], s["metric"], s["value"], s["stderr"], s["step"]) for s in document["scores"]] == scores
    assert [problem["kind"] for problem in document["origin"]["problems"]["first"]] == kinds


@pytest.mark.parametrize(
    ("model", "step"),
    [
        ("pretrained=runs/a/checkpoint-12", 12), ("pretrained=out/iter_0002500,dtype=auto", 2500), ("pretrained=a/step_400/hf", 400),
        ("pretrained=EleutherAI/pythia-1b,revision=step64", 64), ("pretrained=a/global_step20", 20), ("pretrained=a/ckpt-1000.pt", 1000),
        ("pretrained=allenai/OLMo-7B,revision=step1000-tokens4B", 1000),
        ("pretrained=lab/Step-3", None), ("pretrained=lab/Mistral7B-SPPO-Iter3", None), ("pretrained=lab/two-step-7b", None),
        ("pretrained=a/checkpoint-5,peft=b/checkpoint-7", None), ("pretrained=lab/tiny", None),
    ],
)  # fmt: skip
def test_the_step_of_a_checkpoint_is_in_its_name(imported, tmp_path: Path, model: str, step: int | None) -> None:
    results = json.loads((SCORES / "lm-eval-before.json").read_text("utf-8"))
    results["config"]["model_args"], results["model_name"] = model, ""
    (tmp_path / "r.json").write_text(json.dumps(results), "utf-8")
    assert imported(tmp_path / "r.json")["model"]["step"] == step


@pytest.mark.parametrize(
    "log", ["| Name | Type | Params |\n|---|---|---|\n| fc | Linear | 1.2 |\n", "| loss | value |\n|--|--|\n| a | 1.0 |\n"]
)
def test_other_tables_have_no_scores(invoke: Invoke, tmp_path: Path, log: str) -> None:
    (tmp_path / "log.txt").write_text(log, "utf-8")
    done = invoke("import", tmp_path / "log.txt")
    assert (done.code, "format of this document is unknown" in done.stderr) == (4, True)


SECRET = "sk-proj-Zx81kQpLm42vTgY7Rw3nBd6HsJ0aUeFc"


def test_what_results_hold_is_made_safe(imported, invoke: Invoke, tmp_path: Path) -> None:
    results = json.loads((SCORES / "lm-eval-before.json").read_text("utf-8"))
    results["config"]["model_args"] = f"pretrained=lab/tiny,api_key={SECRET}"
    results["config"]["gen_kwargs"] = {"\ud800": {"a": {"b": {"c": {"d": 1}}}}}
    results["groups"] = {}
    results["results"] = {
        "t\x1b[2J" + "x" * 900: {"acc,none": 0.5},
        "t\x1b[2J" + "x" * 901: {"acc,none": 0.5},
        "other": {"acc,none": 10**400},
    }
    (tmp_path / "r.json").write_text(json.dumps(results), "utf-8")
    document = imported(tmp_path / "r.json")
    assert SECRET not in json.dumps(document)
    assert [(len(s["task"]), "\x1b" in s["task"], s["value"]) for s in document["scores"]] == [
        (500, False, 0.5),
        (5, False, None),
    ]
    assert SECRET not in invoke("show", tmp_path / "r.json").stderr


def test_results_without_a_score(invoke: Invoke, tmp_path: Path) -> None:
    results = json.loads((SCORES / "lm-eval-before.json").read_text("utf-8"))
    results["results"], results["groups"] = {"copa": {"alias": "copa", "acc,none": "N/A"}}, {}
    (tmp_path / "r.json").write_text(json.dumps(results), "utf-8")
    done = invoke("import", tmp_path / "r.json")
    assert (done.code, "holds no score that can be read" in done.stderr) == (3, True)


def test_a_store_takes_the_results_of_many_files(invoke: Invoke, tmp_path: Path) -> None:
    files = [SCORES / name for name in ("lm-eval-before.json", "lm-eval-after.json", "mteb.json")]
    done = invoke("import", *files, "--store", tmp_path / "store", "--json")
    assert done.code == 0
    paths = [json.loads(line)["path"] for line in done.stdout.splitlines()]
    assert [path.split("/")[1] for path in paths] == ["evaluation"] * 3
