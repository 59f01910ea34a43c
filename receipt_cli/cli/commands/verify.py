"""``receipt verify`` and ``attest``: does the log still give this receipt, and who says so?"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

from receipt_cli import __version__
from receipt_cli.api.commands import attest as sign
from receipt_cli.api.commands import check_attestation
from receipt_cli.api.commands import verify as derive_again
from receipt_cli.cli.output import note, progress, style, write_json, write_stdout
from receipt_cli.cli.parameters import Argument, Json, Option, Output
from receipt_cli.cli.runs import InStore, log_file, receipt_file
from receipt_cli.errors import ExitCode, UsageError
from receipt_cli.io.compression import SUFFIXES
from receipt_cli.render.differences import Title, render_verification


def verify(
    receipt: Annotated[str, Argument("RECEIPT|RUN", "A receipt, or a run of the store.")],
    logs: Annotated[
        list[str] | None,
        Argument("LOG...", f"Its log: a file (also {' '.join(SUFFIXES)}) or - for stdin; or all files of the run."),
    ] = None,
    *,
    newest: Annotated[
        bool, Option("--newest", help="Show what the current definitions would change, instead of the recorded ones.")
    ] = False,
    grammar: Annotated[
        list[Path] | None, Option("-g", "--grammar", help="File of a recorded grammar that does not ship.")
    ] = None,
    attestation: Annotated[
        Path | None, Option(help="Output of `receipt attest`: its signature and its statement are checked too.")
    ] = None,
    signer: Annotated[
        Path | None, Option(help="With --attestation: the public key (PEM, OpenSSH) or the X.509 certificate of who signed.")
    ] = None,
    identity: Annotated[
        str | None, Option(metavar="NAME", help="With --attestation of sigstore: the address or workflow that is trusted.")
    ] = None,
    issuer: Annotated[str | None, Option(metavar="URL", help="With --identity: who vouches for it.")] = None,
    trusted_root: Annotated[
        Path | None, Option(help="With --identity: sigstore's root of trust; by default that of the public instance.")
    ] = None,
    store: InStore = None,
    json_output: Json = False,
) -> None:
    """Derive a receipt from its log once more, and compare.

    The log is parsed with the recorded grammars, options and run, whatever was added since. Exits 0 if the derived part is
    the same byte for byte, 1 with the fields that differ or for an attestation of something else, 3 for a receipt or log that
    cannot be read, 5 for an unknown grammar. Without a LOG, that of a run of the store is read, if a batch on this machine
    found it.

    Example: receipt verify run.receipt.json run.log
    """
    who = {"signer": signer, "identity": identity, "issuer": issuer, "trusted_root": trusted_root}
    if attestation is None and any(who.values()):
        given = " and ".join(f"--{name.replace('_', '-')}" for name, value in who.items() if value)
        raise UsageError(f"--attestation and {given} go together", why="there is no signature to check")
    file = Path(receipt_file(receipt, store))
    if not logs:
        if str(file) == receipt:
            raise UsageError("missing argument: LOG...", try_="receipt verify --help")
        logs = [log_file(receipt, store, any_run=True)]
    signed_by = None
    if attestation is not None:
        signed_by = check_attestation(file, attestation, signer, identity=identity, issuer=issuer, trusted_root=trusted_root)
    with progress(logs[0]) as bar:
        verification = derive_again(file, logs, newest=newest, grammars=grammar or (), workers=None, progress=bar)
    note(verification.notes)
    if json_output:
        write_json({**verification.to_dict(), **({"signed_by": signed_by} if signed_by is not None else {})})
    else:
        found = verification.found
        broken = [f"{f.pointer}: {f.reason}" for f in found.invalid]
        made_by = found.tool_version if found.tool_version != __version__ else None
        title = Title(receipt, logs[0], found.refs, newest, made_by)
        page = render_verification(found.differences, found.other, broken, title, style(), touched=found.touched is True)
        write_stdout(page)
        if signed_by is not None:
            write_stdout(f"attested: signed by {'key ' if signer is not None else ''}{signed_by}\n")
    if not verification.verified:
        sys.exit(ExitCode.NO)


def attest(
    receipt: Annotated[Path, Argument("RECEIPT", "A receipt.")],
    *,
    key: Annotated[
        Path | None, Option(help="Private key: OpenSSH's, or PEM (PKCS #8, RSA, EC). RECEIPT_KEY_PASSWORD opens it.")
    ] = None,
    sigstore: Annotated[
        bool,
        Option(
            "--sigstore", help="Sign by sigstore, with the identity of this CI job or a login in a browser. Needs the network."
        ),
    ] = False,
    output: Annotated[Path | None, Output("The attestation; by default RECEIPT.dsse.json or RECEIPT.sigstore.json.")] = None,
) -> None:
    """Sign what a receipt states about its log: both digests, and those of the definitions.

    Writes an in-toto statement in a DSSE envelope, which `receipt verify --attestation` checks, and beside it, for a key of SSH,
    the statement and its signature for `ssh-keygen -Y verify -n receipt`. Needs the extra attest. With --sigstore, which needs
    the extra of that name, a bundle with an entry in its public log. Exits 3 for a receipt or key that cannot be read, 6 if
    sigstore's services cannot be reached.

    Example: receipt attest run.receipt.json --key ~/.ssh/id_ed25519
    """
    written = sign(receipt, key, output, password=os.environ.get("RECEIPT_KEY_PASSWORD"), sigstore=sigstore)
    note(f"wrote {path}" for path in written)
