"""Lines that mention a failure and are none: a configuration, a help text, a quotation, a list, a key, a sample of text."""

from __future__ import annotations

from collections.abc import Sequence

Lines = Sequence[bytes]
WORDS = (
    "CUDA out of memory",
    "Killed",
    "KeyboardInterrupt",
    "exit code 137",
    "Segmentation fault",
    "NCCL timeout",
    "Out of memory: Killed process",
    "No space left on device",
    "ModuleNotFoundError",
    "loss is nan",
    "SIGTERM",
    "Traceback (most recent call last)",
    "preempted",
    "Bus error",
    "uncorrectable ECC error",
)
FORMS = (
    "retry_on: ['{0}', 'timeout']",
    'on_error: "{0}"',
    "  --retry-on TEXT   what to do on {0} (default: restart)",
    "# {0} is handled by the launcher",
    'print("{0}")',
    "If you see `{0}`, lower the batch size.",
    "sample 12: The log said {0} and nobody knew why.",
    "  - {0}",
    'patterns = ["{0}", "{1}"]',
    "known failures: {0}, {1}",
    "2026-05-06 07:08:09 INFO watchdog: will look for '{0}' in the log",
    "User: my job says {0}, what does it mean? Assistant: it means that the job ended.",
    '{{"prompt": "why {0}?", "answer": "{1}"}}',
    "docs/errors.md: {0} ({1})",
)
PLACES = ((0.0, 0.5, -1.0), (0.25, 0.75, 1.0))
"""Where they stand in one log and in another: as shares of the lines; -1 is before the last line."""


def inserted(lines: Lines, texts: Sequence[str], places: Sequence[float]) -> bytes:
    """Return the log with ``texts`` as lines at ``places``, each text at one of them.

    Lines that come again together would be what a launch prints at its begin.
    """
    made = list(lines)
    ordered = sorted(places, key=lambda share: share if share >= 0 else 0.99, reverse=True)
    for number, place in enumerate(ordered):
        at = max(0, len(lines) - 1) if place < 0 else round(place * len(lines))
        own = texts[(number + round(4 * places[1])) % len(places) :: len(places)]
        made[at:at] = [text.encode() + b"\n" for text in own]
    return b"".join(made)
