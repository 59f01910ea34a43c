"""Judge the forms of each rule's records in a whole log: which belong to the rule, and which numbers are whole.

Laws 1, 8 and 9 of evidence: a record belongs to a rule if it starts like the rule's other records, and a number is read whole
or not at all. Each decision is listed in ``SegmentBody.doubts``; figures that depend on it become null later.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple, TypeAlias

import numpy as np

from receipt_cli.definitions.units import find_ratio
from receipt_cli.grammar.model import COUNTERS, Field, Grammar, Rule
from receipt_cli.numeric.column import Cells
from receipt_cli.patterns import compile_later
from receipt_cli.scan.columns import POSITION_BITS, NumberColumn, RuleColumns, Shown, TextColumn, interleaved
from receipt_cli.scan.extraction.model import convert
from receipt_cli.scan.forms import (
    CITED,
    GLUED,
    GROUPED,
    JUDGED,
    MARK,
    OTHER,
    PART,
    QUOTED,
    SERVICE,
    UNREAD,
    Form,
    is_curve,
    read_form,
)
from receipt_cli.scan.segment import Doubt, RuleKey, SegmentBody

RARE = 10
"""A form with fewer than 1/``RARE`` of a rule's records is foreign to the rule."""
FEW = 3
"""Records of a rule from which on a single record of another form is foreign."""
_COMMA = compile_later(r"[-+]?\d+,\d+(?:[eE][-+]?\d+)?\Z")
_DECIMAL = compile_later(r"[-+]?(?:(?:0,\d+|\d+,(?:\d{1,2}|\d{4,}))(?:[eE][-+]?\d+)?|\d,\d+[eE][-+]?\d+)\Z")
"""A number with a comma, and one whose comma cannot separate thousands."""
COMMON = 0.8
"""Share of positions printed by two writers from which on one repeats the other."""
_POSITIONS = frozenset({("metric", "epoch"), *(("structural", name) for name in ("step", *COUNTERS))})


class _Group(NamedTuple):
    """The records of one form of a rule."""

    form: Form
    columns: RuleColumns


Again: TypeAlias = Callable[[int], "SegmentBody | None"]
"""Reads a line and the next one as one text; None if the next one is read alone or missing."""


def settle_forms(
    body: SegmentBody, rules: Mapping[RuleKey, Sequence[tuple[Grammar, int]]], again: Again = lambda _: None
) -> None:
    """Join the forms of each rule's records in ``body``; leave out foreign records and doubtful numbers.

    ``rules`` are the rules that fill each key's columns, as (grammar, number of the rule).
    """
    keys: dict[RuleKey, list[str]] = defaultdict(list)
    body.forms.clear()
    for ref, name in body.rules:
        base, mark, form = name.partition(MARK)
        keys[ref, base].append(mark + form)
    short: dict[RuleKey, tuple[Rule, list[_Group]]] = {}
    for key, forms in keys.items():
        if forms == [""] and not body.rules[key].unread:
            continue
        groups = [_Group(read_form(form), body.rules.pop((key[0], key[1] + form))) for form in sorted(forms)]
        readers = [grammar.rule(number) for grammar, number in rules.get(key, ())]
        rule = next((rule for rule in readers if rule.event in JUDGED), None)
        if rule is not None and MARK + OTHER not in forms:
            groups = _without_foreign(groups, rule, key, body.doubts)
            if not groups:
                continue
            groups = _with_continued(groups, key, again)
            _without_doubtful(groups, rule, key, body.doubts)
            structural = {n for n, spec in rule.fields.items() if spec.target[0] not in ("metric", "other")}
            unread = sorted({n for group in groups for n in group.columns.unread} - structural)
            body.doubts += [Doubt.unread(key, [group.columns for group in groups], name) for name in unread]
            _name_labels(groups, key, body.doubts)
        body.rules[key] = groups[0].columns if len(groups) == 1 else interleaved([group.columns for group in groups])
        if rule is not None and len(body.rules[key]) <= MAX_CUT:
            short[key] = rule, groups
    for (ref, name), (rule, groups) in short.items():
        others = [
            (r, body.rules[k])
            for k, readers in rules.items()
            if k[0] == ref and k != (ref, name) and k in body.rules
            for g, n in readers
            if (r := g.rule(n)).event == rule.event
        ]
        _leave_out_shorter((ref, name), rule, groups, others, body)


def join_forms(body: SegmentBody) -> dict[RuleKey, str]:
    """Join the forms of each rule in the body of one record; return the forms without doubts about numbers."""
    leads: dict[RuleKey, str] = {}
    joined: dict[RuleKey, list[RuleColumns]] = defaultdict(list)
    for (ref, name), columns in body.rules.items():
        base, mark, form = name.partition(MARK)
        joined[ref, base].append(columns)
        leads.setdefault((ref, base), read_form(mark + form)._replace(doubts=(), last=None).text())
    body.rules = {key: parts[0] if len(parts) == 1 else interleaved(parts) for key, parts in joined.items()}
    return leads


def names_of_rules(body: SegmentBody) -> dict[RuleKey, set[str]]:
    """Return the names of the numbers each rule read, in records of any form."""
    names: dict[RuleKey, set[str]] = defaultdict(set)
    for (ref, name), columns in body.rules.items():
        names[ref, name.partition(MARK)[0]].update(columns.numbers, columns.unregistered)
    return names


def _without_foreign(groups: list[_Group], rule: Rule, key: RuleKey, doubts: list[Doubt]) -> list[_Group]:
    """Return the groups that belong to the rule by their leading words (law 1).

    None of records quoted in JSON objects, and none that a search found in a file if others are printed without its name.
    """
    others = {lead for lead in (group.form.lead for group in groups) if lead == QUOTED or lead.endswith(CITED)}
    if others == {group.form.lead for group in groups}:
        others &= {QUOTED}
    doubts += [
        Doubt.of("foreign_record", key, [group.columns for group in groups if group.form.lead == lead], words=lead)
        for lead in sorted(others)
    ]
    groups = [group for group in groups if group.form.lead not in others]
    counts = Counter[str]()
    for group in groups:
        counts[group.form.lead] += len(group.columns)
    if len(counts) < 2:
        return groups
    total = counts.total()
    foreign = {lead for lead, n in counts.items() if lead and _is_rare(n, total)}
    own = [lead for lead in counts if lead not in foreign and not lead.endswith(SERVICE)]
    if not own:
        own = [lead for lead in counts if lead not in foreign]
    if 2 * sum(counts[lead] for lead in counts if lead not in foreign) < total:
        return groups  # the leading words are free text
    first = {lead: min(group.columns.at[0] for group in groups if group.form.lead == lead) for lead in own}
    main = max(own, key=lambda lead: (counts[lead], not lead, -first[lead]))
    foreign |= {lead for lead in own if lead not in ("", main) and _repeats(groups, main, lead, rule)}
    if "" in own and main and _repeats(groups, "", main, rule):
        foreign.add(main)  # a plain record and one with words before it: the plain one is the training's
    for lead in sorted(foreign):
        rows = [group.columns for group in groups if group.form.lead == lead]
        doubts.append(Doubt.of("foreign_record", key, rows, words=lead))
    return [group for group in groups if group.form.lead not in foreign]


def _is_rare(count: int, total: int) -> bool:
    return count * RARE < total or (count == 1 and total >= FEW)


def _repeats(groups: Sequence[_Group], main: str, lead: str, rule: Rule) -> bool:
    """Return whether records with the words ``lead`` repeat positions of ``main``, among them or rarely: another writer."""
    names = [name for name, spec in rule.fields.items() if spec.target in _POSITIONS]
    ours, theirs = _positions(groups, main, names), _positions(groups, lead, names)
    if not ours or not theirs:
        return False
    common = sum(position in ours for position in theirs)
    spans = [
        [at for group in groups if group.form.lead == one for at in (group.columns.at[0], group.columns.at[-1])]
        for one in (main, lead)
    ]
    among = min(spans[0]) < max(spans[1]) and min(spans[1]) < max(spans[0])
    few = len(theirs) < len(ours) if not main else 3 * len(theirs) <= len(ours)
    return common >= COMMON * len(theirs) and (among or few)


def _positions(groups: Iterable[_Group], lead: str, names: Sequence[str]) -> set[tuple[float | None, ...]]:
    found: set[tuple[float | None, ...]] = set()
    for group in groups:
        if group.form.lead == lead:
            columns = [dict(zip(c.rows, c.values, strict=True)) for n in names if (c := group.columns.numbers.get(n)) is not None]
            found |= {tuple(column.get(row) for column in columns) for row in range(len(group.columns))} if columns else set()
    return found


def _without_doubtful(groups: list[_Group], rule: Rule, key: RuleKey, doubts: list[Doubt]) -> None:
    """Drop numbers that may not be whole (law 8), and convert those printed in another unit."""
    names = {n for g in groups for n in (*g.columns.numbers, *g.columns.unregistered, *g.columns.unread)}
    for name in sorted(names):
        if name in rule.fields and _has_decimal_commas(groups, name):
            groups[:] = [_with_decimal_commas(group, name, rule.fields[name]) for group in groups]
        having = [group for group in groups if _column(group, name) is not None]
        _leave_out_parts(having, name, rule, key, doubts)
        _convert(having, name, key, doubts)
        for cut in _cut(groups, name):
            _drop(cut, name, "record_cut", key, doubts)


def _name_labels(groups: Sequence[_Group], key: RuleKey, doubts: list[Doubt]) -> None:
    """Report values whose label some records print without a number, if other records have one (law 9)."""
    for name in sorted({name for group in groups for name, kind in group.form.doubts if kind == UNREAD}):
        lacking = [group for group in groups if (name, UNREAD) in group.form.doubts]
        rows = sum(len(group.columns) for group in groups if group not in lacking)
        held = sum(len(_values(group, name)) for group in groups)
        if held and RARE * held >= (RARE - 1) * rows:
            doubts.append(Doubt.of("figure_unread", key, [group.columns for group in lacking], name=name))


def _column(group: _Group, name: str) -> NumberColumn | None:
    found = group.columns.numbers.get(name)
    return group.columns.unregistered.get(name) if found is None else found


def _values(group: _Group, name: str) -> Sequence[float]:
    """Return the numbers of a column, empty if the group lacks it."""
    column = _column(group, name)
    return () if column is None else column.values


def _drop(groups: Sequence[_Group], name: str, kind: str, key: RuleKey, doubts: list[Doubt]) -> None:
    doubts.append(Doubt.of(kind, key, [group.columns for group in groups], name=name))
    for group in groups:
        group.columns.numbers.pop(name, None)
        group.columns.unregistered.pop(name, None)
        group.columns.printed.pop(name, None)


def _has_decimal_commas(groups: Sequence[_Group], name: str) -> bool:
    """Return whether commas of a column cannot separate thousands: after a lone zero, or not before three digits."""
    texts = [text for group in groups if name in group.columns.unread for text in group.columns.unread[name].values]
    sure = [text for text in texts if _DECIMAL.match(text)]
    return len(sure) >= FEW or any(text.lstrip("+-").startswith("0,") for text in sure)


def _with_decimal_commas(group: _Group, name: str, spec: Field) -> _Group:
    """Return the group with commas read as decimal points; divide values read with a thousands comma by 1,000."""
    columns, form = group.columns, group.form
    values = dict(zip(c.rows, c.values, strict=True)) if (c := columns.numbers.get(name)) else {}
    if (name, GROUPED) in form.doubts and max(map(abs, values.values()), default=0) < MILLION:
        values = {row: float(Decimal(repr(value)) / 1000) for row, value in values.items()}
        form = form._replace(doubts=tuple(doubt for doubt in form.doubts if doubt != (name, GROUPED)))
    left = TextColumn()
    for row, text in zip(t.rows, t.values, strict=True) if (t := columns.unread.pop(name, None)) else ():
        value, readable = convert(spec, text.replace(",", ".")) if _COMMA.match(text) else (None, False)
        if readable and isinstance(value, float):
            values[row] = value
        else:
            left.append(row, text)
    if left.values:
        columns.unread[name] = left
    columns.numbers.pop(name, None)
    if values:
        columns.printed[name] = {None: Shown(len(columns), columns.at[0], columns.at[-1])}
    for row in sorted(values):
        columns.numbers[name].append(row, values[row])
    return _Group(form, columns)


MILLION = 1e6
"""From here on a number has two thousands commas, so these are not decimal."""


def _leave_out_parts(having: list[_Group], name: str, rule: Rule, key: RuleKey, doubts: list[Doubt]) -> None:
    spec = rule.fields.get(name)
    if spec is not None and (spec.type == "integer" or spec.target[0] == "structural"):
        return
    kinds = {id(group): dict(group.form.doubts).get(name) for group in having}
    count = Counter[str | None]()
    for group in having:
        count[kinds[id(group)]] += len(_values(group, name))
    parts = [group for group in having if kinds[id(group)] == PART]
    glued = [group for group in having if kinds[id(group)] == GLUED] if 2 * count[GLUED] < count.total() else []
    grouped = [group for group in having if kinds[id(group)] == GROUPED]
    if grouped and not parts:
        curve = spec is not None and is_curve(spec)
        plain = np.concatenate(
            [np.asarray(_values(group, name)) for group in having if kinds[id(group)] is None] or [np.empty(0)]
        )
        least = min(float(np.min(_values(group, name))) for group in grouped)
        known = plain[np.abs(plain) < 1e15]
        whole = np.all((known == np.trunc(known)) & (np.abs(known) < 1000))
        if not curve or (len(plain) and whole and least >= 1000):
            grouped = []  # 998, 999, 1,000: the commas separate thousands
    if parts or grouped:
        _drop([*parts, *grouped], name, "number_ambiguous", key, doubts)
    if glued:
        _drop(glued, name, "number_ambiguous", key, doubts)


def _convert(having: list[_Group], name: str, key: RuleKey, doubts: list[Doubt]) -> None:
    """Convert values printed in a rarer unit to the column's usual unit, if both are known."""
    having = [group for group in having if _column(group, name) is not None]
    count = Counter[str]()
    for group in having:
        count[dict(group.form.units).get(name, "")] += len(_values(group, name))
    if len(count) < 2:
        return
    usual = max(count, key=lambda unit: (count[unit], unit))
    for group in having:
        unit = dict(group.form.units).get(name, "")
        if unit == usual:
            continue
        factor = find_ratio(unit, usual)
        if factor is None:
            _drop([group], name, "unit_ambiguous", key, doubts)
        elif factor != 1:
            column = _column(group, name)
            assert column is not None
            column.values = Cells("d", [float(Decimal(repr(value)) * factor) for value in column.values])


def _with_continued(groups: list[_Group], key: RuleKey, again: Again) -> list[_Group]:
    """Return the groups with records that a collector split inside a number joined to the next line.

    Proof: both lines together have the form and the columns of other records of the rule, and the joined number has their
    digits after the point. A number without a point may have lost it.
    """
    for name in sorted({group.form.last[0] for group in groups if group.form.last is not None}):
        for group in [group for cut in _cut(groups, name) for group in cut]:
            read = [_continued(group.columns, row, key, again) for row in range(len(group.columns))]
            for number, sibling in enumerate(groups):
                digits = {n for n in sibling.columns.printed.get(name, ()) if n}
                same = [columns for form, columns in read if form == sibling.form and _names(columns) == _names(sibling.columns)]
                whole = [columns for columns in same if digits.issuperset(columns.printed.get(name, (None,)))]
                if len(whole) == len(read) and len(sibling.columns) >= FEW:
                    groups[number] = sibling._replace(columns=interleaved([sibling.columns, *whole]))
                    groups.remove(group)
                    break
    return groups


def _continued(columns: RuleColumns, row: int, key: RuleKey, again: Again) -> tuple[Form | None, RuleColumns]:
    """Return the form and columns of a record joined to the next line; None if the rule reads nothing."""
    line, whole = columns.line[row], RuleColumns()
    body = again(line)
    if body is None or len(body.rules) != 1:
        return None, whole
    [((ref, name), found)] = body.rules.items()
    base, mark, form = name.partition(MARK)
    if (ref, base) != key or len(found) != 1:
        return None, whole
    whole.extend(found, columns.at[row] >> POSITION_BITS, line - 1)
    return read_form(mark + form), whole


def _names(columns: RuleColumns) -> set[str]:
    return {*columns.numbers, *columns.unregistered, *columns.texts}


def _cut(groups: Sequence[_Group], name: str) -> Iterator[list[_Group]]:
    """Yield groups of records cut inside a number: their siblings go on after it, or print more decimals.

    The first record of a run may lack a value that the others end with, such as a rate, which needs two records.
    """
    having = [group for group in groups if _column(group, name) is not None]
    ends = [group for group in having if group.form.last is not None and group.form.last[0] == name]
    total, first = sum(len(group.columns) for group in groups), min(group.columns.at[0] for group in groups)
    for decimals in (0, 1):
        cut = [group for group in ends if group.form.last == (name, decimals) and group.columns.at[0] > first]
        count = sum(len(group.columns) for group in cut)
        others = [group for group in groups if group not in cut]
        if not cut or count > MAX_CUT or not _is_rare(count, total) or any(_is_whole(group, name) for group in cut):
            continue
        more = {group.form.last[1] for group in ends if group not in cut and group.form.last is not None}
        if all(group in ends for group in others):  # all end with it: the number of decimals is fixed, or large
            short = bool(more) and ((len(more) == 1 and max(more) > decimals) or min(more) >= decimals + MANY)
        else:
            rest = (group.columns for group in having if group not in cut)
            short = _most_digits((group.columns for group in cut), name) < _most_digits(rest, name)
        if short:
            yield cut


def _leave_out_shorter(
    key: RuleKey, rule: Rule, groups: list[_Group], others: Sequence[tuple[Rule, RuleColumns]], body: SegmentBody
) -> None:
    """Drop a number that ends its line if another rule reads it in many records with more decimals."""
    for group in groups:
        name, decimals = group.form.last or ("", 0)
        target = rule.fields[name].target if name in rule.fields else None
        if decimals > 1 or target is None or target[0] != "metric" or name not in group.columns.numbers or _is_whole(group, name):
            continue
        most = (
            _most_digits([columns], field)
            for other, columns in others
            for field, spec in other.fields.items()
            if spec.target == target and field in columns.numbers and len(columns) >= FEW
        )
        if _most_digits([group.columns], name) < max(most, default=0):
            _drop([group], name, "record_cut", key, body.doubts)
            body.rules[key].numbers.pop(name, None)
            body.rules[key].printed.pop(name, None)


def _is_whole(group: _Group, name: str) -> bool:
    """Return whether a value of the group is printed with few digits anyway: NaN, infinity, and 0 or 1 unless it is a loss."""
    values = _values(group, name)
    return any(not math.isfinite(value) or (value in (0, 1) and "loss" not in name) for value in values)


MAX_CUT = 2
"""Most records of one form that count as cut; more are printed so."""
MANY = 3
"""Missing decimals that show a cut number, if its siblings vary in their decimals."""


def _most_digits(columns: Iterable[RuleColumns], name: str) -> float:
    """Return the most decimals that numbers of a column show in base units; inf if an exponent leaves it open."""
    return max((math.inf if n is None else n for each in columns for n in each.printed.get(name, ())), default=0)
