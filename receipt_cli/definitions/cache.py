"""What was made of definitions, kept in the user's cache folder and keyed by the digest of their text.

Reading YAML is most of a cold start. What is kept is JSON, but for the tables of hyperscan (see ``gate``). Absent, stale,
corrupt or foreign files are passed over; nothing is ever executed. The folder is ``$XDG_CACHE_HOME/receipt-cli`` or
``~/.cache/receipt-cli`` and may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any

FORMAT = 1
"""Raised when the way in which definitions are parsed changes."""


def cache_folder() -> Path | None:
    """Return the folder, or None where the user has no home."""
    base = os.environ.get("XDG_CACHE_HOME")
    if base and os.path.isabs(base):
        return Path(base) / "receipt-cli"
    with contextlib.suppress(RuntimeError):
        return Path.home() / ".cache" / "receipt-cli"
    return None


def recall(name: str) -> dict[str, Any] | None:
    """Return what is kept under ``name``, or None when there is nothing, or nothing to be trusted.

    A definition is kept under the digest of its text, a bundle of them under a name of its own, with its key inside.
    """
    body = recall_bytes(f"{name}.{FORMAT}.json")
    try:
        data = json.loads(body) if body is not None else None
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


def recall_bytes(file_name: str) -> bytes | None:
    """Return the bytes kept in the file of this name, or None when there are none, or none to be trusted."""
    folder = cache_folder()
    if folder is None:
        return None
    try:
        with (folder / file_name).open("rb") as file:
            if os.name == "posix" and os.fstat(file.fileno()).st_uid != os.getuid():
                return None
            digest, _, body = file.read().partition(b"\n")
        return body if digest.decode("ascii") == hashlib.sha256(body).hexdigest() else None
    except (OSError, ValueError):
        return None


def keep(name: str, data: dict[str, Any]) -> None:
    """Keep ``data`` under ``name``, where JSON gives it back unchanged and the folder can be written."""
    try:
        body = json.dumps(data, separators=(",", ":"))
        if repr(json.loads(body)) == repr(data):
            keep_bytes(f"{name}.{FORMAT}.json", body.encode())
    except (TypeError, ValueError):
        return


def keep_bytes(file_name: str, body: bytes) -> None:
    """Keep ``body`` in the file of this name, where the folder can be written."""
    import tempfile  # four milliseconds that a warm start does not need

    folder = cache_folder()
    if folder is None:
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, made = tempfile.mkstemp(dir=folder, suffix=".tmp")
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
        os.replace(made, folder / file_name)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(made)
