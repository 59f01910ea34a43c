"""Rules whose patterns match where a text begins, or nowhere: they are tried at one place."""

from receipt_cli.grammar.catalog import shipped


def test_no_rule_at_the_start_matches_elsewhere() -> None:
    rules = [(g, rule) for g in shipped(with_samples=True) for rule in (*g.rules, *g.ignore)]
    lines = [line.encode() for _, rule in rules for sample in rule.samples for line in sample.line.split("\n")]
    found = 0
    for rule in (rule for _, rule in rules if rule.pattern and rule.at_start):
        for line in (line for line in lines if any(literal in line for literal in rule.literals)):
            for text in (line, b"x" + line, b"\n" + line):
                match = rule.start.search(text)
                assert (match is None) == (rule.start.match(text) is None)
                found += match is not None
    assert found > 100
