"""The YAML files that people write beside grammars: gates and comparison policies are used, or refused with a place."""

from dataclasses import asdict

from receipt_cli.ci.gates import read_gates
from receipt_cli.comparison.comparable import read_policy
from receipt_cli.definitions.metrics import load_registry
from receipt_cli.errors import DataError
from tests.fuzz.feed import Feed

_CHECKS = ("finite_losses", "zero_exit_code", "has_steps", "no_oom", "completed")


def target(data: bytes) -> None:
    feed = Feed(data)
    gates, text = feed.below(2), feed.rest()
    try:
        if gates:
            assert asdict(read_gates(text, "gates.yaml", checks=_CHECKS, registry=load_registry()))
        else:
            policy = read_policy(text, "policy.yaml")
            for pointer in ("/header/cwd", "/a/b/c", "/run/name", "/" + "a" * 200):
                assert policy.severity(pointer) in ("block", "warn", "ignore")
    except DataError as error:
        assert error.render() and error.where.startswith(("gates.yaml", "policy.yaml"))


def seeds() -> list[bytes]:
    gates = (
        b"require: [healthy, completed]\n",
        b"metrics:\n  loss: {last: {at_most: 3.0}, change: {worse_by_at_most: 5%, interval: used}}\n",
        b"metrics: {peak_memory_bytes: {max: {at_most: 70 GiB}}, mfu_ratio: {median: {at_least: 40 %}}}\n",
        b"fields: {/summary/steps/restart_count: {at_most: 0}}\n",
        b"unknown: {changes: fail}\n",
        b"unknown: skip\n",
        b"metrics: {step_time_s: {median: {at_most: 450 ms}}, tokens_per_s: {change: {differs_by_at_most: 1%}}}\n",
        b"metrics: {loss: {last: {at_most: .nan, at_least: -.inf}}}\n",
        b"fields: {/a: {at_most: 1e400}}\n",
    )
    policies = (
        b"block: ['/header/*']\nwarn: []\nignore: [/run/name]\nunknown: block\nresolution: 0.01\n",
        b"block: ['" + b"*a" * 40 + b"b']\n",
        b"a: &x 1\nb: *x\n",
    )
    return [b"\1" + text for text in gates] + [b"\0" + text for text in policies]
