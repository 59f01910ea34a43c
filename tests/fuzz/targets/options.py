"""Texts of the command line that are read by parsers of our own: a value, or a refusal of the caller's usage."""

import math

from receipt_cli.errors import UsageError
from receipt_cli.importers.wall_time import read_wall
from receipt_cli.receipts.production import Request, produce_from, read_attachment
from tests.fuzz.feed import Feed
from tests.tools.usage import read


def target(data: bytes) -> None:
    feed = Feed(data)
    which, text = feed.below(4), feed.rest().decode("utf-8", "surrogateescape")
    try:
        if which == 0:
            wall = read_wall(text)
            assert math.isfinite(wall.seconds) and wall.seconds >= 0
        elif which == 1:
            read_attachment(text if "=" not in text else text.partition("=")[0] + "=s3://" + text.partition("=")[2])
        elif which == 2:
            call = read(text.split("\0"))
            assert call is None or (callable(call[0]) and all(name.isidentifier() for name in call[1]))
        else:
            list(produce_from(Request(path="x", name=text, lane=text), lambda *_: ()))
    except UsageError as error:
        assert error.render()


def seeds() -> list[bytes]:
    walls = ("3600", "1h", "1:02:03", "12.5s", "90 min", "nan", "-1", "1e400", "sft=600", "=", "base_train=1:00:00", "3600s=x")
    plain = (
        "parse\0a.log\0--json",
        "check\0a\0--lane\0x",
        "parse\0-o\0x\0a",
        "parse\0--workers\0" + "9" * 30,
        "--version",
        "parse\0a\0--exit-code\0-1",
    )
    found = [b"\0" + text.encode() for text in walls] + [b"\2" + text.encode() for text in plain]
    return [*found, b"\1trace=a", b"\1=", b"\1tr ace=b", b"\3run 7", b"\3\xff\x1b[2J", b"\3" + b"x" * 3000]
