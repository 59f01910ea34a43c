"""Results of the API's functions: documents with attributes, which ``results.pyi`` declares."""

from __future__ import annotations

from receipt_cli.api.view import View


class Metric(View):
    """Statistics of one metric in a run's primary phase, in the base unit ``unit`` (``"1"``: a number).

    ``min`` to ``median`` and ``record_count`` are over ``window``: all records of the phase, or those of its steady state. A
    statistic is None if no finite value was printed. ``source`` is reported (printed by the trainer), derived (recomputed) or
    other (printed, outside the registry: ``id`` and ``unit`` are None). ``headline`` is the value for a summary: the last one
    of a curve or counter, else the median.
    """

    __slots__ = ()


class Verification(View):
    """Whether a receipt can be derived from its log again; ``to_dict()`` is the output of ``receipt verify --json``.

    ``verified``: the derived part is the same byte for byte, and the receipt is valid. ``other`` lists inputs that differ from
    the recorded ones; ``values`` lists all other differences. ``notes`` are sentences for the user.
    """

    __slots__ = ()


class Comparison(View):
    """Differences of runs from the first; ``to_dict()`` is the output of ``receipt compare --json``.

    Each of ``contrasts`` compares a group of runs with the ``baseline``. ``worse``: whether any is worse or not comparable, as
    for ``--fail``. ``notes`` are sentences for the user.
    """

    __slots__ = ()


class Migration(View):
    """A document in a newer version; ``to_dict()`` is its file's row in the output of ``receipt schema migrate --json``.

    ``versions`` are the versions that it went through, its own first. ``data`` is the new document's bytes, or the original's
    if it was up to date.
    """

    __slots__ = ()


class Finding(View):
    """One finding on a document; ``to_dict()`` is its row in the output of ``receipt schema check --json``.

    ``severity`` is ``error`` or ``note``. ``refusal`` is the exception for a file that could not be judged.
    """

    __slots__ = ()
