"""Single lines against the shipped catalogue, and the parts of the loader."""

from dataclasses import replace
from pathlib import Path

import pytest
import regex

from receipt_cli.authoring import lint_markers as marker_lint
from receipt_cli.authoring import redos
from receipt_cli.authoring.lint_markers import lint_catalogue
from receipt_cli.definitions import failure_markers as markers
from receipt_cli.definitions import resources
from receipt_cli.definitions.failure_markers import Catalogue, Marker, MarkerHit, load_catalogue
from receipt_cli.errors import DataError


def best(line: str) -> MarkerHit | None:
    """The hit that names the reason of this line alone: lowest rank, then first in the catalogue."""
    hits = [hit for hit in load_catalogue().search(line.encode()) if hit.marker.reason]
    return min(hits, key=lambda hit: hit.marker.priority, default=None)


REASONS = [
    ("oom behind a rank", "[rank3]: OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "cuda_oom"),
    ("oom behind srun", "12: RuntimeError: CUDA out of memory. Tried to allocate 2.00 MiB (GPU 0;", "cuda_oom"),
    ("oom through vllm", "RuntimeError: Worker failed with: CUDA out of memory. Tried to allocate 2 GiB", "cuda_oom"),
    ("slurm, glued to a bar", "9/11 [00:01<00:03]slurmstepd: error: *** JOB 3 ON n1 CANCELLED AT 2021 ***", "killed"),
    ("interrupt of the agent", "x:Received Signals.SIGINT death signal, shutting down workers", "interrupted"),
    ("victim", "  traceback : Signal 15 (SIGTERM) received by PID 84569", "child_failed"),
    ("exception behind ray", "(WorkerDict pid=1, ip=10.0.0.1) ValueError: bad", "traceback"),
    ("exception behind colours", "\x1b[36m(main_task pid=7)\x1b[0m ValueError: bad", "traceback"),
    ("exception behind a cloud head", "ERROR 2026-01-01T00:00:00.1Z [resource.labels.x: y] KeyError: 1", "traceback"),
    (
        "oom behind syslog",
        "<14>1 2026-01-02T03:04:05Z n1 train 8 - - torch.OutOfMemoryError: CUDA out of memory. Tried",
        "cuda_oom",
    ),
    ("oom behind pdsh", "10.0.0.4: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "cuda_oom"),
    ("german shell", "a.sh: Zeile 3: 81 Speicherzugriffsfehler  (Speicherabzug geschrieben) python", "segfault"),
    ("chinese shell", "已杀死", "killed"),
    ("sweep", "wandb: Ctrl + C detected. Stopping sweep.", "interrupted"),
]


@pytest.mark.parametrize(("line", "reason"), [row[1:] for row in REASONS], ids=[row[0] for row in REASONS])
def test_a_line_has_its_reason(line: str, reason: str) -> None:
    hit = best(line)
    assert hit.marker.reason == reason


BENIGN = [
    "except torch.cuda.OutOfMemoryError:",
    'raise ValueError("n_head must divide n_embd")',
    "        ValueError: if the sizes differ.",
    "oom_score_adj: 0",
    "| epoch 1 | loss 7.6 | clip=100%, oom=0, wall=241",
    " iteration 1/ 10 | lm loss: 1.0E+00 | number of nan iterations:   0 |",
    "x = torch.nan_to_num(x)",
    "time:125/nans step_avg:nanms",
    "model.py:12: UserWarning: the gradient was skipped due to an overflow",
    "FutureWarning: this class will be removed",
    "DeprecationWarning: an integer is required",
    "root      1291     1  0 Mar01 ?        00:00:04 /usr/sbin/slurmstepd infinity",
    "The dragon killed the knight, and the queen terminated the contract.",
    "usage: train.py [-h] [--log_level {debug,info,error}]",
    "  exit_signal ..................................... 15",
    "error_injection_type ............................ transient_error",
    "CUDA kernel errors might be asynchronously reported at some other API call",
    "[rank1]:[W1031 06:37:48.4 ProcessGroupNCCL.cpp:1522] Warning: destroy_process_group() was not called",
    "WARNING: caught ValueError: bad record, skipping it",
    "0 NCCL_ASYNC_ERROR_HANDLING=1",
    "[comm] NCCL communicator overridden",
    "saved in 3 s (success)",
    "The instance can be preempted; checkpoints are written every 500 steps",
    "spot instances may be reclaimed at any time",
    "Das Training ist Beendet",
    "Terminado en 12 s",
    "Failed with result 'timeout' is retried",
    "State: RUNNING",
    "timeout: 1800 s",
    "wandb: Terminating and syncing runs. Press ctrl-c to kill.",
    "NCCL operation timeout is 1800 s",
    "oom_killer: enabled",
    "zsh: command timing: killed 0 jobs",
    "",
]


@pytest.mark.parametrize("line", BENIGN)
def test_a_benign_line_fires_nothing(line: str) -> None:
    assert load_catalogue().search(line.encode()) == ()


OBSERVED = [
    ("W0812 16:09:12.5 787 a.cc:1] Unsuccessful retry of x due to error: RESOURCE_EXHAUSTED: XLA", "memory_pressure"),
    ("[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536", "loss_scale_overflow"),
    ("[launch.py:460:main] Process 73578 exits successfully.", "rank_success"),
    ("a:Sending process 212 closing signal SIGTERM", "elastic_restart"),
    ("Exception ignored while flushing sys.stdout:", "ignored_exception"),
    ("torchrun finished successfully (code 0)", "wrapper_success"),
]


@pytest.mark.parametrize(("line", "marker"), OBSERVED)
def test_an_observation_has_no_reason(line: str, marker: str) -> None:
    assert [hit.marker.id for hit in load_catalogue().search(line.encode())] == [marker]
    assert best(line) is None


EXIT_CODES = [
    ("EXIT_CODE=1", 1),
    ("EXIT_CODE=0", 0),
    ("torchrun exited with code 1", 1),
    ("[NODE-0(host-26)] [INFO] primus launcher exited with code 1", 1),
    ("[ERROR] [launch.py:320:sigkill_handler] ['python'] exits with return code = -9", -9),
    ("  exitcode  : 1 (pid: 92121)", 1),
    ("  exitcode  : -15 (pid: 84569) (SIGTERM)", -15),
    ("srun: error: n1: tasks 0-3: Exited with exit code 2", 2),
    ("INFRASTRUCTURE_FAILURE 07-candidate exit=1", 1),
    ("subprocess.CalledProcessError: Command '['python']' returned non-zero exit status 1.", 1),
    ("wandb: Waiting for W&B process to finish... (failed 1). Press Control-C to abort syncing.", 1),
    ("# Ended (code 0) at Tue Oct 20 06:04:43 EDT 2015, elapsed time 0 seconds", 0),
]


@pytest.mark.parametrize(("line", "code"), EXIT_CODES)
def test_an_exit_code_is_read(line: str, code: int) -> None:
    assert [h.exit_code for h in load_catalogue().search(line.encode()) if h.marker.role == "exit_code"] == [code]


MESSAGES = [
    ("[rank0]:[rank0]: KeyError: 'a'  ", "KeyError: 'a'"),
    ("12: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 6 GiB.\x1b[0m\r", None),
    ("ValueError: \x1b[1Ax\x1b[31m red \x1b[2Km", "ValueError: \x1b[1Ax\x1b[31m red \x1b[2Km"),  # a colour alone is no end
    ("2026-01-01T00:00:00.1234567Z \x1b[31mValueError: bad\x1b[0m \x1b[0m", "ValueError: bad"),
    ("5/9 [00:01<00:03]slurmstepd: error: *** JOB 3 ON n CANCELLED AT x ***", "slurmstepd: error: *** JOB 3 ON n "),
    ("[rank1]: OSError: [Errno 28] No space left on device: 'a'", "OSError: [Errno 28] No space left on device: 'a'"),
]


@pytest.mark.parametrize(("line", "message"), MESSAGES)
def test_the_message_starts_where_it_is_told_and_ends_clean(line: str, message: str | None) -> None:
    hit = best(line)
    text = line.encode()[hit.start : hit.end].decode()
    assert text.startswith(message or "torch.OutOfMemoryError: CUDA out of memory.")
    assert text == text.strip()
    assert "\x1b" not in text or text == message


def test_signal_exceptions_are_no_exceptions() -> None:
    lines = [
        b"KeyboardInterrupt: ",
        b"SystemExit: 1",
        b"torch.distributed.elastic.multiprocessing.api.SignalException: Process 6 got signal: 15",
        b"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
    ]
    assert not any(hit.marker.id == "exception" for line in lines for hit in load_catalogue().search(line))


def marker(pattern: str, *, literal: bytes = b"boom!") -> Marker:
    return Marker("boom", "traceback", "code", "error", 1, 2, (literal,), pattern, (), ())


def test_the_message_group_bounds_the_message() -> None:
    hit = marker(r"boom! (?P<message>\w+) (?P<exit_code>-?\d+)").search(b"x boom! here -9 and more")
    assert (hit.start, hit.end, hit.exit_code) == (8, 12, -9)


def test_a_search_that_takes_too_long_is_no_match(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markers, "SEARCH_SECONDS", 0.05)  # without it, the search would not end
    assert marker(r"(?:(?:a|b|ab)*)*z").search(b"ab" * 4000 + b"boom!") is None


HEADS = (b"", b"[rank0]: ", b"x ", b"\x1b[31m")


def test_the_core_of_a_pattern_matches_wherever_the_pattern_does() -> None:
    shipped = load_catalogue().markers
    lines = [sample for one in shipped for sample in (*one.samples, *(counter.line for counter in one.counter_samples))]
    left_out = 0
    for fresh in map(replace, shipped):  # of which nothing is compiled
        for line in (head + line for head in HEADS for line in lines if any(literal in line for literal in fresh.literals)):
            found = regex.search(fresh.source.encode(), line)
            assert found is None or fresh.may_match(line), (fresh.id, line)
            left_out += not fresh.may_match(line)
        assert "pattern" not in vars(fresh)
    assert left_out > len(lines)


GOOD = """\
catalogue: markers
version: 1
head: '^(?:\\[rank\\d\\]: )?'
markers:
  boom:
    reason: traceback
    category: code
    role: error
    rank: 1
    overcome_after: 2
    literal: 'Boom: '
    pattern: '(?&head)\\KBoom: \\S'
    samples: ['Boom: a', '[rank0]: Boom: b']
    counter_samples: ['raise Boom: a']
  code:
    reason: null
    category: unknown
    role: exit_code
    rank: 3
    overcome_after: 1
    literal: ['code=', 'CODE=']
    pattern: |-
      ^code=(?P<exit_code>\\d+)
      |^CODE=(?P<exit_code>\\d+)
    samples: ['code=1', 'CODE=2']
    counter_samples: []
"""


def told(text: str) -> list[str]:
    return [f"{f.where} {f.reason}" for f in lint_catalogue(text.encode(), "a.yaml")]


def test_a_sound_catalogue_has_no_findings() -> None:
    assert told(GOOD) == []


BROKEN = [
    ("unknown key", ("    rank: 1", "    rank: 1\n    rnk: 1"), "a.yaml:5 boom: unknown key 'rnk'"),
    ("reason", ("reason: traceback", "reason: oom"), 'a.yaml:5 boom: reason is none of "cuda_oom"'),
    ("reason given", ("reason: null", "reason: killed"), "a.yaml:15 code: role exit_code cannot have a reason"),
    ("reason missing", ("reason: traceback", "reason: null"), "a.yaml:5 boom: role error needs a reason"),
    ("rank", ("rank: 1", "rank: 4"), "a.yaml:5 boom: rank breaks maximum: 3"),
    ("short literal", ("literal: 'Boom: '", "literal: 'Boom'"), "a.yaml:5 boom: literal must have at least 5 bytes"),
    ("pattern not ASCII", ("\\KBoom: \\S", "\\KBoom: ř"), "a.yaml:5 boom: pattern is not ASCII"),
    ("id", ("  boom:", "  Boom:"), 'a.yaml:5 Boom: breaks pattern: "^[a-z][a-z0-9_]{2,39}$"'),
    ("pattern broken", ("\\KBoom: \\S", "\\KBoom: ["), "a.yaml:5 boom: pattern does not compile"),
    ("no exit_code", ("<exit_code>", "<exitcode>"), "a.yaml:15 code: a marker of role exit_code needs a group"),
    ("no literal in sample", ("'Boom: a',", "'Bo m: a',"), "a.yaml:5 boom: no literal in sample 'Bo m: a'"),
    ("sample", ("'Boom: a',", "'x Boom: a',"), "a.yaml:5 boom: sample does not match: 'x Boom: a'"),
    ("exit code sample", ("exit_code>\\d+)\n", "exit_code>\\d*)?\n"), None),
    ("counter sample", ("'raise Boom: a'", "'Boom: a'"), "a.yaml:5 boom: counter sample fires boom: 'Boom: a'"),
    ("atomic", ("(?&head)\\K", "(?>(?&head)\\K)"), "a.yaml:5 boom: (?&head) is in a group other than"),
    ("possessive", ("(?&head)\\K", "(?:(?&head))?+\\K"), "a.yaml:5 boom: (?&head) is in a group other than"),
    ("plain group", ("(?&head)\\K", "(?:(?&head)|(?!x[(])y)\\K"), None),
    ("slow", ("\\KBoom: \\S", "\\KBoom: \\S|(?:a|aa)+#"), "a.yaml:5 boom: takes "),
]


@pytest.mark.parametrize(("change", "want"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_a_broken_catalogue_is_told(change: tuple[str, str], want: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markers, "SEARCH_SECONDS", 0.2)
    monkeypatch.setattr(marker_lint, "SEARCH_SECONDS", 0.2)
    assert change[0] in GOOD
    said = told(GOOD.replace(*change))
    assert any(line.startswith(want) for line in said) if want else said == [], said


def test_one_reason_holds_a_rank_on_a_line() -> None:
    other = GOOD[GOOD.index("  boom:") : GOOD.index("  code:")]
    rival = other.replace("  boom:", "  rival:").replace("reason: traceback", "reason: killed")
    assert [line.split(":", 2)[2] for line in told(GOOD + rival)] == [
        " sample also fires rival (killed): 'Boom: a'",
        " sample also fires rival (killed): '[rank0]: Boom: b'",
        " sample also fires boom (traceback): 'Boom: a'",
        " sample also fires boom (traceback): '[rank0]: Boom: b'",
    ]
    weaker = rival.replace("rank: 1", "rank: 2")
    assert all(" rival: " in line for line in told(GOOD + weaker))
    watching = rival.replace("reason: killed", "reason: null").replace("role: error", "role: observation")
    assert all(" rival: " in line for line in told(GOOD + watching))


def test_stated_company_of_a_counter_sample() -> None:
    stated = GOOD.replace("'raise Boom: a'", "{line: 'code=2', fires: [code]}")
    assert told(stated) == []
    assert told(stated.replace("fires: [code]", "fires: [boom]")) != []


def test_a_marker_that_reads_ordinary_lines_slowly_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marker_lint, "_hostile_lines", lambda marker, size: [])  # which test_markers.py is about
    monkeypatch.setattr(redos, "seconds_of", lambda read, line: len(line) / 100_000)  # not what this machine takes
    monkeypatch.setattr(redos, "pace", lambda: 1.0)
    catalogue = load_catalogue()
    [marker] = [marker for marker in catalogue.markers if marker.id == "disk_full"]
    wide = replace(marker, literals=(*marker.literals, b"Error"))
    for each, slow in ((wide, True), (marker, False)):
        reasons = [reason for reason, _ in marker_lint._speed_problems(each, catalogue)]
        assert any(reason.endswith("ms on ordinary lines") for reason in reasons) is slow


def test_a_broken_installation_raises_a_data_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped_root = resources.data_root
    monkeypatch.setattr(resources, "data_root", lambda kind: tmp_path if kind == "grammars" else shipped_root(kind))
    load = load_catalogue.__wrapped__
    with pytest.raises(DataError, match="is missing"):
        load()
    (tmp_path / "markers").mkdir()
    (tmp_path / markers.MARKERS_PATH).write_text(GOOD.replace("rank: 1", "rank: 9"))
    with pytest.raises(DataError, match="boom: rank breaks maximum: 3"):
        load()
    (tmp_path / markers.MARKERS_PATH).write_text(GOOD)
    loaded = load()
    assert isinstance(loaded, Catalogue)
    assert [m.id for m in loaded.markers] == ["boom", "code"]
    assert len(loaded.sha256) == 64
