"""A whole log → a valid receipt with the same bytes each time, or a refusal that says why; by two workers as by one."""

import hashlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from receipt_cli.authoring.explain import explain_log
from receipt_cli.derive import Options, Reading, read_log
from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.documents.validate import has_errors, validate_bytes
from receipt_cli.errors import ReceiptError
from receipt_cli.receipts.production import InvalidReceipt, Product, Request, open_streams, produce, produce_all, produce_from
from receipt_cli.render.document import render_document
from receipt_cli.render.style import Style
from tests.fuzz.feed import Feed
from tests.fuzz.targets import layouts

_FOLDER = Path(tempfile.mkdtemp(prefix="fuzz-"))
AGAIN_EVERY, WORKERS_EVERY = 16, 512
"""One input of so many is read again by an engine of its own, and by two workers: both cost more than the input itself."""


def target(data: bytes) -> None:
    feed = Feed(data)
    how, code = feed.below(32), feed.pick((None, 0, 1, 137))
    raw = feed.rest()
    path = _FOLDER / "run.log"
    path.write_bytes(raw)
    request = Request(path=str(path), exit_code=code)
    first = _made(request, _as_one_of_many)
    share = int.from_bytes(hashlib.sha256(raw).digest()[:4])
    if share % AGAIN_EVERY == 0:
        assert first == _made(request)
    if share % WORKERS_EVERY == 0:
        assert first == _made(Request(path=str(path), exit_code=code, workers=2))
    if how == 1:
        middle = raw.find(b"\n", len(raw) // 2) + 1
        for name, part in (("run-rank0.log", raw[:middle]), ("run-rank1.log", raw[middle:])):
            (_FOLDER / name).write_bytes(part)
        _made(Request(path=str(_FOLDER / "run-rank0.log"), more=(str(_FOLDER / "run-rank1.log"),), exit_code=code))
    elif how == 2:
        try:
            explain_log(str(path))
        except ReceiptError as error:
            assert error.render()
    elif how == 3:
        try:
            for product in produce_all(request):
                assert not has_errors(validate_bytes(canonical_bytes(product.document), "made"))
        except ReceiptError as error:
            assert not isinstance(error, InvalidReceipt), error.why


def _as_one_of_many(request: Request) -> Product:
    """Produce as a batch does: the engine is kept for the next log."""

    def read(options: Options, notes: list[str]) -> Iterator[Reading]:
        streams = open_streams([request.path])
        try:
            yield read_log(streams, options, one_of_many=True)
        finally:
            streams[0].parts[0].close()

    return next(produce_from(request, read))


def _made(request: Request, produce: Callable[[Request], Product] = produce) -> bytes | str:
    """Return the receipt's bytes, or the refusal."""
    try:
        product = produce(request)
    except ReceiptError as error:
        assert not isinstance(error, InvalidReceipt) and error.exit_code in (2, 3, 4), error.render()
        return error.render()
    made = canonical_bytes(product.document)
    assert not has_errors(validate_bytes(made, "made"))
    shown = render_document(product.document, style=Style(width=100, color=False, unicode=True))
    assert not any((ord(letter) < 32 and letter != "\n") or 0x7F <= ord(letter) < 0xA0 for letter in shown)
    return made


def seeds() -> list[bytes]:
    found = [bytes([number % 32, number % 4]) + _ends(path.read_bytes()) for number, path in enumerate(layouts.LOGS[::3])]
    return [*found, b"\0\0" + b"epoch 1 train_loss 2.5\nepoch 2 train_loss 2.4\n" * 9, b"\0\0"]


def _ends(log: bytes) -> bytes:
    """Return the beginning and the end of a log, of which fuzzing a whole one would see little."""
    return log if len(log) < 3000 else log[:1500] + b"\n" + log[-1500:]
