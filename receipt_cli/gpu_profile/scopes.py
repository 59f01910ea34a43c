"""Named spans of the program; begins and ends are paired in either order."""

from __future__ import annotations

from collections import Counter

from receipt_cli.gpu_profile.batch import LATEST_NS, LONGEST_NS, Json, Rows, is_whole, whole
from receipt_cli.gpu_profile.dictionaries import MAX_NAME
from receipt_cli.gpu_profile.timing import Timings

MAX_NAMES = 1 << 14
_MAX_OPEN = 1 << 18
_BEGIN, _END, _GOES_ON, _BREAKS_OFF = 0, 1, 2, 3
"""The last two: a scope already open when this session began, and one still open at its end."""
Named = int | str


class Scopes:
    """All scopes of a session. ``open`` counts those without an end by name, ``forgotten`` those beyond the limit."""

    def __init__(self) -> None:
        self.by_name: Timings[Named] = Timings(MAX_NAMES)
        self.backwards = 0
        self.forgotten = 0
        self._begun: dict[int, tuple[int, int]] = {}
        self._ended: dict[int, int] = {}
        self._stacks: dict[tuple[object, ...], list[int]] = {}
        self._stacked = 0

    @property
    def unbegun(self) -> int:
        """Number of ends without a begin."""
        return len(self._ended)

    def open(self) -> Counter[Named]:
        """Return the number of open scopes of each name."""
        found: Counter[Named] = Counter(name for name, _ in self._begun.values())
        for (name, *_), begins in self._stacks.items():
            assert isinstance(name, str)
            found[name] += len(begins)
        return found

    def add_batch(self, rows: Rows) -> int:
        """Add the begins and ends of a batch; return the number of unreadable rows."""
        needed = [rows.columns[name] for name in ("dt_ns", "scope_instance_id", "name_id", "event_type")]
        first = rows.columns.get("original_start_ns", (None,) * rows.count)
        lost = 0
        for dt, scope, name, kind, began in zip(*needed, first, strict=True):
            good = all(map(is_whole, (dt, scope, name, kind))) and -LONGEST_NS < dt < LONGEST_NS and name >= 0 <= scope
            time = whole(rows.base_ns + dt, 0, LATEST_NS) if good else None
            if time is None or not 0 <= kind <= _BREAKS_OFF:
                lost += 1
            elif kind == _BEGIN:
                lost += not self._begin(scope, name, time)
            elif kind == _GOES_ON:
                start = whole(began, 1, time + 1)
                lost += start is None or not self._begin(scope, name, start)
            elif kind == _END:
                lost += not self._end(scope, time)
        return lost

    def _begin(self, scope: int, name: int, start: int) -> bool:
        if scope in self._ended:
            return self._span(name, start, self._ended.pop(scope))
        if scope in self._begun:
            return False
        if len(self._begun) < _MAX_OPEN:
            self._begun[scope] = (name, start)
        else:
            self.forgotten += 1
        return True

    def _end(self, scope: int, end: int) -> bool:
        begun = self._begun.pop(scope, None)
        if begun is not None:
            return self._span(*begun, end)
        if scope in self._ended:
            return False
        if len(self._ended) < _MAX_OPEN:
            self._ended[scope] = end
        else:
            self.forgotten += 1
        return True

    def _span(self, name: Named, start: int, end: int) -> bool:
        length = end - start
        if not 0 <= length < LONGEST_NS:
            self.backwards += 1
            return False
        self.by_name.at(name).add(1, length, length, length)
        return True

    def add_event(self, record: Json, *, begins: bool) -> bool:
        """Add a ``scope_begin`` or ``scope_end``, paired by nesting; return whether it is readable."""
        name, time = record.get("name"), whole(record.get("ts_ns"), 0, LATEST_NS)
        if not isinstance(name, str) or time is None:
            return False
        key = (name[:MAX_NAME], *(str(record.get(part))[:200] for part in ("pid", "user_scope", "scope_depth")))
        stack = self._stacks.get(key)
        if begins:
            if self._stacked >= _MAX_OPEN:
                self.forgotten += 1
                return True
            self._stacked += 1
            self._stacks.setdefault(key, []).append(time)
            return True
        if not stack:
            return False
        self._stacked -= 1
        start = stack.pop()
        if not stack:
            del self._stacks[key]
        return self._span(name[:MAX_NAME], start, time)
