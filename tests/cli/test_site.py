"""The definitions of a site: where they are found, what they change, and what is refused."""

import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from receipt_cli.authoring.site_files import load_site
from tests.cli.conftest import Invoke

GRAMMAR = """\
grammar: acme
version: 1
title: The trainer of Acme
upstream: ''
trainer: acme
completion: none
rules:
  step:
    event: step
    literal: 'schritt='
    pairs:
      start: 'schritt=(?P<step>(?&integer))'
      cell: ' '
      key: '='
      keys: {kosten: loss}
      unknown: ignore
    fields:
      step: {type: integer}
      loss: {type: number}
    samples:
      - line: 'schritt=1 kosten=3.5'
        fields: {step: 1, loss: 3.5}
"""
MARKERS = """\
catalogue: markers
version: 1
markers:
  acme_fan:
    reason: cuda_error
    category: hardware
    role: cause
    rank: 0
    overcome_after: 2
    literal: 'ACME-E42'
    pattern: 'ACME-E42: (?P<message>[^\\n]+)'
    samples: ['ACME-E42: the fan has stopped']
    counter_samples: ['ACME-E41: the fan turns']
"""
ALIASES = "aliases: {loss: [kosten], step_time_s: [{spelling: dauer, printed_in: ms}]}\n"
LOG = "".join(f"schritt={n} kosten={4 - n / 10:.1f}\n" for n in range(1, 9))
UNKNOWN = "".join(f"step {n} kosten {4 - n / 10:.1f} dauer {n + 100}\n" for n in range(1, 9))


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.chdir(home)
    load_site.cache_clear()
    yield
    load_site.cache_clear()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "project" / "runs" / "run.log"
    path.parent.mkdir(parents=True)
    path.write_text(LOG, "utf-8")
    return path


def define(folder: Path, *, grammar: str = GRAMMAR, **others: str) -> Path:
    """Write the definitions of a site into ``folder``."""
    (folder / "grammars").mkdir(parents=True)
    (folder / "grammars" / "acme.yaml").write_text(grammar, "utf-8")
    for name, text in others.items():
        (folder / f"{name}.yaml").write_text(text, "utf-8")
    return folder


def packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "site-packages"
    info = place / "receipt_acme-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "entry_points.txt").write_text("[receipt_cli.definitions]\nacme = acme_receipt:data\n", "utf-8")
    (place / "acme_receipt").mkdir()
    (place / "acme_receipt" / "__init__.py").write_text("raise SystemExit('imported')\n", "utf-8")
    monkeypatch.syspath_prepend(str(place))
    return place / "acme_receipt" / "data"


PLACES: dict[str, Callable[[Path, pytest.MonkeyPatch], Path]] = {
    "beside the log": lambda tmp, _: tmp / "project" / "runs" / ".receipt",
    "above the log": lambda tmp, _: tmp / "project" / ".receipt",
    "the configuration of the user": lambda tmp, _: tmp / "home" / ".config" / "receipt",
    "an installed package": packaged,
}


def named(tmp: Path, patch: pytest.MonkeyPatch) -> Path:
    (tmp / "shared").mkdir()
    patch.setenv("RECEIPT_PATH", str(tmp / "shared"))
    return tmp / "shared"


PLACES["RECEIPT_PATH"] = named


@pytest.mark.parametrize("place", PLACES)
def test_a_grammar_of_the_search_path_reads_lists_and_verifies(
    place: str, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, invoke: Invoke
) -> None:
    folder = define(PLACES[place](tmp_path, monkeypatch))
    done = invoke("parse", "--json", log)
    assert done.code == 0
    assert [g["id"] for g in done.document["derivation"]["grammars"]] == ["acme"]
    assert done.document["summary"]["metrics"]["loss"]["last"] == 3.2
    receipt = tmp_path / "r.json"
    receipt.write_bytes(done.stdout)
    assert invoke("verify", receipt, log).code == 0
    assert invoke("parse", log, "--grammar", "acme@v1").code == 0
    assert b"acme@v1" in invoke("grammar", "explain", log).stdout
    monkeypatch.chdir(log.parent)
    rows = json.loads(invoke("grammar", "list", "--json").stdout)
    assert [row["source"] for row in rows if row["grammar"] == "acme@v1"] == [str(folder / "grammars" / "acme.yaml")]
    assert invoke("grammar", "show", "acme").stdout.decode() == GRAMMAR


def test_without_its_definitions_a_receipt_is_not_verified(log: Path, tmp_path: Path, invoke: Invoke) -> None:
    define(tmp_path / "project" / ".receipt")
    receipt = tmp_path / "r.json"
    receipt.write_bytes(invoke("parse", "--json", log).stdout)
    moved = tmp_path / "home" / "run.log"
    moved.write_text(LOG, "utf-8")
    done = invoke("verify", receipt, moved)
    assert done.code == 5 and "no grammar acme@v1 is known here" in done.stderr and "RECEIPT_PATH" in done.stderr


def test_a_changed_definition_is_a_difference(log: Path, tmp_path: Path, invoke: Invoke) -> None:
    folder = define(tmp_path / "project" / ".receipt")
    receipt = tmp_path / "r.json"
    receipt.write_bytes(invoke("parse", "--json", log).stdout)
    (folder / "grammars" / "acme.yaml").write_text(GRAMMAR + "# changed\n", "utf-8")
    load_site.cache_clear()
    done = invoke("verify", receipt, log, "--json")
    assert (done.code, done.document["other"]) == (1, ["grammar"])


def test_failure_markers_and_aliases_of_a_site_count(log: Path, tmp_path: Path, invoke: Invoke) -> None:
    log.write_text(UNKNOWN + "ACME-E42: the fan has stopped\n", "utf-8")
    assert invoke("parse", log).code == 4
    define(tmp_path / "project" / ".receipt", markers=MARKERS, aliases=ALIASES)
    done = invoke("parse", "--json", log)
    document = done.document
    assert document["failure"]["reason"] == "cuda_error"
    assert document["failure"]["message"] == "the fan has stopped"
    assert document["summary"]["metrics"]["loss"]["last"] == 3.2
    assert document["summary"]["metrics"]["step_time_s"]["last"] == 0.108
    receipt = tmp_path / "r.json"
    receipt.write_bytes(done.stdout)
    assert invoke("verify", receipt, log).code == 0
    os.environ["RECEIPT_LOCAL"] = "0"
    try:
        assert {"markers", "registry"} <= set(invoke("verify", receipt, log, "--json").document["other"])
    finally:
        del os.environ["RECEIPT_LOCAL"]


def test_the_receipts_of_an_archive_are_derived_with_them(log: Path, tmp_path: Path, process: Invoke) -> None:
    define(tmp_path / "project" / ".receipt")
    for name in "ab":
        log.with_name(f"{name}.log").write_text(LOG + f"{name}\n", "utf-8")
    store = tmp_path / "store"
    env = {"HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": str(tmp_path / "home")}
    done = process("store", "build", log.parent, "--store", store, env=env)
    assert done.code == 0 and "no grammar recognises" not in done.stdout.decode()
    assert f"used the definitions in {tmp_path / 'project' / '.receipt'}" in done.stderr
    assert "unchanged  3" in process("store", "build", log.parent, "--store", store, env=env).stdout.decode()
    without = process("store", "build", log.parent, "--store", store, env={**env, "RECEIPT_LOCAL": "0"})
    assert "replaced  3" in without.stdout.decode()


def test_a_command_is_recorded_with_them(log: Path, tmp_path: Path, process: Invoke) -> None:
    define(tmp_path / "project" / ".receipt")
    out = tmp_path / "project" / "job.log"
    env = {"HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": str(tmp_path / "home")}
    done = process("run", "--grammar", "acme", "--log", out, "--", "cat", log, env=env)
    assert done.code == 0, done.stderr
    receipt = json.loads((tmp_path / "project" / "job.receipt.json").read_bytes())
    assert [g["id"] for g in receipt["derivation"]["grammars"]] == ["acme"]


BROKEN = {
    "a sample that says otherwise": ({"grammar": GRAMMAR.replace("loss: 3.5}", "loss: 3.6}")}, "stated as 3.6, read as 3.5"),
    "no grammar": ({"grammar": "grammar: [acme\n"}, "acme.yaml"),
    "the id of one that ships": ({"grammar": GRAMMAR.replace("grammar: acme", "grammar: nanogpt")}, "nanogpt is the id of"),
    "a marker that misses its sample": ({"markers": MARKERS.replace("E42: the fan", "E43: the fan")}, "sample is not matched"),
    "a marker that ships": ({"markers": MARKERS.replace("acme_fan", "driver_out_of_memory")}, "driver_out_of_memory"),
    "an unknown metric": ({"aliases": "aliases: {losss: [kosten]}"}, "no metric 'losss'"),
    "a spelling of another metric": ({"aliases": "aliases: {loss: [learning_rate]}"}, "means learning_rate already"),
    "an unknown unit": ({"aliases": "aliases: {loss: [{spelling: x, printed_in: miles}]}"}, "'miles' is not a unit"),
    "tags": ({"aliases": "aliases: !!python/object:os.system {}"}, "tags are not allowed"),
    "tags in markers": ({"markers": "catalogue: !!python/name:os.system x"}, "tags are not allowed"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_definition_is_an_error_with_its_file(name: str, log: Path, tmp_path: Path, invoke: Invoke) -> None:
    texts, why = BROKEN[name]
    define(tmp_path / "project" / ".receipt", **texts)
    done = invoke("parse", log)
    assert done.code == 5 and why in done.stderr
    assert done.stdout == b""


def test_a_folder_of_the_variable_that_is_missing_is_an_error(log: Path, monkeypatch: pytest.MonkeyPatch, invoke: Invoke) -> None:
    monkeypatch.setenv("RECEIPT_PATH", str(log.parent / "absent"))
    done = invoke("parse", log)
    assert done.code == 5 and "a folder of RECEIPT_PATH does not exist" in done.stderr


class TestLocalFolders:
    def test_they_can_be_switched_off(self, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, invoke: Invoke) -> None:
        define(tmp_path / "project" / ".receipt", grammar="broken: [")
        monkeypatch.setenv("RECEIPT_LOCAL", "0")
        assert invoke("parse", log).code == 4

    def test_one_that_everybody_may_write_to_is_not_used(self, log: Path, tmp_path: Path, invoke: Invoke) -> None:
        folder = define(tmp_path / "project" / ".receipt")
        folder.chmod(folder.stat().st_mode | stat.S_IWOTH)
        done = invoke("parse", log)
        assert done.code == 4 and "everybody may write to it" in done.stderr

    def test_one_of_another_user_is_not_used(
        self, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, invoke: Invoke
    ) -> None:
        define(tmp_path / "project" / ".receipt")
        mine = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: mine + 1)
        done = invoke("parse", log)
        assert done.code == 4 and "it belongs to another user" in done.stderr

    def test_links_lead_nowhere(self, log: Path, tmp_path: Path, invoke: Invoke) -> None:
        elsewhere = define(tmp_path / "elsewhere")
        (tmp_path / "project" / ".receipt").symlink_to(elsewhere)
        assert invoke("parse", log).code == 4
        (tmp_path / "project" / ".receipt").unlink()
        (tmp_path / "project" / ".receipt" / "grammars").mkdir(parents=True)
        (tmp_path / "project" / ".receipt" / "grammars" / "acme.yaml").symlink_to(elsewhere / "grammars" / "acme.yaml")
        assert invoke("parse", log).code == 4

    def test_the_search_ends_at_the_home_folder(self, tmp_path: Path, invoke: Invoke) -> None:
        define(tmp_path / ".receipt")
        log = tmp_path / "home" / "run.log"
        log.write_text(LOG, "utf-8")
        assert invoke("parse", log).code == 4

    def test_a_slow_pattern_stays_within_its_time(self, log: Path, tmp_path: Path, invoke: Invoke) -> None:
        slow = "(?:schritt=(?P<step>\\d+) kosten=(?P<loss>[\\d.]+)|(?:s+)+(?:c+)+!)"
        body = GRAMMAR[: GRAMMAR.index("    pairs:")] + f"    pattern: '{slow}'\n" + GRAMMAR[GRAMMAR.index("    fields:") :]
        define(tmp_path / "project" / ".receipt", grammar=body)
        log.write_text(LOG + "schritt=" + "s" * 40_000 + "\n", "utf-8")
        done = invoke("parse", "--json", log)
        assert done.document["summary"]["steps"]["record_count"] == 8
