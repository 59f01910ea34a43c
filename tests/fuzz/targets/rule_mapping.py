"""Rules of the kind ``mapping`` on any record."""

from tests.fuzz.rules import rule_target

target, seeds = rule_target("mapping")
