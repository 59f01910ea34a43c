"""``verify``, ``attest``, ``compare``, ``migrate``, ``validate``: the commands of these names as functions."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Literal

from receipt_cli.api.results import Comparison, Finding, Migration, Verification
from receipt_cli.api.run import FilePath, Paths, Run, as_paths
from receipt_cli.authoring.site_search import find_site
from receipt_cli.comparison.comparable import DEFAULT, read_policy
from receipt_cli.comparison.contrasts import compare_runs
from receipt_cli.comparison.load import make_run, reach, read_target, short_names
from receipt_cli.definitions.metrics import load_registry
from receipt_cli.documents.migrate import migrate_bytes, replace_original, write_once
from receipt_cli.documents.validate import validate_bytes
from receipt_cli.errors import DataError, ReceiptError, UsageError
from receipt_cli.grammar.catalog import get_grammar
from receipt_cli.io.atomic import write_atomically
from receipt_cli.io.file_kinds import read_file
from receipt_cli.io.source import Progress
from receipt_cli.receipts.production import Product, read_given
from receipt_cli.receipts.sidecars import check_sidecar, sidecar_kind
from receipt_cli.scan.workers import AUTO
from receipt_cli.verification.attestation import attest as sign
from receipt_cli.verification.attestation import check, statement
from receipt_cli.verification.attestation import compare as compare_statement
from receipt_cli.verification.keyless import Identity, check_keyless, sign_keyless
from receipt_cli.verification.verifier import read_receipt
from receipt_cli.verification.verifier import verify as derive_again


def verify(
    receipt: FilePath,
    logs: Paths,
    *,
    newest: bool = False,
    grammars: Sequence[FilePath] = (),
    workers: int | None = 1,
    progress: Progress | None = None,
) -> Verification:
    """Derive the receipt in a file again from its log, or log files, and compare.

    The log is read by the recorded grammars, options and run; with ``newest`` by today's definitions. ``grammars`` are files of
    recorded grammars that do not ship with the package; ``workers`` and ``progress`` as for ``read``. Raises ``InputError`` for a
    receipt or log that cannot be read, and ``DataError`` for an unknown grammar.
    """
    where, paths = os.fsdecode(receipt), as_paths(logs)
    document, invalid = read_receipt(read_file(where), where)
    own = [get_grammar(os.path.abspath(os.fsdecode(path))) for path in grammars]
    found = derive_again(
        document,
        paths,
        invalid=invalid,
        own=own,
        newest=newest,
        workers=workers or AUTO,
        progress=progress,
        site=find_site(paths[0]),
    )
    row = {"receipt": where, "logs": paths, "newest": newest, **found.document()}
    return Verification(row, verified=found.verified, notes=found.notes, found=found)


def attest(
    receipt: FilePath,
    key: FilePath | None = None,
    output: FilePath | None = None,
    *,
    password: str | None = None,
    sigstore: bool = False,
) -> tuple[Path, ...]:
    """Sign a receipt's statement about its log, with a private key or by sigstore; return the written files.

    The first is the attestation: a DSSE envelope (``RECEIPT.dsse.json`` without ``output``), or a sigstore bundle
    (``RECEIPT.sigstore.json``); for an SSH key, the statement and its signature are beside it. Raises ``UsageError`` without
    the extra ``attest`` or ``sigstore``, or without an identity for sigstore, ``InputError`` for a receipt or key that cannot
    be read, and ``OutputError``, also if sigstore's services cannot be reached.
    """
    if (key is None) is not sigstore:
        raise UsageError("an attestation needs a key or sigstore", why="one of the two", try_="receipt attest RECEIPT --key KEY")
    where = os.fsdecode(receipt)
    document, data = _receipt(where)
    name = os.path.basename(where)
    if key is None:
        target = Path(f"{where}.sigstore.json" if output is None else os.fsdecode(output))
        files = {target: sign_keyless(statement(document, data, name))}
    else:
        password_bytes = password.encode("utf-8") if password else None
        signed = sign(document, data, name, Path(os.fsdecode(key)), password_bytes)
        target = Path(f"{where}.dsse.json" if output is None else os.fsdecode(output))
        files = {target: signed.envelope}
        if signed.ssh_signature is not None:
            files |= {Path(f"{target}.statement"): signed.statement, Path(f"{target}.statement.sig"): signed.ssh_signature}
    for path, content in files.items():
        write_atomically(path, content)
    return tuple(files)


def check_attestation(
    receipt: FilePath,
    attestation: FilePath,
    signer: FilePath | None = None,
    *,
    identity: str | None = None,
    issuer: str | None = None,
    trusted_root: FilePath | None = None,
) -> str:
    """Check the attestation of a receipt; return its signer: a key's id, or the identity in a sigstore bundle.

    ``signer`` is a file with the trusted person's public key (PEM or OpenSSH) or X.509 certificate. For a bundle, give
    ``identity`` (an address, the URL of a workflow) and ``issuer`` (the URL of the identity's provider) instead;
    ``trusted_root`` is a file with sigstore's root of trust, by default that of the public instance. Raises ``NotAttested`` if
    the signature is invalid, or is about another receipt, log or definitions; else as ``attest``.
    """
    if (signer is None) is not bool(identity and issuer):
        why = "a signature proves something only for a trusted key or identity"
        raise UsageError("an attestation needs --signer, or --identity and --issuer", why=why, try_="receipt verify --help")
    document, data = _receipt(os.fsdecode(receipt))
    where = os.fsdecode(attestation)
    signed = read_file(where)
    if signer is not None:
        return check(signed, Path(os.fsdecode(signer)), document, data, where)
    trusted = Identity(str(identity), str(issuer))
    root = None if trusted_root is None else Path(os.fsdecode(trusted_root))
    compare_statement(*check_keyless(signed, trusted, root, where), document, data, where)
    return trusted.name


def _receipt(where: str) -> tuple[Any, bytes]:
    data = read_file(where)
    return read_receipt(data, where)[0], data


def compare(
    *runs: FilePath | Run,
    policy: FilePath | None = None,
    align: Literal["step", "tokens", "samples", "time"] = "step",
    targets: Sequence[str] = (),
    workers: int | None = 1,
    progress: Callable[[str], AbstractContextManager[Progress | None]] | None = None,
) -> Comparison:
    """Compare runs (receipts, logs, or ``Run`` objects) with the first of them.

    ``policy`` is a YAML file that decides which fields block, warn or are ignored; ``align`` is the common axis of curves; for
    each of ``targets`` (``"val_loss=2.5"``) the document contains step, tokens and time at which a run reached it; ``progress``
    returns the ``progress`` of each log by its name. Raises ``UsageError`` for fewer than two runs, else as ``read`` and
    ``load`` do.
    """
    wanted = [read_target(text) for text in targets]
    reached: list[list[dict[str, Any]]] = [[] for _ in wanted]
    if len(runs) < 2:
        raise UsageError("compare needs at least two runs", try_="receipt compare before.log after.log")
    chosen = DEFAULT if policy is None else read_policy(read_file(os.fsdecode(policy)), os.fsdecode(policy))
    files = [run.source if isinstance(run, Run) else os.fsdecode(run) for run in runs]
    loaded, notes = [], list[str]()
    for run, file, name in zip(runs, files, short_names(files), strict=True):
        document: dict[str, Any]
        product: Product | None
        if isinstance(run, Run):
            document, product = run.product.document, run.product
        else:
            shown = progress or (lambda _: nullcontext())
            document, product = read_given(file, environ=dict(os.environ), progress=shown, workers=workers)
        notes += [f"{name}: {text}" for text in product.notes] if product is not None else []
        loaded.append(make_run(name, document, product, align))
        for target, found in zip(wanted, reached, strict=True):
            found.append(reach(name, document, product, target))
    compared, contrasts = compare_runs(loaded, chosen, load_registry(), align)
    compared["targets"] = [
        {"metric": target.metric, "value": target.value, "runs": found} for target, found in zip(wanted, reached, strict=True)
    ]
    return Comparison(compared, worse=any(contrast.bad for contrast in contrasts), notes=tuple(notes))


def migrate(file: FilePath, *, to: str | None = None, output: FilePath | None = None, in_place: bool = False) -> Migration:
    """Migrate the document in ``file`` to the version ``to`` (KIND/X.Y; the newest by default).

    It is written to ``output``, a new file or an existing folder, or with ``in_place`` to ``file``, whose original is then kept
    beside it; else nowhere. Raises ``InputError`` for an invalid document, ``UsageError`` for a downgrade, ``DataError`` for an
    unknown version, and ``OutputError``.
    """
    if output is not None and in_place:
        raise UsageError("an output and in_place exclude each other")
    path = Path(os.fsdecode(file))
    migrated = migrate_bytes(read_file(os.fsdecode(file)), path, to)
    target, kept = path if in_place and migrated.changed else None, None
    if in_place:
        kept = replace_original(migrated)
    elif output is not None:
        target = Path(os.fsdecode(output))
        target = target / path.name if target.is_dir() else target
        write_once(target, migrated.data)
    row = {
        "file": str(path),
        "versions": list(migrated.versions),
        "written": str(target) if target is not None else None,
        "original_kept": str(kept) if kept is not None else None,
        "differences": [difference.document() for difference in migrated.differences],
    }
    return Migration(row, data=migrated.data)


def validate(files: Paths) -> list[Finding]:
    """Return the findings on documents, by schema and by rules between fields; only notes, or none, mean valid.

    A file of times or of samples beside a log is judged by its schema, too, and by the log; a note says what it is.
    A file that cannot be read, or has an unknown version, gives an error finding.
    """
    found: list[Finding] = []
    refused: list[Finding] = []
    for file in as_paths(files):
        try:
            data = read_file(file)
            check = validate_bytes(data, file, compiled=False) if sidecar_kind(data) is None else check_sidecar(data, file)
            found += [Finding(_row(file, x.pointer, x.rule, x.severity, x.reason), refusal=None) for x in check]
        except ReceiptError as error:
            reason = f"{error.message}: {error.why}" if error.why else error.message
            what = ("/schema_version", "unknown_version") if isinstance(error, DataError) else ("", "unreadable")
            refused.append(Finding(_row(file, *what, "error", reason), refusal=error))
    return found + refused


def _row(file: str, pointer: str, rule: str, severity: str, reason: str) -> dict[str, Any]:
    return {"file": str(Path(file)), "pointer": pointer, "rule": rule, "severity": severity, "reason": reason}
