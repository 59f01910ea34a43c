"""Rules of the kind ``table`` on any record."""

from tests.fuzz.rules import rule_target

target, seeds = rule_target("table")
