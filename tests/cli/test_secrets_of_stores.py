"""No secret of a tracker's file, a setting or a watched log leaves by import, config, watch, its commands or a store's export."""

import csv
import json
import random
import sqlite3
import sys
from pathlib import Path

import pytest

from receipt_cli.export.wandb_run import framed as wandb_framed
from receipt_cli.io.protobuf import block, double, integer, single
from receipt_cli.io.protobuf import framed as tf_framed
from tests.cli.test_secrets import GROUPS, Invoke, Watch, log_of
from tests.tools.planted import FORMS, secret_parts

TRACKERS = Path(__file__).resolve().parents[2] / "fixtures" / "foreign" / "trackers"
FORMATS = ("mlflow", "wandb", "tensorboard", "openmetrics", "otlp-json", "parquet", "csv", "in-toto", "bmf")


def texts_of(seed: int) -> dict[str, str]:
    """Return a text with a secret of each form, by its name."""
    draw = random.Random(seed)
    return {kind: form(draw) for kind, form in FORMS.items()}


def test_files_of_trackers(tmp_path: Path, invoke: Invoke) -> None:
    texts = texts_of(21)
    secrets, parts = list(texts.values()), [part for kind, text in texts.items() for part in secret_parts(kind, text)]
    files = tmp_path / "files"
    files.mkdir()
    names = ["step", "loss", *(f"reward/{secret}" for secret in secrets)]
    rows = [[n, 2.5 - n / 10, *(0.5 for _ in secrets)] for n in range(8)]
    with (files / "metrics.csv").open("w", newline="", encoding="utf-8") as table:
        csv.writer(table).writerows([names, *rows])
    lines = [{**dict(zip(names, row, strict=True)), "note": secret} for row, secret in zip(rows, secrets, strict=False)]
    (files / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    (files / "history.json").write_text(json.dumps({name: [0.5, 0.4] for name in names[1:]}), "utf-8")
    with sqlite3.connect(files / "mlflow.db") as opened:
        opened.executescript((TRACKERS / "mlflow.sql").read_text("utf-8"))
        opened.execute("DELETE FROM runs WHERE name != 'good'")
        opened.execute("UPDATE runs SET name = ?", (f"run of {secrets[0]}",))
        opened.executemany("UPDATE params SET value = ? WHERE rowid IN (SELECT rowid FROM params LIMIT 1)", [(secrets[1],)])
        opened.execute("UPDATE metrics SET key = ? WHERE key = 'stepless'", (secrets[2],))
    opened.close()
    watch = Watch(invoke, tmp_path, parts)
    watch.given = {*files.iterdir()}
    for file in sorted(watch.given):
        watch("import", file)
        watch("import", file, "--json")
    store = tmp_path / "store"
    watch("import", *sorted(watch.given), "--store", store)
    watch("store", "ls", store, "--json")
    assert watch.masked and watch.files()


def test_binary_files_of_trackers(tmp_path: Path, invoke: Invoke) -> None:
    """The framing and messages are those of the real libraries' files, which ``test_import_trackers`` reads."""
    texts = texts_of(24)
    secrets, parts = list(texts.values()), [part for kind, text in texts.items() for part in secret_parts(kind, text)]
    names = ["loss", *(f"reward/{secret}" for secret in secrets)]
    board, offline = tmp_path / "board", tmp_path / "offline-run-1"
    (offline / "files").mkdir(parents=True)
    board.mkdir()
    writer = block(10, block(1, f"writer of {secrets[0]}"))
    scalars = [b"".join(block(1, block(1, name) + single(2, 2.5 - step / 10)) for name in names) for step in range(8)]
    events = [double(1, 9e8) + block(3, "brain.Event:2") + writer]
    events += [double(1, 9e8 + step) + integer(2, step) + block(5, scalar) for step, scalar in enumerate(scalars)]
    (board / f"events.out.tfevents.1700000000.{secrets[0]}.1.0").write_bytes(b"".join(map(tf_framed, events)))
    keys = [f"of {secrets[1]}", "batch_size", *(f"k{n}" for n in range(len(secrets)))]
    config = b"".join(block(1, block(1, key) + block(16, json.dumps(text))) for key, text in zip(keys, secrets, strict=False))
    rows = [{"_step": step, "_timestamp": 9e8 + step, **dict.fromkeys(names, 2.5 - step / 10)} for step in range(8)]
    items = [b"".join(block(1, block(1, key) + block(16, json.dumps(value))) for key, value in row.items()) for row in rows]
    git = block(21, block(1, secrets[3]) + block(2, secrets[2]))
    named = block(1, "r1") + block(3, secrets[5]) + block(4, config) + block(8, f"run {secrets[4]}") + git
    records = [block(21, block(1, block(1, f"0.31 {secrets[6]}"))), block(17, named), *(block(2, item) for item in items)]
    (offline / "run-r1.wandb").write_bytes(wandb_framed([*records, block(18, integer(1, 1))]))
    about = {"args": ["--token", *secrets], "program": secrets[7], "host": secrets[8], "git": {"remote": texts["git-remote"]}}
    (offline / "files" / "wandb-metadata.json").write_text(json.dumps(about), "utf-8")
    watch = Watch(invoke, tmp_path, parts)
    watch.given = {path for path in tmp_path.rglob("*") if path.is_file()}
    for source in (board, offline, offline / "run-r1.wandb"):
        watch("import", source)
        done = watch("import", source, "--json")
        assert done.document["summary"]["steps"]["record_count"] == 8
        watch("import", source, "-o", tmp_path / "one.json")
        watch("export", tmp_path / "one.json", "--to", "parquet", "-o", tmp_path / f"{source.name}.parquet")
    watch("import", offline, "--store", tmp_path / "store")
    watch("store", "export", tmp_path / "store", "-o", tmp_path / "tables")
    assert watch.masked and watch.files()


def test_a_store_in_every_format(tmp_path: Path, invoke: Invoke) -> None:
    data, secrets = log_of(GROUPS[3], 3)
    named = texts_of(22)["hf"]
    log, store = tmp_path / "run.log", tmp_path / "store"
    log.write_bytes(data)
    watch = Watch(invoke, tmp_path, [*secrets, named])
    watch.given = {log}
    watch("rederive", log, "--store", store, codes=(0, 1))
    watch("parse", log, "-o", tmp_path / "named.json", "--name", f"of {named}", "--lane", named)
    watch("store", "add", store, tmp_path / "named.json")
    for name in FORMATS:
        watch("export", store, "--to", name, "-o", tmp_path / "out" / name, codes=(0, 2))
    assert watch.files() > len(FORMATS)


def test_what_a_watch_shows_and_gives_to_a_command(tmp_path: Path, invoke: Invoke) -> None:
    data, secrets = log_of(GROUPS[4], 4)
    logs, script = tmp_path / "logs", tmp_path / "hook.py"
    logs.mkdir()
    (logs / "run.log").write_bytes(data)
    seen = tmp_path / "seen.txt"
    script.write_text(
        "import os, sys\n"
        "given = {name: value for name, value in os.environ.items() if name.startswith('RECEIPT_')}\n"
        f"open({str(seen)!r}, 'a').write(repr(given) + open(given['RECEIPT_FILE']).read())\n",
        "utf-8",
    )
    watch = Watch(invoke, tmp_path, secrets)
    watch.given = {logs / "run.log", script}
    command = f"{sys.executable} {script}"
    watch("watch", logs, "--once", "--on-failure", command, "--on-end", command, codes=(0, 1))
    assert "[redacted:" in seen.read_text("utf-8")
    assert watch.files()


def test_settings(tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = [text for kind, text in texts_of(23).items() if kind in ("hf", "openai", "gitlab")]
    (tmp_path / "receipt.toml").write_text(f'lane = "{secrets[0]}"\nname = "run {secrets[1]}"\n', "utf-8")
    monkeypatch.setenv("RECEIPT_PRESET", secrets[2])
    monkeypatch.chdir(tmp_path)
    watch = Watch(invoke, tmp_path, secrets)
    for form in ((), ("--json",)):
        watch("config", *form)
    assert watch.masked
    (tmp_path / "receipt.toml").write_text(f'lane = 7\n{secrets[0][:20]} = "{secrets[1]}"\nname = {secrets[2]}\n', "utf-8")
    watch("config", codes=(2,))
