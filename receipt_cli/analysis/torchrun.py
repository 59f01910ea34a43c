"""torchrun's summary: which rank failed first and how, and which ranks only followed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import NamedTuple

from receipt_cli.patterns import compile_later
from receipt_cli.scan.columns import POSITION_BITS
from receipt_cli.scan.segment import Hits, SegmentBody

VERDICT, RANK, EXIT_CODE, HOST = "root_cause", "failed_rank", "rank_exit_code", "failed_host"
"""Markers: heading of the summary; lines of a failed rank, its exit code and its host."""
_BLOCK = 8
"""Most records of one failed rank in the summary."""
_HEADING = 4
"""Records from before a rank's entry to the one that names it."""
_RANK = compile_later(r"(\d{1,7}) \(local_rank: {0,2}(\d{1,7})\)")
SIGTERM = -15


class Verdict(NamedTuple):
    """The rank that failed first. ``line`` is that of its exit code; a negative ``exit_code`` is a signal."""

    line: int
    at: int
    rank: int
    local_rank: int
    exit_code: int
    host: str | None = None

    @property
    def message(self) -> str:
        """The failure as a sentence."""
        how = f"exit code {self.exit_code}" if self.exit_code >= 0 else f"signal {-self.exit_code}"
        return f"rank {self.rank} (local rank {self.local_rank}) failed first: {how}"


def find_verdict(body: SegmentBody, since: int = -1) -> Verdict | None:
    """Return the first verdict after the log position ``since`` that names a failed rank; one stopped by SIGTERM comes last."""
    hits = body.markers
    heads, ranks, codes = hits.get(VERDICT), hits.get(RANK), hits.get(EXIT_CODE)
    if heads is None or ranks is None or codes is None:
        return None
    verdicts = [v for at in heads.at if at > since and (v := _verdict(at, ranks, codes, hits.get(HOST))) is not None]
    return min(verdicts, key=lambda v: (v.exit_code == SIGTERM, v.at), default=None)


def _verdict(head: int, ranks: Hits, codes: Hits, hosts: Hits | None) -> Verdict | None:
    rank = _text_near(head, ranks)
    named = _RANK.search(rank) if rank is not None else None
    at, code = next(((at, code) for at, _, code in codes.texts if _near(head, at)), (0, None))
    if named is None or code is None:
        return None
    return Verdict(codes.line[codes.at.index(at)], at, int(named[1]), int(named[2]), code, _text_near(head, hosts))


def failed_ranks(body: SegmentBody) -> list[Verdict]:
    """Return what torchrun's printed summary of a failure says of each failed rank, in log order."""
    hits = body.markers
    ranks, codes = hits.get(RANK), hits.get(EXIT_CODE)
    if ranks is None or codes is None:
        return []
    begins = [at - (_HEADING << POSITION_BITS) for at in ranks.at]
    return [one for begin in begins if (one := _verdict(begin, ranks, codes, hits.get(HOST))) is not None]


def _text_near(head: int, hits: Hits | None) -> str | None:
    return next((text.strip() for at, text, _ in hits.texts if _near(head, at)), None) if hits is not None else None


def _near(head: int, at: int) -> bool:
    return 0 < (at >> POSITION_BITS) - (head >> POSITION_BITS) <= _BLOCK


def is_victim(at: int, markers: Mapping[str, Hits]) -> bool:
    """Return whether the text at ``at`` belongs to a rank that did not fail first."""
    heads, ranks = markers.get(VERDICT), markers.get(RANK)
    if heads is None or ranks is None:
        return False
    before = bisect_right(ranks.at, at)
    if not before or not _near(ranks.at[before - 1], at):
        return False
    own = ranks.at[before - 1]
    above = bisect_right(heads.at, own)
    return not above or not _near(heads.at[above - 1], own)
