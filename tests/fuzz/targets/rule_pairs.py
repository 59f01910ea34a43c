"""Rules of the kind ``pairs`` on any record."""

from tests.fuzz.rules import rule_target

target, seeds = rule_target("pairs")
