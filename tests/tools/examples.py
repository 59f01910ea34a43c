"""How many examples a property tries whose examples take tens of milliseconds each."""

import os


def costly(count: int) -> int:
    """Return ``count`` with ``make explore``, and a quarter of it with ``make test``, which repeats the same ones every time."""
    return count if os.environ.get("HYPOTHESIS_PROFILE") == "explore" else count // 4
