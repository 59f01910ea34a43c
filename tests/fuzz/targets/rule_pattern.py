"""Rules of the kind ``pattern`` on any record."""

from tests.fuzz.rules import rule_target

target, seeds = rule_target("pattern")
