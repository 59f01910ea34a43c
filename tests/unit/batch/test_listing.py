"""The listing of an archive gives back what was put in, by name, each path once."""

import os

from receipt_cli.batch.discovery import Listing, kind_of
from receipt_cli.batch.model import Log

BASE = os.path.join(os.sep, "archive")


def listing(*logs: Log) -> Listing:
    return Listing(BASE, [Listing.row(log, BASE) for log in logs])


def test_logs_come_by_name_as_they_were() -> None:
    logs = [
        Log("a/run 10.log", os.path.join(BASE, "a/run 10.log"), False, 0, "0 1 2 3", True),
        Log("a\nb.log", os.path.join(BASE, "a\nb.log"), False, 7, "", False),
        Log("b\\udcff.log", os.path.join(BASE, "b\udcff.log"), True, 2**40, "x", True),
        Log("s3://bucket/ä.log", "s3://bucket/ä.log", False, 5, "ETag=1", True),
    ]
    found = listing(*reversed(logs))
    assert list(found) == sorted(logs, key=lambda log: log.name)
    assert (len(found), found[-1], found[1:3]) == (4, logs[-1], sorted(logs, key=lambda log: log.name)[1:3])


def test_a_path_that_is_found_twice_is_one_log_and_named_where_it_was() -> None:
    path = os.path.join(BASE, "run.log")
    named = Log("run.log", path, True, 3, "s", True)
    other = Log("run.log", "/elsewhere/run.log", False, 3, "s", True)
    found = listing(Log("run.log", path, False, 3, "s", True), other, named, Log("run.log", path, False, 3, "s", True))
    assert sorted(found, key=lambda log: log.path) == sorted([named, other], key=lambda log: log.path)


def test_names_that_differ_in_numbers_only_are_of_one_kind() -> None:
    assert kind_of("0001/train-17.log") == kind_of("0020/train-4.log.gz") != kind_of("0001/test-17.log")
    assert kind_of("b\udcff.log") == kind_of("b\udcff1.log")
