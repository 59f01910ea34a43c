"""Single runs of a store: one name in every command, marks, what varies, and questions with their SQL."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from receipt_cli.errors import InputError
from receipt_cli.store.answers import RECIPES, fill
from receipt_cli.store.files import Store
from receipt_cli.store.resolve import find_run

from .conftest import ROOT, Invoke

LOGS = ROOT / "fixtures" / "logs" / "hf-trainer"
TWO, ONE = "pair.log", "deep/single.log"
KINDS = ("digits", "name", "path", "end", "receipt")
COMMANDS = {
    "show": ("show", "{}", "--json"),
    "store show": ("store", "show", "{store}", "{}", "--json"),
    "store diff": ("store", "diff", "{store}", "{}", "pair"),
    "store tag": ("store", "tag", "{store}", "{}", "baseline"),
    "store note": ("store", "note", "{store}", "{}", "a note"),
    "store exclude": ("store", "exclude", "{store}", "{}"),
    "compare": ("compare", "{}", "{}"),
    "plot": ("plot", "{}"),
    "verify": ("verify", "{}"),
    "explain": ("explain", "{}", "--metric", "loss"),
    "export": ("export", "{}", "--to", "csv"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of two logs, and its store in ``store`` beside them."""
    from receipt_cli.batch.coordinator import Batch, rederive
    from receipt_cli.batch.discovery import Labels, walk

    from .test_archive import Here

    folder = tmp_path_factory.mktemp("made")
    (folder / "logs" / "deep").mkdir(parents=True)
    shutil.copy(LOGS / "nohup-two-runs-v5.log", folder / "logs" / TWO)
    shutil.copy(LOGS / "crash-resumed-v5.log", folder / "logs" / ONE)
    found = walk([str(folder / "logs")])
    batch = Batch(folder / "store", Here(), labels=Labels({"lane": "{dir}"}), root=found.base)
    list(rederive(found.logs, batch).reports)
    return folder


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Path:
    """A copy of the store, to change."""
    shutil.copytree(made / "store", tmp_path / "store")
    return tmp_path / "store"


def names_of(store: Path) -> dict[str, str]:
    [stored] = [receipt for receipt in Store(store).receipts() if find_run(store, receipt.run_id).name == "single"]
    return {
        "digits": stored.log_sha256[:8], "name": "single", "path": ONE, "end": "single.log",
        "receipt": stored.path.relative_to(store).as_posix(),
    }  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_name_of_a_run_works_in_every_command(
    invoke: Invoke, store: Path, command: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECEIPT_STORE", str(store))
    run = names_of(store)[kind]
    done = invoke(*(word.format(run, store=store) for word in COMMANDS[command]))
    assert done.code == 0, done.stderr
    assert done.stdout


def test_an_earlier_run_of_a_log_has_a_name_of_its_own(invoke: Invoke, made: Path) -> None:
    last, first = find_run(made / "store", "pair"), find_run(made / "store", "pair.run1")
    assert (last.receipt.run, first.receipt.run) == (None, 1)
    assert find_run(made / "store", TWO).receipt == last.receipt
    assert find_run(made / "store", f"{first.receipt.log_sha256[:6]}.run1").receipt == first.receipt
    shown = json.loads(invoke("show", "pair.run1", "--json", "--store", made / "store").stdout)
    assert shown["derivation"]["launches"]["used"] == 1
    assert invoke("verify", "pair.run1", "--store", made / "store").code == 0
    refused = invoke("explain", "pair.run1", "--store", made / "store")
    assert (refused.code, "earlier run" in refused.stderr) == (2, True)


def test_what_is_ambiguous_lists_the_candidates(invoke: Invoke, made: Path, tmp_path: Path) -> None:
    other = tmp_path / "store"
    shutil.copytree(made / "store", other)
    for path in other.glob("places/*/*.json"):
        path.write_text(path.read_text().replace('"name": "pair"', '"name": "single"'))
    with pytest.raises(InputError, match="runs are called 'single'") as caught:
        find_run(other, "single")
    assert len(caught.value.why.split(", ")) == 2
    missing = invoke("show", "nothing", "--store", made / "store")
    assert (missing.code, "the store has no run 'nothing'" in missing.stderr) == (3, True)
    assert invoke("show", "nothing").code == 3  # without a store, a file that is not there


def test_marks_are_kept_and_an_excluded_run_takes_no_part(invoke: Invoke, store: Path) -> None:
    assert invoke("store", "tag", store, "single", "baseline", "slow").stdout == b"baseline\nslow\n"
    assert invoke("store", "tag", store, "single", "--remove", "slow").stdout == b"baseline\n"
    assert invoke("store", "note", store, "single", "wrong data").stdout == b"wrong data\n"
    assert invoke("store", "exclude", store, "single").stdout == b"excluded\n"
    assert invoke("store", "tag", store, "single", "two words").code == 2
    [row] = [
        row for row in map(json.loads, invoke("store", "ls", store, "--json").stdout.splitlines()) if row["name"] == "single"
    ]
    assert (row["tags"], row["excluded"], row["log_path"], row["lane"]) == (["baseline"], True, ONE, "deep")
    asked = invoke("store", "query", store, "SELECT note, len(tags) AS n FROM runs WHERE excluded", "--json")
    assert json.loads(asked.stdout) == [{"note": "wrong data", "n": 1}]
    assert json.loads(invoke("store", "stats", store, "checks", "--json").stdout)["run_count"] == 2
    assert "deep" not in invoke("history", store, "--json").stdout.decode()
    assert invoke("store", "exclude", store, "single", "--undo").stdout == b"included\n"
    assert len(list((store / "marks").rglob("*.json"))) == 5  # older marks stay


def test_what_varies_between_runs(invoke: Invoke, made: Path) -> None:
    found = json.loads(invoke("store", "diff", made / "store", "pair", "pair.run1", "--json").stdout)
    assert found["names"] == ["pair", "pair.run1"]
    fields = {row["field"]: (row["pair"], row["pair.run1"]) for row in found["differences"]}
    assert "loss" in fields and all(a != b for a, b in fields.values())
    assert invoke("store", "diff", made / "store", "pair").code == 2


@pytest.mark.parametrize("question", RECIPES)
def test_a_recipe_answers_and_shows_its_sql(invoke: Invoke, made: Path, question: str) -> None:
    sql = invoke("store", "ask", made / "store", question, "--sql", "--metric", "loss").stdout.decode()
    asked = invoke("store", "query", made / "store", sql, "--json")
    answered = invoke("store", "ask", made / "store", question, "--json", "--metric", "loss")
    assert (asked.code, answered.code) == (0, 0), asked.stderr + answered.stderr
    assert json.loads(asked.stdout) == json.loads(answered.stdout)


def test_the_pages_show_the_sql_of_every_recipe() -> None:
    page = (ROOT / "docs" / "store.md").read_text("utf-8")
    assert [
        name for name, recipe in RECIPES.items() if f"`{name}`: {recipe.meaning}.\n\n```sql\n{fill(name).sql}\n```" not in page
    ] == []


def test_the_best_run_is_the_one_with_the_least_loss(invoke: Invoke, made: Path) -> None:
    best = json.loads(invoke("store", "ask", made / "store", "best", "--metric", "loss", "--json").stdout)
    losses = {
        receipt.run_id: json.loads(receipt.path.read_bytes())["summary"]["metrics"]["loss"]["min"]
        for receipt in Store(made / "store").receipts()
    }
    assert min(row["loss"] for row in best) == min(losses.values())
    assert sum(row["run_count"] for row in best) == len(losses)
    unknown = invoke("store", "ask", made / "store", "worst")
    assert (unknown.code, "the recipes are failures, best" in unknown.stderr) == (2, True)


def test_runs_are_listed_without_duckdb(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from receipt_cli.store import listing

    want = listing.list_runs(made / "store")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert listing.list_runs(made / "store") == want
