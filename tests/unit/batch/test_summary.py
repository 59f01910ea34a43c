"""Reports of a batch, counted and as JSON."""

from receipt_cli.batch.model import MAX_TOLD, Failure, Identity, Log, Report, Tally, report_document
from receipt_cli.documents.diff import Difference

LOG = Log("a.log", "/logs/a.log", False, 10, "", True)
FAILED = Failure(4, "cannot read", "because")


def test_a_log_with_the_bytes_of_another_is_counted_apart() -> None:
    tally = Tally()
    tally.add(Report(LOG, "written", Identity("ab", 100), "receipts/ab.json", True, True))
    tally.add(Report(LOG, "written", Identity("ab", 100), same_as="a.log", derived=True))
    tally.add(Report(LOG, "unchanged", Identity("cd", 50), recognised=False))
    assert (tally.logs, tally.same, tally.derived, tally.derived_bytes, tally.unrecognised) == (3, 1, 1, 100, 1)
    assert dict(tally.changes) == {"written": 1, "unchanged": 1}


def test_the_worst_exit_code_counts_and_the_first_failures_are_listed() -> None:
    tally = Tally()
    for code in range(MAX_TOLD + 5):
        tally.add(Report(LOG, "quarantined", failure=Failure(code, "", "")))
    assert (tally.worst_exit_code, len(tally.quarantine)) == (MAX_TOLD + 4, MAX_TOLD)


def test_a_report_as_json() -> None:
    report = Report(LOG, "quarantined", failure=FAILED, differences=(Difference("/a", "changed", 1, 2),))
    document = report_document(report)
    assert (document["path"], document["outcome"]) == ("a.log", "quarantined")
    assert (document["exit_code"], document["why"]) == (4, "because")
    assert document["log_sha256"] is None and "differences" not in document
    assert report_document(report, compared=True)["differences"] == [{"pointer": "/a", "kind": "changed", "old": 1, "new": 2}]
