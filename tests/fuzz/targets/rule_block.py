"""Rules of the kind ``block`` on any record."""

from tests.fuzz.rules import rule_target

target, seeds = rule_target("block")
