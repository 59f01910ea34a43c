"""The time that a receipt and a header are given."""

from receipt_cli.header.values import checked
from receipt_cli.receipts.production import rfc3339_now


def test_the_clock_is_utc_with_whole_seconds() -> None:
    now = rfc3339_now()
    assert checked("/collected_at", now) == now
    assert (now[10], now[19:]) == ("T", "Z")
