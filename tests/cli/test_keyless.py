"""``receipt attest --sigstore`` and ``verify --attestation --identity``: with a sigstore of the test's own, offline."""

import base64
import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("sigstore")
import sigstore.models
import sigstore.oidc
import sigstore.sign
from sigstore.errors import NetworkError

from receipt_cli import attest, check_attestation
from receipt_cli.errors import NotAttested
from tests.cli.conftest import Invoke
from tests.cli.private_sigstore import PrivateSigstore

ROOT = Path(__file__).resolve().parents[2]
LOG = ROOT / "fixtures" / "logs" / "nanogpt" / "char-ok.log"
ANA, ISSUER = "ana@example.org", "https://login.example.org"


@pytest.fixture
def private(tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> PrivateSigstore:
    """A folder with a log and its receipt; signatures are by the private instance, in the name of Ana."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(LOG, "run.log")
    assert invoke("parse", "run.log", "--name", "run", "-o", "run.receipt.json").code == 0
    made = PrivateSigstore(ANA, ISSUER, tmp_path)
    trust, public = sigstore.models.ClientTrustConfig, sigstore.models.ClientTrustConfig.production
    monkeypatch.setattr(trust, "production", lambda offline=False: public(offline) if offline else None)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))  # where sigstore keeps the public root
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sigstore.sign.SigningContext, "from_trust_config", lambda trust: made.context())
    monkeypatch.setattr(sigstore.oidc, "detect_credential", made.token)
    return made


VERIFY = "verify run.receipt.json run.log --attestation run.receipt.json.sigstore.json --trusted-root trusted_root.json"


def test_a_receipt_is_signed_by_an_identity_and_verified(private: PrivateSigstore, invoke: Invoke) -> None:
    assert invoke("attest", "run.receipt.json", "--sigstore").code == 0
    good = invoke(*VERIFY.split(), "--identity", ANA, "--issuer", ISSUER)
    assert (good.code, good.stdout.decode().splitlines()[-1]) == (0, f"attested: signed by {ANA}"), good.stderr
    for who in (("--identity", "bob@example.org", "--issuer", ISSUER), ("--identity", ANA, "--issuer", "https://else.org")):
        other = invoke(*VERIFY.split(), *who)
        assert (other.code, "or by another signer" in other.stderr) == (1, True), other.stderr
    alone = invoke(*VERIFY.split())
    assert (alone.code, "needs --signer, or --identity and --issuer" in alone.stderr) == (2, True)
    public = invoke(*VERIFY.partition(" --trusted-root")[0].split(), "--identity", ANA, "--issuer", ISSUER)
    assert (public.code, "or by another signer" in public.stderr) == (1, True), "the public instance does not know this one"


def check(private: PrivateSigstore, receipt: str = "run.receipt.json") -> str:
    bundle = "run.receipt.json.sigstore.json"
    return check_attestation(receipt, bundle, identity=ANA, issuer=ISSUER, trusted_root=private.trusted_root)


def test_another_receipt_is_refused(private: PrivateSigstore, invoke: Invoke) -> None:
    [bundle] = attest("run.receipt.json", sigstore=True)
    assert bundle.name == "run.receipt.json.sigstore.json"
    assert check(private) == ANA
    Path("other.log").write_bytes(Path("run.log").read_bytes().replace(b"loss 2.", b"loss 3.", 1))
    assert invoke("parse", "other.log", "--name", "run", "-o", "other.receipt.json").code == 0
    with pytest.raises(NotAttested, match="is about something else"):
        check(private, "other.receipt.json")


@pytest.mark.parametrize("part", ["payload", "signature", "certificate", "entry", "promise", "checkpoint"])
def test_a_changed_part_of_a_bundle_is_refused(private: PrivateSigstore, part: str) -> None:
    [path] = attest("run.receipt.json", sigstore=True)
    bundle = json.loads(path.read_bytes())
    [entry] = bundle["verificationMaterial"]["tlogEntries"]
    where, key = {
        "payload": (bundle["dsseEnvelope"], "payload"),
        "signature": (bundle["dsseEnvelope"]["signatures"][0], "sig"),
        "certificate": (bundle["verificationMaterial"]["certificate"], "rawBytes"),
        "entry": (entry, "canonicalizedBody"),
        "promise": (entry["inclusionPromise"], "signedEntryTimestamp"),
        "checkpoint": (entry["inclusionProof"], "rootHash"),
    }[part]
    data = bytearray(base64.b64decode(where[key]))
    data[-1] ^= 1
    where[key] = base64.b64encode(data).decode()
    path.write_text(json.dumps(bundle))
    with pytest.raises(NotAttested):
        check(private)


def test_without_a_network_or_an_identity_nothing_is_signed(
    private: PrivateSigstore, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise NetworkError("no route to host")

    monkeypatch.setattr(sigstore.models.ClientTrustConfig, "production", refuse)
    offline = invoke("attest", "run.receipt.json", "--sigstore")
    assert (offline.code, "sigstore cannot sign" in offline.stderr, "needs the network" in offline.stderr) == (6, True, True)
    monkeypatch.setattr(sigstore.oidc, "detect_credential", lambda: None)
    nobody = invoke("attest", "run.receipt.json", "--sigstore")
    assert (nobody.code, "--sigstore needs an identity" in nobody.stderr) == (2, True), nobody.stderr
    assert not Path("run.receipt.json.sigstore.json").exists()
