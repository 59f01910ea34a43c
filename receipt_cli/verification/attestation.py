"""Sign a statement about a receipt and its log, and check such a signature.

The statement is in-toto's (https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md), the envelope is DSSE
(https://github.com/secure-systems-lab/dsse). The signature covers the digests of the log, of the receipt, and of the
definitions that the receipt was derived with. securesystemslib signs and checks; for an SSH key, ``ssh-keygen`` makes a
second signature for its own ``-Y verify``. ``keyless`` signs the same statement by sigstore.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.errors import InputError, NotAttested, OutputError, UsageError
from receipt_cli.io.file_kinds import read_file

if TYPE_CHECKING:
    from securesystemslib.signer import SSlibKey

PAYLOAD = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:receipt:predicate:derivation:1"
NAMESPACE = "receipt"
"""Namespace of SSH signatures (``ssh-keygen -n``)."""
DEFINITIONS = ("grammars", "markers", "registry", "peaks", "rules", "tool_version")
"""Fields of ``derivation`` that identify the definitions and the code of a receipt."""
MAX_BYTES = 64 << 20


class Signed(NamedTuple):
    """An attestation: the bytes of the envelope, and for an SSH key the SSH signature of the statement."""

    envelope: bytes
    statement: bytes
    ssh_signature: bytes | None


def statement(document: Mapping[str, Any], data: bytes, name: str) -> bytes:
    """Return the statement, as canonical JSON, about the receipt ``document`` in the file ``name`` with the bytes ``data``."""
    derivation = document["derivation"]
    log = derivation["log"]
    files = log.get("files") or [{"name": f"log of {name}", "sha256": log["sha256"]}]
    subjects = [{"name": name, "digest": {"sha256": hashlib.sha256(data).hexdigest()}}]
    subjects += [{"name": each["name"], "digest": {"sha256": each["sha256"]}} for each in files]
    predicate = {
        "schema_version": document["schema_version"],
        "log_sha256": log["sha256"],
        "definitions": {key: derivation[key] for key in DEFINITIONS if key in derivation},
        "checks": document["checks"],
    }
    return canonical_bytes({"_type": STATEMENT, "subject": subjects, "predicateType": PREDICATE, "predicate": predicate})


def attest(document: Mapping[str, Any], data: bytes, name: str, key: Path, password: bytes | None = None) -> Signed:
    """Sign the statement about a receipt with a private key in PEM (PKCS #8, RSA, EC) or OpenSSH format: Ed25519, ECDSA or RSA.

    Raises ``UsageError`` without the extra ``attest``, ``InputError`` for a key that cannot be read.
    """
    load_private, load_ssh = _crypto("load_pem_private_key", "load_ssh_private_key")
    from cryptography.exceptions import UnsupportedAlgorithm
    from securesystemslib.dsse import Envelope
    from securesystemslib.signer import CryptoSigner

    text = read_file(key, MAX_BYTES)
    is_ssh = b"OPENSSH PRIVATE KEY" in text
    try:
        private = (load_ssh if is_ssh else load_private)(text, password)
        signer = CryptoSigner(private)
    except TypeError as error:  # a password is missing or not needed
        raise InputError("cannot open the key", where=str(key), why=str(error), try_="set RECEIPT_KEY_PASSWORD") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InputError("is not a private key that can sign", where=str(key), why=str(error).partition("\n")[0]) from error
    payload = statement(document, data, name)
    envelope = Envelope(payload, PAYLOAD, {})
    envelope.sign(signer)
    return Signed(canonical_bytes(envelope.to_dict()), payload, _ssh_signature(payload, key) if is_ssh else None)


def check(envelope: bytes, signer: Path, document: Mapping[str, Any], data: bytes, where: str) -> str:
    """Return the id of the key that signed the statement about this receipt.

    ``signer`` is a public key (PEM or OpenSSH) or an X.509 certificate. Raises ``NotAttested`` if another key signed, or if
    the statement is about another receipt, log or other definitions; ``InputError`` for a file that is not an attestation
    or not a key.
    """
    public = _public_key(signer)
    from securesystemslib.dsse import Envelope
    from securesystemslib.exceptions import VerificationError

    try:
        opened = Envelope.from_dict(json.loads(envelope))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError("is not a DSSE envelope", where=where, why=f"{type(error).__name__}: {error}"[:200]) from error
    if public.keyid not in opened.signatures:
        known = ", ".join(sorted(opened.signatures)) or "nobody"
        raise NotAttested("is signed by another key", where=where, why=f"signed by {known[:200]}, not by {public.keyid}")
    try:
        opened.verify([public], threshold=1)
    except VerificationError as error:
        raise NotAttested("the signature is invalid", where=where, why=str(error)[:200]) from error
    compare(opened.payload_type, opened.payload, document, data, where)
    return public.keyid


def compare(kind: str, payload: bytes, document: Mapping[str, Any], data: bytes, where: str) -> None:
    """Raise ``NotAttested`` if a signed ``payload`` of the type ``kind`` is not the statement about this receipt."""
    if kind != PAYLOAD:
        raise NotAttested("is not an in-toto statement", where=where, why=f"its payload is {kind!r}")
    expected = statement(document, data, _subject_name(payload))
    if payload != expected:
        raise NotAttested("is about something else", where=where, why=_difference(payload, expected))


def _subject_name(payload: bytes) -> str:
    """Return the name of the receipt's file in the statement; the file may have been renamed."""
    try:
        return str(json.loads(payload)["subject"][0]["name"])
    except (ValueError, LookupError, TypeError) as error:
        raise NotAttested("is not a statement about a receipt", why=f"{type(error).__name__}: {error}"[:200]) from error


def _difference(signed: bytes, expected: bytes) -> str:
    """Return in words how the signed statement differs from this receipt's."""
    old, new = json.loads(signed), json.loads(expected)
    subjects = [subject["digest"] for subject in old.get("subject", ()) if isinstance(subject, dict) and "digest" in subject]
    if subjects[:1] != [new["subject"][0]["digest"]]:
        return "the bytes of the receipt are not those that were signed"
    if subjects != [subject["digest"] for subject in new["subject"]]:
        return "the log is not the one that was signed"
    return "the definitions are not those that were signed"


def _public_key(path: Path) -> SSlibKey:
    load_pem, load_ssh = _crypto("load_pem_public_key", "load_ssh_public_key")
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.x509 import load_pem_x509_certificate
    from securesystemslib.signer import SSlibKey

    text = read_file(path, MAX_BYTES)
    try:
        if b"BEGIN CERTIFICATE" in text:
            public = load_pem_x509_certificate(text).public_key()
        else:
            public = load_pem(text) if b"-----BEGIN" in text else load_ssh(text.strip())
        return SSlibKey.from_crypto(public)
    except (ValueError, UnsupportedAlgorithm) as error:
        why = str(error).partition("\n")[0]
        raise InputError("is not a public key or a certificate", where=str(path), why=why) from error


def _crypto(*names: str) -> tuple[Any, ...]:
    try:
        import securesystemslib.signer  # noqa: F401  the package signs only if cryptography is installed
        from cryptography.hazmat.primitives import serialization
    except ImportError as error:
        raise UsageError(
            "attestations need the extra attest", why=f"no module {error.name}", try_="pip install 'receipt-cli[attest]'"
        ) from error
    return tuple(getattr(serialization, name) for name in names)


def _ssh_signature(payload: bytes, key: Path) -> bytes | None:
    """Return the signature for ``ssh-keygen -Y verify``; None if ssh-keygen is not installed."""
    program = shutil.which("ssh-keygen")
    if program is None:
        return None
    with TemporaryDirectory() as folder:
        file = Path(folder, "statement")
        file.write_bytes(payload)
        command = [program, "-Y", "sign", "-q", "-n", NAMESPACE, "-f", str(key), str(file)]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode != 0:
            raise OutputError("ssh-keygen cannot sign", why=done.stderr.decode("utf-8", "replace").strip()[:200])
        return Path(folder, "statement.sig").read_bytes()
