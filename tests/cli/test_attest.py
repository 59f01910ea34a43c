"""``receipt attest`` and ``verify --attestation``: what is signed, by whom, and that no byte of it can change."""

import base64
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("securesystemslib")
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

from receipt_cli import attest, check_attestation
from receipt_cli.errors import InputError, ReceiptError

ROOT = Path(__file__).resolve().parents[2]
LOG = ROOT / "fixtures" / "logs" / "nanogpt" / "char-ok.log"
PEM, PKCS8, NONE = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
SPKI = serialization.PublicFormat.SubjectPublicKeyInfo


def run(*words: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "HOME": str(cwd), **environ}
    command = [sys.executable, "-m", "receipt_cli", *words]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a log, its receipt, and the keys of two people as OpenSSH writes them."""
    folder = tmp_path_factory.mktemp("made")
    shutil.copy(LOG, folder / "run.log")
    assert run("parse", "run.log", "--name", "run", "-o", "run.receipt.json", cwd=folder).returncode == 0
    for name in ("ana", "bob"):
        private = ed25519.Ed25519PrivateKey.generate()
        openssh = private.private_bytes(PEM, serialization.PrivateFormat.OpenSSH, NONE)
        (folder / name).write_bytes(openssh)
        (folder / name).chmod(0o600)
        public = private.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
        (folder / f"{name}.pub").write_bytes(public + b"\n")
    return folder


@pytest.fixture
def job(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "job"))


def pae(kind: str, payload: bytes) -> bytes:
    """What DSSE signs, by its specification."""
    return b" ".join([b"DSSEv1", b"%d" % len(kind), kind.encode(), b"%d" % len(payload), payload])


def test_a_signed_receipt_is_verified_with_its_log(job: Path) -> None:
    done = run("attest", "run.receipt.json", "--key", "ana", cwd=job)
    assert done.returncode == 0, done.stderr
    words = ("verify", "run.receipt.json", "run.log", "--attestation", "run.receipt.json.dsse.json", "--signer")
    good = run(*words, "ana.pub", cwd=job)
    assert good.returncode == 0, good.stderr
    assert good.stdout.splitlines()[-1].startswith("attested: signed by key ")
    assert json.loads(run(*words, "ana.pub", "--json", cwd=job).stdout)["signed_by"] in good.stdout
    other = run(*words, "bob.pub", cwd=job)
    assert (other.returncode, "is signed by another key" in other.stderr) == (1, True)
    alone = run(*words[:-1], cwd=job)
    assert (alone.returncode, "needs --signer, or --identity and --issuer" in alone.stderr) == (2, True)


def test_the_statement_names_log_receipt_and_definitions(job: Path) -> None:
    (envelope, *_) = attest(job / "run.receipt.json", job / "ana")
    document = json.loads(envelope.read_bytes())
    statement = json.loads(base64.b64decode(document["payload"]))
    receipt = json.loads((job / "run.receipt.json").read_bytes())
    assert document["payloadType"] == "application/vnd.in-toto+json"
    assert statement["subject"][0]["name"] == "run.receipt.json"
    assert statement["subject"][1]["digest"] == {"sha256": receipt["derivation"]["log"]["sha256"]}
    assert statement["predicate"]["definitions"]["grammars"] == receipt["derivation"]["grammars"]
    in_toto = pytest.importorskip("in_toto_attestation.v1.statement")
    from google.protobuf.json_format import ParseDict
    from in_toto_attestation.v1 import statement_pb2

    in_toto.Statement.copy_from_pb(ParseDict(statement, statement_pb2.Statement())).validate()


@pytest.mark.parametrize("kind", ["rsa", "ec"])
def test_keys_in_pem_sign_too(job: Path, kind: str) -> None:
    private: Any = rsa.generate_private_key(65537, 2048) if kind == "rsa" else ec.generate_private_key(ec.SECP256R1())
    (job / "key.pem").write_bytes(private.private_bytes(PEM, PKCS8, serialization.BestAvailableEncryption(b"open sesame")))
    (job / "public.pem").write_bytes(private.public_key().public_bytes(PEM, SPKI))
    with pytest.raises(InputError, match="cannot open the key"):
        attest(job / "run.receipt.json", job / "key.pem")
    done = run("attest", "run.receipt.json", "--key", "key.pem", "-o", "a.json", cwd=job, RECEIPT_KEY_PASSWORD="open sesame")
    assert done.returncode == 0, done.stderr
    assert check_attestation(job / "run.receipt.json", job / "a.json", job / "public.pem")
    if kind == "rsa":
        document = json.loads((job / "a.json").read_bytes())
        message = pae(document["payloadType"], base64.b64decode(document["payload"]))
        pss = padding.PSS(padding.MGF1(SHA256()), padding.PSS.AUTO)
        private.public_key().verify(base64.b64decode(document["signatures"][0]["sig"]), message, pss, SHA256())


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
def test_ssh_keygen_verifies_the_statement(job: Path) -> None:
    _, statement, signature = attest(job / "run.receipt.json", job / "ana")
    (job / "allowed").write_text(f"ana@example.org {(job / 'ana.pub').read_text()}")
    command = ["ssh-keygen", "-Y", "verify", "-f", "allowed", "-I", "ana@example.org", "-n", "receipt", "-s", str(signature)]
    good = subprocess.run(command, input=statement.read_bytes(), cwd=job, capture_output=True, check=False)
    assert good.returncode == 0, good.stderr
    bad = subprocess.run(command, input=statement.read_bytes() + b" ", cwd=job, capture_output=True, check=False)
    assert bad.returncode != 0


def test_no_byte_of_receipt_or_envelope_may_change(job: Path) -> None:
    receipt = job / "run.receipt.json"
    (envelope, *_) = attest(receipt, job / "ana")
    assert check_attestation(receipt, envelope, job / "ana.pub")
    for file in (receipt, envelope):
        whole = file.read_bytes()
        for at in range(0, len(whole), max(1, len(whole) // 60)):
            file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            with pytest.raises(ReceiptError) as refused:
                check_attestation(receipt, envelope, job / "ana.pub")
            assert refused.value.exit_code in (1, 3, 5), at
        file.write_bytes(whole)
    assert check_attestation(receipt, envelope, job / "ana.pub")


def test_another_log_and_other_definitions_are_refused(job: Path) -> None:
    (envelope, *_) = attest(job / "run.receipt.json", job / "ana")
    words = ("verify", "run.receipt.json", "run.log", "--attestation", envelope.name, "--signer", "ana.pub")
    log = job / "run.log"
    log.write_bytes(log.read_bytes().replace(b"4.2", b"4.3", 1))
    assert run(*words, cwd=job).returncode == 1
    document = json.loads((job / "run.receipt.json").read_bytes())
    document["derivation"]["markers"]["sha256"] = "0" * 64
    (job / "other.receipt.json").write_text(json.dumps(document))
    with pytest.raises(ReceiptError, match="is about something else") as refused:
        check_attestation(job / "other.receipt.json", envelope, job / "ana.pub")
    assert refused.value.why == "the bytes of the receipt are not those that were signed"


@pytest.mark.parametrize("text", [b"", b"[]", b'{"payload": "e30=", "signatures": []}'])
def test_what_is_no_attestation_says_so(job: Path, text: bytes) -> None:
    (job / "a.json").write_bytes(text)
    with pytest.raises(InputError, match="DSSE envelope"):
        check_attestation(job / "run.receipt.json", job / "a.json", job / "ana.pub")


def test_what_is_no_key_says_so(job: Path) -> None:
    with pytest.raises(InputError, match="is not a private key that can sign"):
        attest(job / "run.receipt.json", job / "run.log")
    (envelope, *_) = attest(job / "run.receipt.json", job / "ana")
    with pytest.raises(InputError, match="is not a public key or a certificate"):
        check_attestation(job / "run.receipt.json", envelope, job / "run.log")
