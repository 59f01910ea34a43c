"""The grammar of a trainer that nobody knows."""

from typing import Any


def made_grammar(rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the definition with these rules, and whatever ``more`` it has."""
    about = {"grammar": "made", "version": 1, "title": "Made", "upstream": "https://example.org", "trainer": "made"}
    return {**about, "layer": "trainer", "completion": "none", "rules": rules, **more}


LOOSE = made_grammar(
    {
        "row": {
            "event": "step",
            "literal": "round ",
            "pattern": r"\bround (?P<step>\d++): loss (?P<loss>\d[\d.]*+|nan)(?:,? took (?P<time>\d[\d.]*+))?",
            "fields": {
                "step": {"type": "integer"},
                "loss": {"type": "number"},
                "time": {"type": "number", "metric": "step_time_s"},
            },
        }
    }
)
"""A grammar that reads the beginning of whatever stands in the place of a number."""
