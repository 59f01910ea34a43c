"""No secret that a log, a header, the environment or a foreign document holds leaves this program by any way out."""

import base64
import gzip
import json
import random
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.redaction.mask import mask_secrets
from receipt_cli.redaction.text import log_tail, safe_text
from tests.cli.conftest import Invoke
from tests.tools.planted import FORMS, ORDINARY, PLACES, VALUES, Planted, corpus, leaks, private_key, secret_parts, table
from tests.tools.slow import one_in

ROOT = Path(__file__).resolve().parents[2]
FOREIGN = ROOT / "fixtures" / "foreign"
DOCUMENTS = [path for path in sorted(FOREIGN.glob("*.json")) if "crashed" not in path.stem]
CORPUS = corpus(7)
GROUP = 36
"""Planted texts of one log: the end of it that a receipt quotes has 50 lines."""
GROUPS = [CORPUS[at :: -(-len(CORPUS) // GROUP)] for at in range(-(-len(CORPUS) // GROUP))]


def log_of(planted: list[Planted], seed: int = 0, steps: int = 8) -> tuple[bytes, list[str]]:
    """Return a log of a failed run with the planted texts in its lines, near-misses, names, facts, tail and last error."""
    r = random.Random(seed)
    secrets = [secret for one in planted for secret in one.secrets]
    lines = ["[transformers] ***** Running training *****"]
    named = [one for one in planted if "\n" not in one.text]
    for number in range(steps):
        key = FORMS["hf"](r)
        secrets.append(key)
        step = {"loss": 2.5 - number / 10, "grad_norm": 1.5, "learning_rate": 1e-05, f"reward/{key}": 0.5, "epoch": number / 10}
        lines.append(str(step))
        one = r.choice(named)
        lines += [f"{{'loss': 2.5, 'grad_norm': oops {one.text}", f"progress: loss=1.25 lr=0.001 {one.text}"]
    for one in planted:
        lines += [one.text, r.choice(ORDINARY)] if r.random() < 0.3 else [one.text]
    last = r.choice([one for one in named if "\r" not in one.text and len(one.text) < 400])
    lines += ["Traceback (most recent call last):", '  File "train.py", line 7', f"ValueError: no access: {last.text}"]
    return ("\n".join(lines) + "\n").encode(), secrets


def found(folder: Path, given: set[Path]) -> Iterator[tuple[str, str]]:
    """Yield every file below ``folder`` that a command wrote, as text."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path not in given:
            data = path.read_bytes()
            yield str(path.relative_to(folder)), data.decode("utf-8", "replace")
            if path.suffix == ".parquet":
                yield f"{path.name} as rows", parquet_text(path)


def parquet_text(path: Path) -> str:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as database:
        rows = database.execute("SELECT * FROM read_parquet(?)", [str(path)]).fetchall()
        named = database.execute("SELECT * FROM parquet_schema(?)", [str(path)]).fetchall()
        footer = database.execute("SELECT decode(key), decode(value) FROM parquet_kv_metadata(?)", [str(path)]).fetchall()
    return repr((rows, named, footer))


class Watch:
    """Calls commands, and looks at all that they print and write for secrets."""

    def __init__(self, invoke: Invoke, folder: Path, secrets: list[str]) -> None:
        self.invoke, self.folder, self.secrets = invoke, folder, secrets
        self.given: set[Path] = set()
        self.masked = 0

    def __call__(self, *arguments: str | Path, codes: tuple[int, ...] = (0,), stdin: bytes = b"") -> Any:
        done = self.invoke(*arguments, stdin=stdin)
        assert done.code in codes, (arguments, done.code, done.stderr[-2000:])
        out = done.stdout.decode("utf-8", "replace")
        self.masked += out.count("[redacted:")
        for name, text in (("stdout", out), ("stderr", done.stderr)):
            assert not leaks(self.secrets, text), f"{name} of {arguments}: {leaks(self.secrets, text)}"
        return done

    def files(self) -> int:
        count = 0
        for name, text in found(self.folder, self.given):
            assert not leaks(self.secrets, text), f"{name}: {leaks(self.secrets, text)}"
            count += 1
        return count


@pytest.mark.parametrize("seed", one_in(3, range(3)))
def test_every_kind_in_every_position_is_masked(seed: int) -> None:
    for one in corpus(seed):
        tail = "\n".join(log_tail(f"before it\n{one.text}\nafter it\n".encode()))
        shown = [tail] if "\n" in one.text else [tail, safe_text(one.text.replace("\r", " "), 5000)]
        for text in shown:
            assert not leaks(one.secrets, text), (one.kind, one.position, text)
            assert mask_secrets(text) == text, (one.kind, one.position)
        assert tail.startswith("before it") and tail.endswith("after it"), (one.kind, one.position, tail)


@pytest.mark.parametrize("place", one_in(3, PLACES))
def test_two_hundred_secrets_in_twenty_places(place: str) -> None:
    planted = [one for one in table(1) if one.position == place]
    assert (len(planted), len(PLACES)) == (200, 20)
    for one in planted:
        for shown in (safe_text(one.text, 5000), "\n".join(log_tail(f"before\n{one.text}\nafter\n".encode()))):
            assert not leaks(one.secrets, shown), (one.kind, shown)
            assert mask_secrets(shown) == shown, (one.kind, shown)


@pytest.mark.parametrize(
    "after",
    ["torch.OutOfMemoryError: CUDA out of memory", "step=100 loss=2.5", "[rank0]: RuntimeError: x", "GPU0 is busy", "ERROR x"],
)
@pytest.mark.parametrize("before", ["HF_TOKEN=", "INFO  the settings of this run: HF_TOKEN=", "[rank0]: INFO  with HF_TOKEN="])
def test_a_mask_does_not_eat_the_next_line(before: str, after: str) -> None:
    secret = FORMS["hf"](random.Random(6))
    assert mask_secrets(f"{before}{secret}\n{after}") == f"{before}[redacted:hf]\n{after}"


@pytest.mark.parametrize("line", ORDINARY)
def test_ordinary_lines_stay_as_they_are(line: str) -> None:
    assert mask_secrets(line) == line


@pytest.mark.parametrize("number", one_in(3, range(0, len(GROUPS), 9)))
def test_no_receipt_of_a_log_holds_a_secret(number: int, tmp_path: Path, invoke: Invoke) -> None:
    data, secrets = log_of(GROUPS[number], number)
    log = tmp_path / "run.log"
    log.write_bytes(data)
    watch = Watch(invoke, tmp_path, secrets)
    document = watch("parse", log, "--json").document
    assert document["failure"]["log_tail"] and document["failure"]["message"]
    assert document["derivation"]["redactions"]
    assert sum(document["derivation"]["redactions"].values()) <= watch.masked
    watch("parse", log)
    watch("grammar", "explain", log, "--json")


@pytest.fixture
def planted(tmp_path: Path) -> tuple[Path, Path, list[str]]:
    """Two logs of failed runs, and the secrets of both."""
    r = random.Random(5)
    key = private_key(r, "", 30)
    block = Planted("private key", "as a file", "\n".join(key), tuple(key[1:-1]))
    paths, secrets = [], []
    for name, number in (("a.log", 1), ("b.log", 4)):
        data, held = log_of([*GROUPS[number][::2], block], number)
        path = tmp_path / name
        path.write_bytes(data)
        paths.append(path)
        secrets += held
    return paths[0], paths[1], secrets


def secret_env(r: random.Random) -> tuple[dict[str, str], list[str]]:
    """Return variables that state a header full of secrets, and these."""
    hf, url, hexa, opaque = FORMS["hf"](r), FORMS["postgres"](r), VALUES["hex-key"](r), VALUES["opaque"](r)
    name = FORMS["github-classic"](r)
    blob = {
        "git": {"branch": f"try-{name}", "message": f"use {hf}"},
        "flags": {"wandb_api_key": hexa, "data": url, "argv": f"--hub_token {opaque}", f"of {name}": 1},
        "execution": {"requested": f"token={opaque}"},
        "model": {"architecture": f"x {hf}"},
        "cwd": f"/runs/{name}",
        "software": {"packages": {f"pkg {name}": f"1.0+{hf}"}},
    }
    return {"RECEIPT_BUILD_PROVENANCE": json.dumps(blob)}, [hf, *secret_parts("", url), hexa, opaque, name]


def test_no_command_shows_or_writes_one(
    planted: tuple[Path, Path, list[str]], tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, secrets = planted
    r = random.Random(11)
    env, more = secret_env(r)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    stated = {key: FORMS[kind](r) for key, kind in (("name", "hf"), ("lane", "openai"), ("preset", "gitlab"))}
    remote = FORMS["git-remote"](r)
    watch = Watch(invoke, tmp_path, [*secrets, *more, *stated.values(), *secret_parts("", remote)])
    packed = tmp_path / "packed.log.gz"
    packed.write_bytes(gzip.compress(a.read_bytes()))
    ranks = tmp_path / "ranks"
    ranks.mkdir()
    for rank, log in enumerate((a, b)):
        (ranks / f"rank_{rank}.log").write_bytes(log.read_bytes())
    twice = tmp_path / "twice.log"
    twice.write_bytes(a.read_bytes() + b.read_bytes())
    watch.given = {a, b, packed, twice, *ranks.iterdir()}
    out = tmp_path / "out"
    out.mkdir()
    options = [text for key, value in stated.items() for text in (f"--{key}", f"run {value}")]
    first, second = out / "a.json", out / "b.json"
    watch("header", "-C", tmp_path, "-o", out / "header.json", *options)
    watch("parse", a, "-o", first, *options, "--attach", f"trace={remote}", "--html", out / "run.html")
    watch("parse", a, "--header", out / "header.json", "-o", second, "--color", "always", "--series", out / "series.parquet")
    for log in (packed, ranks, twice):
        watch("parse", log, "--json")
    watch("parse", twice, "--all-runs", "--json")
    watch("parse", "-", "--json", stdin=b.read_bytes())
    watch("parse", a, "--attach", f"trace={remote.split('://')[1]}", codes=(2,))
    for file in (first, a):
        watch("check", file, codes=(1,))
        watch("check", file, "--json", codes=(1,))
        pages = ["--summary", out / "s.md", "--junit", out / "j.xml", "--sarif", out / "s.sarif", "--dotenv", out / "env"]
        watch("ci", file, "--annotations", *pages, "--baseline", second, codes=(1,))
        watch("ci", file, "--json", codes=(1,))
    watch("export", a, "--to", "csv")
    for to in ("tensorboard", "wandb", "parquet"):  # those of a receipt: test_a_receipt_of_somebody_else_shows_none
        watch("export", a, "--to", to, "-o", out / to)
    for form in ((), ("--json",), ("--markdown", "-")):
        watch("compare", first, second, b, *form)
    watch("plot", a, codes=(0, 3))
    for form in ((), ("--json",)):
        watch("show", first, *form)
        watch("validate", first, *form)
        watch("verify", first, a, *form, codes=(0, 1))
        watch("migrate", first, *form)
        watch("grammar", "explain", a, *form)
        watch("grammar", "test", "hf-trainer", a, *form, codes=(0, 1, 2))
    watch("grammar", "learn", a, "-o", out / "draft.yaml", codes=(0, 4))
    store = out / "store"
    watch("rederive", a, b, ranks, "--store", store, "--workers", "1", codes=(0, 1))
    watch("store", "add", store, first)
    watch("store", "ls", store)
    watch("store", "ls", store, "--json")
    for view in ("runs", "failures", "problems", "header"):
        watch("store", "query", store, f"SELECT * FROM {view}", "--json", codes=(0, 2))
        watch("store", "query", store, f"SELECT * FROM {view}", "--csv", codes=(0, 2))
    watch("store", "stats", store)
    watch("store", "export", store, "-o", out / "views")
    watch("history", store, codes=(0, 1))
    watch("report", store, "-o", out / "report.html", "--title", f"of {stated['name']}")
    assert watch.masked > 200
    assert watch.files() > 20


def test_a_log_that_nobody_knows(tmp_path: Path, invoke: Invoke) -> None:
    texts = [one for one in CORPUS if "\n" not in one.text]
    for at in range(0, len(texts), 120):
        chosen = texts[at : at + 120]
        log = tmp_path / f"{at}.log"
        log.write_text("".join(f"zz loss=1.5 accuracy 0.25 {one.text}\n" for one in chosen))
        watch = Watch(invoke, tmp_path, [secret for one in chosen for secret in one.secrets])
        watch("parse", log, "--json", codes=(0, 4))
        watch("parse", log, codes=(0, 4))
        watch("grammar", "explain", log, codes=(0, 4))
        draft = tmp_path / f"{at}.yaml"
        watch("grammar", "learn", log, "-o", draft, codes=(0, 4))
        watch.given = {path for path in tmp_path.iterdir() if path.suffix == ".log"}
        watch.files()


@pytest.mark.parametrize("kind", FORMS)
def test_a_secret_in_every_metric_line_is_in_no_draft(kind: str, tmp_path: Path, invoke: Invoke) -> None:
    """What all lines of a log share would be the literal of a rule."""
    secret = FORMS[kind](random.Random(3))
    log = tmp_path / "x.log"
    log.write_text("".join(f"train {secret} step={n} loss={3 - n / 50:.4f} lr=0.001\n" for n in range(60)))
    watch = Watch(invoke, tmp_path, list(secret_parts(kind, secret)))
    watch("grammar", "learn", log, "-o", tmp_path / "draft.yaml", codes=(0, 4))
    watch("parse", log, "--json", codes=(0, 4))
    watch("parse", log, codes=(0, 4))
    watch.given = {log}
    watch.files()


def leaves(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all texts in a JSON value."""
    if isinstance(value, str):
        yield at
    elif isinstance(value, Mapping | list):
        for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from leaves(item, (*at, key))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_imported_documents(path: Path, tmp_path: Path, invoke: Invoke) -> None:
    r = random.Random(1)
    document = json.loads(path.read_text())
    places = list(leaves(document))
    for number, place in enumerate(r.sample(places, min(10, len(places)))):
        secret = FORMS[r.choice(["hf", "github-classic", "nvidia"])](r)
        opaque = VALUES["opaque"](r)
        changed = json.loads(path.read_text())
        holder = changed
        for key in place[:-1]:
            holder = holder[key]
        holder[place[-1]] = f"{holder[place[-1]]} {secret}, api_key={opaque}"
        if isinstance(holder, dict):
            holder[f"score {secret}"] = 0.25
            holder["auth_token"] = opaque
        file = tmp_path / f"{number}.json"
        file.write_text(json.dumps(changed))
        watch = Watch(invoke, tmp_path, [secret, opaque])
        watch("import", file, "--json", codes=(0, 3, 4, 5))
        watch("import", file, codes=(0, 3, 4, 5))
        watch("import", file, "--format", "hf-trainer-state", codes=(0, 3, 4, 5))


def test_a_receipt_of_somebody_else_shows_none(tmp_path: Path, invoke: Invoke) -> None:
    """Whoever wrote it did not mask."""
    r = random.Random(2)
    document = json.loads((ROOT / "fixtures" / "receipts" / "receipt-1.1" / "valid" / "from_log.json").read_text())
    secret, opaque = FORMS["hf"](r), VALUES["hex-key"](r)
    document["run"] |= {"name": f"x {secret}", "lane": f"y {secret}", "preset": f"z {secret}"}
    document["header"]["flags"] = {"api_key": opaque, "seed": 1}
    document["header"]["sources"] |= {"/flags/api_key": "file", "/flags/seed": "file"}
    document["derivation"]["problems"] = {
        "count": 1,
        "first": [{"kind": "x", "line_number": 1, "detail": f"d {secret}", "excerpt": f"password={opaque}"}],
    }
    path = tmp_path / "theirs.json"
    path.write_text(json.dumps(document))
    watch = Watch(invoke, tmp_path, [secret, opaque])
    for form in ((), ("--json",)):
        watch("show", path, *form, codes=(0, 1))
        watch("check", path, *form, codes=(0, 1))
        watch("ci", path, *form, codes=(0, 1))
        watch("compare", path, path, *form)
    pages = ["--summary", tmp_path / "s.md", "--junit", tmp_path / "j.xml", "--sarif", tmp_path / "s.sarif"]
    watch("ci", path, *pages, codes=(0, 1))
    for to in ("openmetrics", "otlp-json", "csv", "in-toto", "bmf"):
        watch("export", path, "--to", to, codes=(0, 2))
    for to in ("tensorboard", "wandb", "parquet"):
        watch("export", path, "--to", to, "-o", tmp_path / f"as-{to}")
    store = tmp_path / "store"
    watch("store", "add", store, path)
    for form in ((), ("--json",)):
        watch("store", "ls", store, *form)
        watch("store", "stats", store, *form)
        watch("history", store, *form)
    watch("report", store, "-o", tmp_path / "report.html")
    watch.given = {path, *(p for p in store.rglob("*") if p.is_file())}
    assert watch.files() >= 4


def test_what_is_found_is_what_leaks() -> None:
    secret = FORMS["hf"](random.Random(0))
    assert leaks([secret], f"x{secret[5:17]}y") == [secret]
    assert not leaks([secret], f"x{secret[5:16]}y")


def test_masks_are_counted_and_told(tmp_path: Path, invoke: Invoke) -> None:
    r = random.Random(9)
    log = tmp_path / "x.log"
    log.write_text(
        "{'loss': 2.5, 'grad_norm': 1.5, 'learning_rate': 1e-05, 'epoch': 0.1}\n" * 3
        + f"login with {FORMS['hf'](r)} and {FORMS['hf'](r)}\nWANDB_API_KEY={VALUES['hex-key'](r)}\n"
        + f"Traceback (most recent call last):\nValueError: {FORMS['gitlab'](r)}\n"
    )
    document = invoke("parse", log, "--json").document
    counts = document["derivation"]["redactions"]
    text = json.dumps([document["phases"], document["failure"], document["derivation"]])
    assert counts == {kind: text.count(f"[redacted:{kind}]") for kind in ("gitlab", "hf", "named")}
    assert counts["hf"] == 2 and counts["named"] == 1 and counts["gitlab"] >= 2  # an error quotes what stands before it
    shown = invoke("parse", log, "--full")
    assert re.search(r"masked\s+\d+", shown.stdout.decode())


@pytest.mark.parametrize("place", ["{}", "reward/{}", "data/run-7/{}", "/mnt/{}/x", "{}/step", "a/b/c/{}=1"])
def test_base64_of_an_assignment_is_masked_in_a_path(place: str) -> None:
    text = base64.b64encode(f"HF_TOKEN={FORMS['hf'](random.Random(8))}".encode()).decode()
    assert mask_secrets(place.format(text)) == place.format("[redacted:base64]")


def test_a_base64_of_a_private_key_is_one() -> None:
    text = base64.b64encode("\n".join(private_key(random.Random(4), "RSA ", 5)).encode()).decode()
    assert mask_secrets(f"data: {text}") == "data: [redacted:private-key]"
