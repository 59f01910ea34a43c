"""Sign a statement, and check such a signature, by sigstore: with an identity instead of a key.

``sigstore`` (https://github.com/sigstore/sigstore-python, the extra ``sigstore``) does both. Signing uses two services over
the network: Fulcio for a certificate of the identity, Rekor for an entry in its public log. Checking needs no network: it
trusts the library's own root, or one in a file.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any, NamedTuple

from receipt_cli.errors import InputError, NotAttested, OutputError, UsageError


class Identity(NamedTuple):
    """A trusted signer: the name in the certificate (an address, or the URL of a workflow), and its issuer."""

    name: str
    issuer: str


def sign_keyless(statement: bytes) -> bytes:
    """Return a sigstore bundle with the signature of an in-toto statement.

    The identity is the CI job's, if its host offers one (GitHub, GitLab, Google Cloud, Buildkite), else that of a person who
    logs in with a browser, which needs a terminal. Raises ``UsageError`` without the extra or an identity, ``OutputError``
    if a service cannot be reached or refuses.
    """
    _need_sigstore()
    from requests import RequestException
    from sigstore.dsse import Statement
    from sigstore.errors import Error
    from sigstore.models import ClientTrustConfig
    from sigstore.oidc import ExpiredIdentity, IdentityError, IdentityToken, Issuer, IssuerError, detect_credential
    from sigstore.sign import SigningContext

    try:
        credential = detect_credential()
    except IdentityError as error:
        why = _first_line(error)
        raise UsageError("cannot get the identity of this job", why=why, try_="receipt attest --key KEY") from error
    if credential is None and not sys.stdin.isatty():
        why = "no identity of a CI job was found, and there is no terminal for a login"
        raise UsageError("--sigstore needs an identity", why=why, try_="give the job the permission id-token, or use --key KEY")
    try:
        trust = ClientTrustConfig.production()
        token = IdentityToken(credential) if credential else Issuer(trust.signing_config.get_oidc_url()).identity_token()
        with SigningContext.from_trust_config(trust).signer(token) as signer:
            return str(signer.sign_dsse(Statement(statement)).to_json()).encode()
    except (Error, ExpiredIdentity, IssuerError, RequestException, OSError) as error:
        raise OutputError(
            "sigstore cannot sign", why=f"{_first_line(error)}; signing needs the network", try_="receipt attest --key KEY"
        ) from error


def check_keyless(bundle: bytes, identity: Identity, trusted_root: Path | None, where: str) -> tuple[str, bytes]:
    """Return type and content of the payload that ``identity`` signed; needs no network.

    ``trusted_root`` is a file with the certificates and keys of the services (``trusted_root.json``), by default the public
    instance's. Raises ``NotAttested`` if the signature is invalid or by another signer, ``InputError`` for a file that is
    not a bundle or not a root, ``UsageError`` without the extra.
    """
    _need_sigstore()
    from sigstore.errors import Error, VerificationError
    from sigstore.models import Bundle, InvalidBundle, TrustedRoot
    from sigstore.verify import Verifier
    from sigstore.verify.policy import Identity as Policy

    logging.getLogger("sigstore").setLevel(logging.ERROR)  # it warns that it is offline
    try:
        opened = Bundle.from_json(bundle)
    except (InvalidBundle, ValueError, LookupError, TypeError) as error:
        raise InputError("is not a sigstore bundle", where=where, why=_first_line(error)) from error
    try:
        if trusted_root is None:
            verifier = Verifier.production(offline=True)
        else:
            verifier = Verifier(trusted_root=TrustedRoot.from_file(str(trusted_root)))
    except (Error, OSError, ValueError, LookupError, TypeError) as error:
        raise InputError("is not a root of trust", where=str(trusted_root or "sigstore"), why=_first_line(error)) from error
    try:
        found: tuple[str, bytes] = verifier.verify_dsse(opened, Policy(identity=identity.name, issuer=identity.issuer))
    except VerificationError as error:
        raise NotAttested("the signature is invalid or by another signer", where=where, why=_first_line(error)) from error
    return found


def _need_sigstore() -> None:
    try:
        import sigstore.models  # noqa: F401
    except ImportError as error:
        raise UsageError(
            "signatures by sigstore need the extra sigstore",
            why=f"no module {error.name}",
            try_="pip install 'receipt-cli[sigstore]'",
        ) from error


def _first_line(error: Any) -> str:
    return (str(error).partition("\n")[0] or type(error).__name__)[:200]
