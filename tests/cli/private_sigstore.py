"""A sigstore of its own for a test: a certificate authority, a log of certificates and a log of signatures, in memory.

``sigstore`` signs and checks with it as with the public one; only the network is left out. Formats: RFC 6962 (3.2 and 3.3),
Rekor's ``dsse`` 0.0.1, the signed note of a checkpoint, and ``trustedroot+json;version=0.1``.
"""

import base64
import hashlib
import json
import struct
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from sigstore.models import TransparencyLogEntry, TrustedRoot
from sigstore.sign import SigningContext

ISSUER_OID = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.1")
SCT_LIST_OID = x509.ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")
USAGES = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
USAGES += ("key_cert_sign", "crl_sign", "encipher_only", "decipher_only")
DER, SPKI = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


class Log:
    """A log with its key; its id is the digest of that."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.public = self.key.public_key().public_bytes(DER, SPKI)
        self.id = hashlib.sha256(self.public).digest()

    def sign(self, data: bytes) -> bytes:
        return self.key.sign(data, ec.ECDSA(hashes.SHA256()))

    def trusted(self) -> dict[str, Any]:
        valid = {"start": "2020-01-01T00:00:00Z"}
        key = {"rawBytes": b64(self.public), "keyDetails": "PKIX_ECDSA_P256_SHA_256", "validFor": valid}
        return {"baseUrl": "https://log.test", "hashAlgorithm": "SHA2_256", "publicKey": key, "logId": {"keyId": b64(self.id)}}


class PrivateSigstore:
    """Certificates for ``identity``, for which ``issuer`` vouches."""

    def __init__(self, identity: str, issuer: str, folder: Path) -> None:
        self.identity, self.issuer = identity, issuer
        self.certificates, self.signatures = Log(), Log()
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.now = datetime.now(UTC).replace(microsecond=0)
        names = {NameOID.COMMON_NAME: "private", NameOID.ORGANIZATION_NAME: "test"}
        name = x509.Name([x509.NameAttribute(*each) for each in names.items()])
        self.usage = dict.fromkeys(USAGES, False)
        self.root = (
            self._certificate(name, name, self.key.public_key(), timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=True, path_length=1), critical=True)
            .add_extension(x509.KeyUsage(**(self.usage | {"key_cert_sign": True, "crl_sign": True})), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        authority = {
            "subject": {"organization": "test", "commonName": "private"},
            "uri": "https://authority.test",
            "certChain": {"certificates": [{"rawBytes": b64(self.root.public_bytes(DER))}]},
            "validFor": {"start": "2020-01-01T00:00:00Z"},
        }
        self.trusted_root = folder / "trusted_root.json"
        self.trusted_root.write_bytes(
            canonical(
                {
                    "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
                    "tlogs": [self.signatures.trusted()],
                    "certificateAuthorities": [authority],
                    "ctlogs": [self.certificates.trusted()],
                    "timestampAuthorities": [],
                }
            )
        )
        self.signing_cert = SimpleNamespace(post=self._issue)

    def context(self) -> SigningContext:
        """Return the context of a signature, with this object as both services."""
        root = TrustedRoot.from_file(str(self.trusted_root))
        return SigningContext(fulcio=self, rekor=self, trusted_root=root)  # type: ignore[arg-type]

    def token(self) -> str:
        """Return an identity token, as a host of CI gives one to a job."""
        claims = {"aud": "sigstore", "sub": self.identity, "iss": self.issuer, "iat": time.time() - 5, "exp": time.time() + 600}
        parts = (canonical({"alg": "HS256", "typ": "JWT"}), canonical(claims), b"unsigned")
        return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)

    def _certificate(self, subject: x509.Name, issuer: x509.Name, key: Any, valid: timedelta) -> x509.CertificateBuilder:
        start = self.now - timedelta(minutes=5)
        return x509.CertificateBuilder(issuer, subject, key, x509.random_serial_number(), start, self.now + valid)

    def _issue(self, request: x509.CertificateSigningRequest, token: Any) -> Any:
        """Return a certificate with the log's promise inside: over what it is without that."""
        assert token.identity == self.identity
        builder = (
            self._certificate(x509.Name([]), self.root.subject, request.public_key(), timedelta(minutes=10))
            .add_extension(x509.KeyUsage(**(self.usage | {"digital_signature": True})), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), critical=False)
            .add_extension(x509.SubjectAlternativeName([x509.RFC822Name(self.identity)]), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
            .add_extension(x509.UnrecognizedExtension(ISSUER_OID, self.issuer.encode()), critical=False)
        )
        body = builder.sign(self.key, hashes.SHA256()).tbs_certificate_bytes
        stamp = int(self.now.timestamp() * 1000)
        authority = hashlib.sha256(self.key.public_key().public_bytes(DER, SPKI)).digest()
        entry = authority + len(body).to_bytes(3, "big") + body
        signature = self.certificates.sign(struct.pack("!BBQH", 0, 0, stamp, 1) + entry + b"\0\0")
        promise = b"\0" + self.certificates.id + struct.pack("!QHBBH", stamp, 0, 4, 3, len(signature)) + signature
        listed = struct.pack("!HH", len(promise) + 2, len(promise)) + promise
        octets = b"\4" + (bytes([len(listed)]) if len(listed) < 128 else bytes([0x81, len(listed)])) + listed
        whole = builder.add_extension(x509.UnrecognizedExtension(SCT_LIST_OID, octets), critical=False)
        return SimpleNamespace(cert=whole.sign(self.key, hashes.SHA256()), chain=[self.root])

    def _build_dsse_request(self, *, envelope: Any, certificate: x509.Certificate) -> bytes:
        """Return the body of the log's entry, as Rekor writes it."""
        text = envelope.to_json()
        document = json.loads(text)
        verifier = b64(certificate.public_bytes(serialization.Encoding.PEM))
        spec = {
            "envelopeHash": {"algorithm": "sha256", "value": hashlib.sha256(text.encode()).hexdigest()},
            "payloadHash": {"algorithm": "sha256", "value": hashlib.sha256(base64.b64decode(document["payload"])).hexdigest()},
            "signatures": [{"signature": each["sig"], "verifier": verifier} for each in document["signatures"]],
        }
        return canonical({"apiVersion": "0.0.1", "kind": "dsse", "spec": spec})

    def create_entry(self, body: bytes) -> TransparencyLogEntry:
        """Return the only entry of a log: its leaf is the root of the tree."""
        leaf = hashlib.sha256(b"\0" + body).digest()
        note = f"log.test - 1\n1\n{b64(leaf)}\n"
        signed = b64(self.signatures.id[:4] + self.signatures.sign(note.encode()))
        entry = {"body": b64(body), "integratedTime": int(self.now.timestamp()), "logID": self.signatures.id.hex(), "logIndex": 0}
        checkpoint = f"{note}\n— log.test {signed}\n"
        proof = {"checkpoint": checkpoint, "hashes": [], "logIndex": 0, "rootHash": leaf.hex(), "treeSize": 1}
        promise = b64(self.signatures.sign(canonical(entry)))
        verification = {"inclusionProof": proof, "signedEntryTimestamp": promise}
        return TransparencyLogEntry._from_v1_response({"uuid": entry | {"verification": verification}})
