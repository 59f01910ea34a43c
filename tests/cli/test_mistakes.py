"""Files of the wrong kind and names that nobody knows: one line says what is wrong, and what to do."""

import json
import shutil
import struct
from pathlib import Path

import pytest

import receipt_cli
from receipt_cli.errors import InputError
from tests.cli.conftest import Invoke

ROOT = Path(__file__).resolve().parents[2]
LOG = ROOT / "fixtures" / "logs" / "nanogpt" / "char-ok.log"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for what each test finds on its desk, which the first one makes."""
    return tmp_path_factory.mktemp("prepared") / "desk"


@pytest.fixture
def desk(tmp_path: Path, prepared: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one file of each kind; commands run in it."""
    if not prepared.exists():
        prepared.mkdir()
        monkeypatch.chdir(prepared)
        fill(prepared, invoke)
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fill(desk: Path, invoke: Invoke) -> None:
    """Put one file of each kind on the desk."""
    (desk / "run.log").write_bytes(LOG.read_bytes())
    assert invoke("parse", "run.log", "-o", "run.receipt.json").code == 0
    assert invoke("header", "-o", "header.json").code == 0
    assert invoke("store", "add", "store", "run.receipt.json").code == 0
    notebook = {"cells": [{"cell_type": "code", "source": ["1"]}], "nbformat": 4}
    event = struct.pack("<Q", 24) + b"crc4\x09" + bytes(8) + b"\x1a\x0dbrain.Event:2" + bytes(8)
    files = {
        "page.html": b"<!DOCTYPE html>\n<html><body>report</body></html>\n",
        "notebook.ipynb": json.dumps(notebook).encode(),
        "events.tfevents": event,
        "program": b"\x7fELF\x02\x01\x01" + bytes(100),
        "logs.zip": b"PK\x03\x04" + bytes(60),
        "model.pt": b"PK\x03\x04" + bytes(26) + b"archive/data.pkl" + bytes(60),
        "model.safetensors": struct.pack("<Q", 64) + b'{"__metadata__":{}}'.ljust(64) + bytes(64),
        "old.pkl": b"\x80\x04\x95" + bytes(60),
        "runs.db": b"SQLite format 3\0" + bytes(100),
        "steps.parquet": b"PAR1" + bytes(60),
        "run-1.wandb": b":W&B" + bytes(60),
        "curve.png": b"\x89PNG\r\n\x1a\n" + bytes(60),
        "paper.pdf": b"%PDF-1.7\n" + bytes(60),
        "run.sigstore.json": b'{"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json", "dsseEnvelope": {}}',
        "key": b"no key\n",
        "run.dsse.json": b'{"payload": "e30=", "payloadType": "application/vnd.in-toto+json", "signatures": []}',
    }
    for name, data in files.items():
        (desk / name).write_bytes(data)
    (desk / "folder").mkdir()


MISTAKES = [
    # a file of the wrong kind
    ("parse run.receipt.json", 3, "is a receipt, not a log", "receipt show run.receipt.json"),
    ("parse header.json", 3, "is a header, not a log", "receipt parse LOG --header header.json"),
    ("parse store", 3, "is a store, not a log", "receipt store ls store"),
    ("parse folder", 3, "is a directory that holds no log", ""),
    ("parse page.html", 3, "is a page of HTML, not a log", "open it in a browser"),
    ("parse notebook.ipynb", 3, "is a notebook, not a log", "nbconvert --to markdown --stdout notebook.ipynb"),
    ("parse events.tfevents", 3, "is an event file of TensorBoard, not a log", "receipt import events.tfevents"),
    ("parse program", 3, "is an executable, not a log", "receipt run --log run.log -- program"),
    ("parse logs.zip", 3, "is a zip archive, not a log", "unzip -p logs.zip | receipt parse -"),
    ("parse model.pt", 3, "is a checkpoint, not a log", "receipt parse LOG"),
    ("parse model.safetensors", 3, "is a checkpoint, not a log", "receipt parse LOG"),
    ("parse old.pkl", 3, "is a pickle, not a log", "receipt parse LOG"),
    ("parse runs.db", 3, "is an SQLite database, not a log", "receipt import runs.db"),
    ("parse steps.parquet", 3, "is a Parquet file, not a log", "receipt report STORE --series-from FOLDER"),
    ("parse run-1.wandb", 3, "is a run file of W&B, not a log", "receipt import run-1.wandb"),
    ("parse curve.png", 3, "is an image, not a log", "receipt parse LOG"),
    ("parse paper.pdf", 3, "is a PDF, not a log", "receipt parse LOG"),
    ("parse run.dsse.json", 3, "is an attestation, not a log", "receipt verify RECEIPT LOG --attestation run.dsse.json"),
    ("check page.html", 3, "is a page of HTML, not a log", "open it in a browser"),
    ("ci program", 3, "is an executable, not a log", "receipt run"),
    ("plot store", 3, "is a store, not a log", "receipt store ls store"),
    ("grammar explain run.receipt.json", 3, "is a receipt, not a log", "receipt show run.receipt.json"),
    ("show run.log", 3, "document is not JSON", "receipt parse run.log"),
    ("show folder", 3, "is a folder, not a file", "receipt parse folder"),
    ("show store", 3, "is a store, not a file", "receipt store ls store"),
    ("show program", 3, "is an executable, not a document", "receipt run --log run.log -- program"),
    ("show events.tfevents", 3, "is an event file of TensorBoard, not a document", "receipt import events.tfevents"),
    ("validate run.log", 3, "document is not JSON", "receipt parse run.log"),
    ("validate folder", 3, "is a folder, not a file", "receipt parse folder"),
    ("validate notebook.ipynb", 3, "is a notebook, not a document", "nbconvert"),
    ("migrate page.html", 3, "is a page of HTML, not a document", "open it in a browser"),
    ("store add store run.log", 3, "document is not JSON", "receipt parse run.log"),
    ("store add store header.json", 2, "a store does not take 'header/1.0'", ""),
    ("verify run.log run.receipt.json", 3, "document is not JSON", "receipt parse run.log"),
    ("export header.json --to csv", 3, "header/1.0", ""),
    # a name that nobody knows
    ("run.log", 2, "no such command: run.log", "receipt parse run.log"),
    ("parse https://host/run.log", 3, "a log is a file, not a URL", "curl -sL https://host/run.log | receipt parse -"),
    ("compare run.log run.receipt.json --markdown run.log", 2, "a file that is not Markdown (run.log)", "--markdown - prints it"),
    ("parse missing.log", 3, "no such log", ""),
    ("parse run.log -g nanogtp", 5, "no grammar nanogtp", "receipt grammar list"),
    ("parse run.log -g nanogpt@v9", 5, "no grammar nanogpt@v9", "receipt grammar list"),
    ("grammar show nanogtp", 5, "no grammar nanogtp", "receipt grammar list"),
    ("plot run.log -m los", 2, "the run has no metric 'los'", "--metric loss"),
    ("explain run.log --metric los", 2, "has no metric los", ""),
    ("schema show recept", 5, "there is no schema recept", ""),
    ("store stats store tokns", 2, "QUESTION cannot be 'tokns'", "receipt store stats --help"),
    ("completion tcsh", 2, "SHELL cannot be 'tcsh'", "receipt completion --help"),
    ("compare run.log", 2, "compare needs at least two runs", "receipt compare before.log after.log"),
    ("verify run.receipt.json", 2, "missing argument: LOG", "receipt verify --help"),
    # the newer commands
    ("parse run.sigstore.json", 3, "is a bundle of sigstore, not a log", "--identity NAME --issuer URL"),
    ("attest run.receipt.json", 2, "an attestation needs a key or sigstore", "--key KEY"),
    ("attest run.log --key key", 3, "document is not JSON", "receipt parse run.log"),
    ("attest run.receipt.json --key missing", 3, "cannot read (missing)", ""),
    ("verify run.receipt.json run.log --signer key", 2, "--attestation and --signer go together", ""),
    ("verify run.receipt.json run.log --attestation run.dsse.json", 2, "needs --signer, or --identity", "receipt verify --help"),
    ("import missing.db", 3, "no such log (missing.db)", ""),
    ("import run.log", 4, "the format of this document is unknown", "receipt parse LOG"),
    ("import program", 3, "is an executable", ""),
    ("import curve.png", 3, "is an image", ""),
    ("config lanes", 2, "lanes", "receipt config --help"),
    ("export missing --to csv", 3, "missing", ""),
    ("export store --to csvv", 2, "--to cannot be 'csvv'", "receipt export --help"),
    ("store show store nobody", 3, "nobody", "receipt store ls store"),
    ("show nobody", 3, "nobody", ""),
    ("compare run.receipt.json nobody", 3, "nobody", ""),
    ("parse run.log --evidence missing.json", 3, "cannot read the evidence (missing.json)", ""),
    ("parse run.log --evidence run.log", 3, "unknown form of evidence (run.log)", "sacct --json"),
    ("parse run.log --evidence run.receipt.json", 3, "unknown form of evidence (run.receipt.json)", "sacct --json"),
    ("parse run.log --job 12", 2, "--job goes with --evidence", "--evidence FILE --job ID"),
    ("plot run.log nobody", 3, "no such log (nobody)", ""),
    ("plot run.log run.log -m los", 2, "no run has the metric 'los'", "--metric loss"),
    ("store ask store fastst", 2, "no recipe 'fastst'", "the recipes are failures, best, slowest"),
]


@pytest.mark.parametrize(("line", "code", "what", "way"), MISTAKES, ids=[line for line, *_ in MISTAKES])
def test_a_mistake_gives_one_line_to_act_on(desk: Path, invoke: Invoke, line: str, code: int, what: str, way: str) -> None:
    done = invoke(*line.split())
    told = [text for text in done.stderr.splitlines() if text.startswith("receipt: error:")]
    assert (done.code, len(told)) == (code, 1), done.stderr
    assert what in told[0]
    assert way in done.stderr
    assert "Traceback" not in done.stderr


def test_a_dead_link_says_where_it_points(desk: Path, invoke: Invoke) -> None:
    (desk / "dead.log").symlink_to("gone/run.log")
    done = invoke("parse", "dead.log")
    assert (done.code, done.stderr) == (3, "receipt: error: the link has no file (dead.log)\n  why: it points to gone/run.log\n")


def test_a_long_path_is_not_repeated_and_an_exception_names_it(desk: Path, invoke: Invoke) -> None:
    log = desk / f"{'long' * 10}.log"
    log.write_bytes(b"no record\n" * 30)
    assert invoke("parse", log).stderr.endswith("  try: receipt grammar learn LOG\n")
    with pytest.raises(InputError, match=r"no such log \(nope.log\)"):
        receipt_cli.read("nope.log")
