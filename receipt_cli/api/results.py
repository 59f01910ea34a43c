"""What the functions of the API return: documents with attributes, which ``results.pyi`` declares."""

from __future__ import annotations

from receipt_cli.api.view import View


class Metric(View):
    """Statistics of one metric in a run's primary phase, in the base unit ``unit`` (``"1"``: a number).

    ``min`` to ``median`` and ``record_count`` are over ``window``: all records of the phase, or those of its steady state. A
    statistic is None where no finite value was printed. ``source`` is reported (printed by the trainer), derived (recomputed) or
    other (printed, outside of the registry: ``id`` and ``unit`` are None). ``headline`` is the one figure of a summary: the last
    value of a curve or counter, else the median.
    """

    __slots__ = ()


class Verification(View):
    """Whether a receipt can be derived from its log again: ``to_dict()`` is what ``receipt verify --json`` prints.

    ``verified``: the derived part is the same byte for byte, and the receipt is valid. ``other`` names the inputs that are other
    than the recorded ones, and ``values`` where anything else differs. ``notes`` are sentences for the person who asked.
    """

    __slots__ = ()


class Comparison(View):
    """How runs differ from the first: ``to_dict()`` is what ``receipt compare --json`` prints.

    Each of ``contrasts`` is a group of runs against the ``baseline``. ``worse``: whether any is worse or not comparable, as
    ``--fail`` asks. ``notes`` are sentences for the person who asked.
    """

    __slots__ = ()


class Migration(View):
    """A document in a newer version: ``to_dict()`` is the row of its file in what ``receipt schema migrate --json`` prints.

    ``versions`` are those that it went through, its own first. ``data`` is the new document's bytes, or the original's where
    there was nothing to do.
    """

    __slots__ = ()


class Finding(View):
    """One thing that is wrong with a document: ``to_dict()`` is its row in what ``receipt schema check --json`` prints.

    ``severity`` is ``error``, or ``note`` for what is worth knowing. ``refusal`` is the error of a file that could not be judged.
    """

    __slots__ = ()
