"""``receipt import`` of a recorded session of GPU events: where the time went, and what is not known of it."""

import gzip
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Invoke

ROOT = Path(__file__).resolve().parents[2]
FLIGHT = ROOT / "fixtures" / "flight"
T0 = 1_772_000_000 * 10**9
MS = 10**6
KERNELS = ["dt_ns", "kernel_id", "stream_id", "duration_ns"]
NAMES = {"version": 1, "type": "dictionary_update", "session_id": "s", "kernel_dict": {"1": "k"}}

Profile = Callable[..., dict[str, Any]]


@pytest.fixture
def profile(invoke: Invoke) -> Profile:
    """Import a session and return the document."""

    def call(*paths: Path | str, options: tuple[str, ...] = ()) -> dict[str, Any]:
        done = invoke("import", *(FLIGHT / path if isinstance(path, str) else path for path in paths), "--json", *options)
        assert (done.code, done.stderr) == (0, ""), done.stderr
        return done.document

    return call


def start(**more: Any) -> dict[str, Any]:
    listed = [{"id": 0, "name": "NVIDIA Test GPU", "vendor": "NVIDIA"}]
    return {"version": 1, "type": "job_start", "session_id": "s", "app": "a", "ts_ns": T0, "gpu_static_devices": listed, **more}


def shutdown(ms: int) -> dict[str, Any]:
    return {"type": "shutdown", "session_id": "s", "ts_ns": T0 + ms * MS}


def batch(kind: str, columns: list[str], rows: list[Any], **more: Any) -> dict[str, Any]:
    base = {"version": 1, "type": kind, "session_id": "s", "base_time_ns": T0}
    return {**base, "columns": columns, "rows": rows, **more}


def kernels(*spans: tuple[int, int], columns: list[str] | None = None) -> dict[str, Any]:
    """A batch of kernels 1 that ran from one millisecond to another."""
    return batch("kernel_event_batch", columns or KERNELS, [[a * MS, 1, 0, (b - a) * MS] for a, b in spans])


def write(path: Path, *records: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = b"".join((r if isinstance(r, bytes) else json.dumps(r).encode()) + b"\n" for r in records)
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def kinds(document: dict[str, Any]) -> list[str]:
    return [problem["kind"] for problem in document["derivation"]["problems"]["first"]]


def losses(document: dict[str, Any]) -> dict[str, int | None]:
    assert document["events"]["lossy"] is bool(document["events"]["losses"])
    return {loss["kind"]: loss["count"] for loss in document["events"]["losses"]}


def test_a_complete_session_says_where_its_time_went(profile: Profile) -> None:
    document = profile("trace")
    events = document["events"]
    assert (events["application"], events["session_id"]) == ("train.py", "5f0e6c1a-8d0b-4c1e-9a3e-1f2d3c4b5a69")
    assert (events["started_at"], events["duration_s"]) == ("2026-02-25T06:13:20Z", 2.0)
    assert (events["complete"], events["lossy"], events["losses"]) == (True, False, [])
    # 100..150 and 120..170 overlap, 600..650 lies inside 500..700: 70 + 10 + 10 + 200 ms, of kernels of 370 ms
    assert (events["busy_s"], events["busy_ratio"]) == (0.29, 0.145)
    told = events["kernels"]
    assert (told["name_count"], told["launch_count"], told["total_s"]) == (3, 6, 0.37)
    assert [(k["name"][:16], k["count"], k["total_s"], k["min_s"], k["max_s"]) for k in told["top"]] == [
        ("flash_fwd_kernel", 1, 0.2, 0.2, 0.2),
        ("void at::native:", 3, 0.11, 0.01, 0.05),
        ("ampere_bf16_s168", 2, 0.06, 0.01, 0.05),
    ]
    assert [tuple(copy.values()) for copy in events["copies"]] == [
        ("host_to_device", 2, 0.0002, 2097152, 10485760000.0),
        ("device_to_device", 1, 5e-05, 4194304, 83886080000.0),
        ("fill", 1, 2e-06, 4096, 2048000000.0),
    ]
    assert [(s["name"], s["count"], s["total_s"], s["min_s"], s["open_count"]) for s in events["scopes"]] == [
        ("train_step", 2, 0.85, 0.35, 0),
        ("eval", 1, 0.2, 0.2, 1),
    ]
    assert {scope["warmup_count"] for scope in events["scopes"]} == {None}
    assert kinds(document) == []


def test_what_was_sampled_is_in_base_units(profile: Profile) -> None:
    document = profile("trace")
    (device,) = document["events"]["devices"]
    assert (device["number"], device["name"], device["memory_bytes"]) == (0, "NVIDIA H100 80GB HBM3", 81559 << 20)
    found = {name: (f["record_count"], f["first"], f["last"], f["median"]) for name, f in device["metrics"].items()}
    assert found["utilization_ratio"] == (3, 0.4, 1, 0.8)
    assert found["memory_used_bytes"] == (3, 20000 << 20, 60000 << 20, 40000 << 20)
    assert found["power_w"] == (3, 200, 600, 400)
    assert found["sm_clock_hz"] == (3, 1_500_000_000, 1_980_000_000, 1_980_000_000)
    assert found["energy_j"] == (1, 123.456789, 123.456789, 123.456789)
    assert found["voltage_v"] == (1, 0.85, 0.85, 0.85)
    # all zero is also what the client writes for a sensor that cannot be read
    assert not {"fan_speed_ratio", "ecc_corrected_count", "ecc_uncorrected_count"} & found.keys()
    (host,) = document["events"]["hosts"]
    assert host["name"] == "gpu-node-3"
    assert host["metrics"]["cpu_ratio"]["mean"] == 0.25
    assert host["metrics"]["ram_used_bytes"]["max"] == 32768 << 20
    hardware = document["header"]["hardware"]["accelerators"]
    assert hardware == [{"name": "NVIDIA H100 80GB HBM3", "count": 1, "memory_bytes": 81559 << 20}]
    assert document["header"]["sources"] == {"/hardware/accelerators": "import:device.1.log.gz#/gpu_static_devices"}


def test_the_files_and_records_of_a_session_are_accounted_for(profile: Profile) -> None:
    derivation = profile("trace")["derivation"]
    assert [file["name"] for file in derivation["files"]] == [
        "device.1.log.gz", "device.2.log.gz", "scope.1.log.gz", "system.1.log.gz", "sass.1.log.gz"
    ]  # fmt: skip
    assert sum(derivation["records"].values()) == sum(file["line_count"] for file in derivation["files"])
    assert derivation["records"]["unread"] == 0
    assert derivation["rules"] == "gpu_profile/2"


def test_a_killed_session_claims_nothing_that_may_be_missing(profile: Profile) -> None:
    document = profile("killed")
    events = document["events"]
    assert not events["complete"]
    assert losses(document) == {
        "empty_window": 1, "lost_window": 1, "undecodable_record": 1, "unpaired_record": 1, "unreadable_row": 2, "window_gap": 1
    }  # fmt: skip
    assert (events["duration_s"], events["kernels"]["launch_count"], events["kernels"]["total_s"]) == (1.5, 4, 0.6)
    assert (events["busy_s"], events["busy_ratio"], events["devices"][0]["busy_s"]) == (None, None, None)
    assert "kernels_not_whole" in kinds(document)
    assert [file["name"] for file in document["derivation"]["files"]][-3] == ".tmp/device.log"


def test_events_of_their_own_are_those_of_each_device(profile: Profile) -> None:
    document = profile("fat")
    events = document["events"]
    assert events["complete"]
    assert [(d["number"], d["name"], d["busy_s"]) for d in events["devices"]] == [
        (0, "NVIDIA A100-SXM4-40GB", 0.25), (1, "NVIDIA A100-SXM4-40GB", 0.4)
    ]  # fmt: skip
    assert (events["busy_s"], events["busy_ratio"], events["kernels"]["total_s"]) == (0.65, 0.325, 0.7)
    assert [(s["name"], s["total_s"]) for s in events["scopes"]] == [("epoch", 0.61), ("step", 0.2)]
    assert [(c["direction"], c["total_bytes"]) for c in events["copies"]] == [("device_to_host", 104857600)]
    used = events["devices"][1]["metrics"]["memory_used_bytes"]
    assert (used["record_count"], used["first"], used["last"]) == (3, 400 << 20, 600 << 20)
    assert events["hosts"][0]["metrics"]["cpu_ratio"]["median"] == 0.075
    # of two devices that the program saw, nobody says how many it used
    assert document["header"]["hardware"]["accelerators"][0]["count"] is None


def test_starts_and_ends_of_kernels_are_paired(profile: Profile) -> None:
    events = profile("pairs.ndjson")["events"]
    assert (events["duration_s"], events["busy_s"], events["busy_ratio"]) == (0.1, 0.04, 0.4)
    (kernel,) = events["kernels"]["top"]
    assert (kernel["count"], kernel["total_s"], kernel["min_s"], kernel["max_s"]) == (2, 0.05, 0.01, 0.04)
    assert events["started_at"] == "2025-12-28T07:45:20.50933014Z"


@pytest.mark.parametrize("name", ["trace", "killed", "fat", "pairs.ndjson", "nsys-stats.csv"])
def test_the_document_is_valid_is_shown_and_kept(invoke: Invoke, tmp_path: Path, name: str) -> None:
    made = tmp_path / "profile.json"
    done = invoke("import", FLIGHT / name, "-o", made, "--lane", "h100", "--attach", "gpufl=s3://traces/7")
    assert done.code == 0, done.stderr
    document = json.loads(made.read_bytes())
    assert document["run"]["lane"] == "h100"
    assert document["attachments"] == [{"kind": "gpufl", "uri": "s3://traces/7", "sha256": None, "size_bytes": None}]
    assert invoke("schema", "check", made).code == 0
    shown = invoke("show", made)
    assert shown.code == 0
    assert max(map(len, shown.stdout.decode().splitlines())) <= 80
    assert shown.stdout == done.stdout
    assert invoke("store", "add", tmp_path / "store", made).code == 0


def test_columns_are_read_by_name_and_new_ones_left_out(profile: Profile, tmp_path: Path) -> None:
    turned = batch(
        "kernel_event_batch", ["mood", "duration_ns", "kernel_id", "dt_ns"], [["fine", 2 * MS, 1, 0], [None, MS, 1, 0]]
    )
    document = profile(write(tmp_path / "device.log", start(), turned, NAMES, shutdown(10)))
    assert [(k["name"], k["count"], k["total_s"]) for k in document["events"]["kernels"]["top"]] == [("k", 2, 0.003)]
    assert document["events"]["busy_s"] == 0.002
    (problem,) = document["derivation"]["problems"]["first"]
    assert problem["kind"] == "unknown_column"
    assert "mood" in problem["detail"]


def test_a_column_that_was_inserted_shifts_nothing(profile: Profile, tmp_path: Path) -> None:
    """``total_mib`` came before ``clock_sm`` under the same version."""
    old = batch("device_metric_batch", ["dt_ns", "device_id", "used_mib", "clock_sm"], [[0, 0, 100, 1500]])
    new = batch("device_metric_batch", ["dt_ns", "device_id", "used_mib", "total_mib", "clock_sm"], [[MS, 0, 200, 40960, 1800]])
    (device,) = profile(write(tmp_path / "system.log", start(), old, new, shutdown(10)))["events"]["devices"]
    assert device["memory_bytes"] == 40960 << 20
    assert (device["metrics"]["sm_clock_hz"]["first"], device["metrics"]["sm_clock_hz"]["last"]) == (1.5e9, 1.8e9)
    assert "total" not in "".join(device["metrics"])


def test_batches_without_a_version_are_read_by_their_columns(profile: Profile, tmp_path: Path) -> None:
    bare = {key: value for key, value in kernels((1, 3), (4, 5)).items() if key != "version"}
    samples = batch("device_metric_batch", ["dt_ns", "device_id", "power_mw"], [[0, 0, 700_000]])
    del samples["version"]
    events = profile(write(tmp_path / "device.log", start(), bare, samples, NAMES, shutdown(10)))["events"]
    assert (events["kernels"]["launch_count"], events["kernels"]["total_s"], events["busy_s"]) == (2, 0.003, 0.003)
    assert events["devices"][0]["metrics"]["power_w"]["last"] == 700.0
    assert (events["complete"], events["lossy"]) == (True, False)


def test_a_session_beside_an_unread_record_is_not_complete(profile: Profile, tmp_path: Path) -> None:
    other = batch("kernel_event_batch", KERNELS, [[0, 1, 0, MS]], version=99)
    events = profile(write(tmp_path / "device.log", start(), kernels((1, 3)), other, shutdown(10)))["events"]
    assert (events["complete"], events["lossy"]) == (False, True)


@pytest.mark.parametrize(
    ("record", "kind"),
    [
        (batch("kernel_event_batch", KERNELS, [[0, 1, 0, MS]], version=2), "unknown_version"),
        (batch("kernel_event_batch", ["dt_ns", "duration_ns"], [[0, MS]]), "unreadable_batch"),
        (batch("kernel_event_batch", [*KERNELS, "dt_ns"], [[0, 1, 0, MS, 0]]), "unreadable_batch"),
        (batch("kernel_event_batch", KERNELS, [[0, 1, 0, MS]], base_time_ns="now"), "unreadable_batch"),
        (batch("kernel_event_batch", KERNELS, [[0, 1, 0]]), "unreadable_row"),
        (batch("kernel_event_batch", KERNELS, [[0, 1, 0, -5]]), "unreadable_row"),
        (batch("kernel_event_batch", KERNELS, [[0, 1, 0, 2.5]]), "unreadable_row"),
        (batch("kernel_event_batch", KERNELS, [[0, 1, 0, "5"]]), "unreadable_row"),
        (batch("kernel_event_batch", KERNELS, [[0, 1, 0, 10**30]]), "unreadable_row"),
        (batch("kernel_event_batch", KERNELS, [[0, 1, 0, float("nan")]]), "unreadable_row"),
        (batch("kernel_event_batch", KERNELS, ["abcd"]), "unreadable_row"),
        (b'{"version":1,"type":"kernel_event_batch","rows":[[', "undecodable_record"),
        (b"[" * 100_000, "undecodable_record"),
        (b"[1," + b"9" * 5000 + b"]", "undecodable_record"),
        (b"\xff\xfe", "undecodable_record"),
        (b'{"a":"' + b"x" * (9 << 20) + b'"}', "oversized_record"),
        ({"type": "kernel_event", "name": "k", "start_ns": 5, "end_ns": 4}, "unreadable_record"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_counted_and_leaves_the_rest(profile: Profile, tmp_path: Path, record: Any, kind: str) -> None:
    document = profile(write(tmp_path / "device.log", start(), kernels((1, 3)), record, shutdown(10)))
    assert kind in kinds(document)
    assert losses(document) == {kind: 1}
    assert (document["events"]["kernels"]["launch_count"], document["events"]["kernels"]["total_s"]) == (1, 0.002)
    assert document["events"]["busy_s"] is None


def test_a_listing_that_is_too_long_to_read_is_no_loss(profile: Profile, tmp_path: Path) -> None:
    listing = b'{"version":1,"type":"cubin_disassembly","text":"' + b"x" * (9 << 20) + b'"}'
    document = profile(write(tmp_path / "device.log", start(), kernels((1, 3)), listing, shutdown(10)))
    assert (losses(document), document["derivation"]["records"]) == ({}, {"read": 3, "ignored": 1, "unread": 0})
    assert document["events"]["busy_s"] == 0.002


def test_a_batch_that_is_there_twice_counts_once(profile: Profile, tmp_path: Path) -> None:
    again = {**kernels((1, 3)), "batch_id": 7}
    document = profile(write(tmp_path / "device.log", start(), NAMES, again, again, shutdown(10)))
    assert document["events"]["kernels"]["launch_count"] == 1
    assert kinds(document) == ["batch_repeated"]


def test_a_window_that_is_there_twice_is_read_once(profile: Profile, tmp_path: Path) -> None:
    folder = tmp_path / "session"
    shutil.copytree(FLIGHT / "trace", folder)
    (folder / "device.2.log").write_bytes(gzip.decompress((folder / "device.2.log.gz").read_bytes()))
    document = profile(folder)
    assert document["events"]["kernels"]["launch_count"] == 6
    assert kinds(document) == ["window_twice"]
    (folder / ".gpufl.synthetic-shutdown.system.log").write_bytes(b"")  # what a launcher left in the middle of its work
    (folder / "device.2.log").write_bytes(b"")  # what is left where the plain file could not be removed
    assert profile(folder) == profile("trace")


def test_a_window_that_is_not_what_its_sidecar_says_is_a_loss(profile: Profile, tmp_path: Path) -> None:
    folder = tmp_path / "session"
    shutil.copytree(FLIGHT / "trace", folder)
    whole = gzip.decompress((folder / "device.2.log.gz").read_bytes())
    (folder / "device.2.log.gz").write_bytes(gzip.compress(whole[: whole.index(b"\n") + 1]))
    document = profile(folder)
    assert losses(document) == {"payload_mismatch": None}
    assert document["events"]["busy_s"] is None


@pytest.mark.parametrize("cut", [10, 200])
def test_a_compressed_file_that_breaks_off_gives_what_is_there(profile: Profile, tmp_path: Path, cut: int) -> None:
    folder = tmp_path / "session"
    shutil.copytree(FLIGHT / "trace", folder)
    data = (folder / "system.1.log.gz").read_bytes()
    (folder / "system.1.log.gz").write_bytes(data[:-cut])
    document = profile(folder)
    assert losses(document)["damaged_file"] == 1
    assert document["events"]["busy_s"] == 0.29  # no hole in the channel of the kernels


def test_kernels_that_do_not_say_their_device_are_of_the_only_one(profile: Profile, tmp_path: Path) -> None:
    two = [{"id": n, "name": "NVIDIA Test GPU", "vendor": "NVIDIA"} for n in (0, 1)]
    document = profile(write(tmp_path / "device.log", start(gpu_static_devices=two), NAMES, kernels((1, 3)), shutdown(10)))
    assert [device["busy_s"] for device in document["events"]["devices"]] == [None, None]
    assert (document["events"]["busy_s"], document["events"]["kernels"]["total_s"]) == (None, 0.002)
    assert kinds(document) == ["device_unknown"]
    said = batch("kernel_event_batch", [*KERNELS, "device_id"], [[0, 1, 0, 2 * MS, 1], [0, 1, 0, 4 * MS, 0]])
    document = profile(write(tmp_path / "device.log", start(gpu_static_devices=two), NAMES, said, shutdown(10)))
    assert [device["busy_s"] for device in document["events"]["devices"]] == [0.004, 0.002]
    assert document["events"]["busy_ratio"] == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("spans", "duration", "kind"),
    [
        (((1, 3),), 0.01, None),
        (((-5000, -4990),), 0.01, "other_clock"),  # profiler-relative times, as older AMD captures had
        (((1, 5000),), None, "contradicting_times"),
        (((1, 9), (2, 100)), None, "contradicting_times"),  # within what clocks may differ, and longer than the session
    ],
)
def test_a_duration_that_the_kernels_contradict_is_none(
    profile: Profile, tmp_path: Path, spans: tuple[tuple[int, int], ...], duration: float | None, kind: str | None
) -> None:
    document = profile(write(tmp_path / "device.log", start(), NAMES, kernels(*spans), shutdown(10)))
    assert document["events"]["duration_s"] == duration
    assert kinds(document) == ([kind] if kind else [])
    assert (document["events"]["busy_ratio"] is None) is (duration is None)


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ({"exit_code": 1, "signaled": False, "signal": 0, "window_stopped": False}, 1),
        ({"exit_code": 137, "signaled": True, "signal": 9, "window_stopped": False}, -9),
        ({"exit_code": 0, "signaled": True, "signal": 15, "window_stopped": True}, None),
        ({"exit_code": "1"}, 1),
        ({"exit_code": 1.5}, None),
    ],
)
def test_an_end_that_the_launcher_wrote_is_none(
    profile: Profile, tmp_path: Path, ending: dict[str, Any], code: int | None
) -> None:
    write(tmp_path / "device.log", start(), NAMES, kernels((1, 3)))
    write(tmp_path / "system.1.log.gz", start())
    write(tmp_path / "system.2.log", {**shutdown(60_000), "synthetic": True, "crashed": True, **ending})
    document = profile(tmp_path)
    found = [document["events"][key] for key in ("complete", "duration_s", "busy_s")]
    assert (found, document["run"]["exit_code"]) == ([False, 0.003, None], code)
    assert "synthetic_end" in kinds(document)


def test_the_kinds_of_copies_are_those_of_the_vendor(profile: Profile, tmp_path: Path) -> None:
    copies = batch(
        "memcpy_event_batch", ["dt_ns", "duration_ns", "bytes", "copy_kind"], [[0, MS, 8, kind] for kind in (1, 3, 4, 99)]
    )
    found = {}
    for vendor in ("NVIDIA", "AMD", "Other"):
        listed = [{"id": 0, "name": "x", "vendor": vendor}]
        document = profile(write(tmp_path / "device.log", start(gpu_static_devices=listed), copies, shutdown(10)))
        found[vendor] = {copy["direction"]: copy["count"] for copy in document["events"]["copies"]}
        assert kinds(document) == ["copy_kind_unknown"]
    assert found == {
        "NVIDIA": {"host_to_device": 2, "device_to_host": 1, "unknown": 1},
        "AMD": {"host_to_device": 1, "device_to_device": 1, "host_to_host": 1, "unknown": 1},
        "Other": {"host_to_device": 1, "unknown": 3},
    }


def test_a_column_with_an_impossible_value_is_left_out(profile: Profile, tmp_path: Path) -> None:
    """Some drivers give energy in millijoules where power in milliwatts is asked for."""
    rows = [[0, 0, 50, 350_000], [MS, 0, 60, 9_000_000]]
    samples = batch("device_metric_batch", ["dt_ns", "device_id", "gpu_util", "power_mw"], rows)
    document = profile(write(tmp_path / "system.log", start(), samples, shutdown(10)))
    assert list(document["events"]["devices"][0]["metrics"]) == ["utilization_ratio"]
    assert kinds(document) == ["impossible_value"]


def test_scopes_are_paired_whichever_half_comes_first(profile: Profile, tmp_path: Path) -> None:
    columns = ["dt_ns", "scope_instance_id", "name_id", "event_type", "depth", "repeat", "warmup", "original_start_ns"]
    rows = [[9 * MS, 1, 1, 1, 0, 0, 0, T0], [4 * MS, 1, 1, 0, 0, 0, 0, T0], [MS, 2, 1, 2, 0, 0, 0, T0 - 7 * MS],
            [3 * MS, 2, 1, 1, 0, 0, 0, T0 - 7 * MS], [5 * MS, 3, 1, 0, 0, 0, 0, T0], [9 * MS, 3, 1, 3, 0, 0, 0, T0]]  # fmt: skip
    document = profile(write(tmp_path / "scope.log", start(), batch("scope_event_batch", columns, rows, version=3), shutdown(10)))
    (scope,) = document["events"]["scopes"]
    assert (scope["name"], scope["count"], scope["min_s"], scope["max_s"], scope["open_count"]) == ("#1", 2, 0.005, 0.01, 1)
    assert kinds(document) == ["name_unknown"]


def test_a_name_that_two_ids_share_is_one_and_an_id_of_two_names_has_none(profile: Profile, tmp_path: Path) -> None:
    names = [
        {"type": "dictionary_update", "session_id": "s", "kernel_dict": d} for d in ({"1": "a", "2": "b", "3": "b"}, {"1": "c"})
    ]
    rows = batch("kernel_event_batch", KERNELS, [[0, n, 0, n * MS] for n in (1, 2, 3)])
    document = profile(write(tmp_path / "device.log", start(), rows, *names, shutdown(10)))
    assert [(k["name"], k["count"]) for k in document["events"]["kernels"]["top"]] == [("b", 2), ("#1", 1)]
    assert kinds(document) == ["name_twice", "name_unknown"]


def test_no_text_of_a_session_steers_a_terminal_or_tells_a_secret(invoke: Invoke, tmp_path: Path) -> None:
    names = {"type": "dictionary_update", "session_id": "s", "kernel_dict": {"1": "\x1b[2Jk hf_" + "a" * 30}}
    made = tmp_path / "made.json"
    done = invoke(
        "import", write(tmp_path / "device.log", start(app="\x1b]0;x\x07app"), names, kernels((1, 3)), shutdown(10)), "-o", made
    )
    assert done.code == 0
    assert b"\x1b" not in done.stdout + made.read_bytes()
    assert b"hf_aaaa" not in done.stdout + made.read_bytes()


def test_several_sessions_in_one_file_are_told_apart(invoke: Invoke, profile: Profile, tmp_path: Path) -> None:
    other = [{**record, "session_id": "t"} for record in (start(), kernels((1, 9)), shutdown(10))]
    path = write(tmp_path / "device.log", start(), kernels((1, 3)), shutdown(10), *other)
    done = invoke("import", path)
    assert (done.code, "s, t" in done.stderr, "--session" in done.stderr) == (4, True, True)
    assert [profile(path, options=("--session", name))["events"]["busy_s"] for name in "st"] == [0.002, 0.008]
    assert invoke("import", path, "--session", "u").code == 4


def test_what_is_no_session_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert invoke("import", tmp_path / "empty").code == 3
    assert invoke("import", tmp_path / "gone").code == 3
    above = invoke("import", FLIGHT)  # the folder of the sessions, not of one
    assert above.code == 3
    assert re.search(r"try: receipt import \S+/fat\n", above.stderr), above.stderr
    assert invoke("import", write(tmp_path / "device.log", {"type": "step"}), "--format", "gpufl").code == 3
    assert invoke("import", FLIGHT / "trace", FLIGHT / "fat").code == 2
    assert invoke("import", FLIGHT / "trace" / "device.1.log.gz", FLIGHT / "trace" / "device.1.log.gz").code == 2
    assert invoke("import", ROOT / "fixtures" / "foreign" / "nanochat-report.md", "--session", "s").code == 2
    assert invoke("import", *sorted((ROOT / "fixtures" / "foreign").glob("megacpp-training*"))).code == 2
    for name in ("a.device.log", "b.device.log"):
        write(tmp_path / "two" / name, start())
    assert invoke("import", tmp_path / "two").code == 3


def test_tables_of_nsight_systems_say_what_ran(profile: Profile, tmp_path: Path) -> None:
    document = profile("nsys-stats.csv")
    events = document["events"]
    told = events["kernels"]
    assert (events["format"], told["name_count"], told["launch_count"], told["total_s"]) == ("nsys-stats", 3, 16, 0.01)
    assert [(k["name"][:10], k["count"], k["total_s"], k["min_s"], k["max_s"]) for k in told["top"]] == [
        ("ampere_bf1", 10, 0.007, 0.0006, 0.0008),
        ("void at::n", 5, 0.0025, 0.0005, 0.0005),
        ("flash_fwd_", 1, 0.0005, 0.0005, 0.0005),
    ]
    assert [(c["direction"], c["count"], c["total_s"], c["total_bytes"]) for c in events["copies"]] == [
        ("host_to_device", 4, 0.0008, None), ("fill", 2, 0.0002, None)
    ]  # fmt: skip
    assert (events["complete"], events["duration_s"], events["busy_s"]) == (False, None, None)
    assert document["derivation"]["records"] == {"read": 5, "ignored": 7, "unread": 0}
    kernels_, _, copies = (FLIGHT / "nsys-stats.csv").read_text().partition("\n\nProcessing")
    (tmp_path / "kernels.csv").write_text(kernels_)
    (tmp_path / "copies.csv").write_text(f"Processing{copies}")
    assert profile(tmp_path / "kernels.csv", tmp_path / "copies.csv")["events"] == events


@pytest.mark.parametrize(
    "row",
    [
        "1.0,100,1,100.0,1,1,5,0,k",  # the total is above the longest
        "1.0,1.5,1,1.5,1,1,2,0,k",
        "1.0,nan,1,1,1,1,2,0,k",
        "1.0,100,0,0,0,0,0,0,k",
        "1.0,100,1,100,100,100,99999999999999999,0,k",
        "1.0,100,1",
    ],
)
def test_a_row_of_a_table_that_cannot_be_is_not_read(profile: Profile, tmp_path: Path, row: str) -> None:
    header = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name"
    (tmp_path / "k.csv").write_text(f"{header}\n50.0,7,2,3.5,3.5,3,4,0.5,good\n{row}\n")
    document = profile(tmp_path / "k.csv")
    assert losses(document) == {"unreadable_row": 1}
    assert (document["events"]["kernels"]["launch_count"], document["events"]["kernels"]["total_s"]) == (2, 7e-09)


def test_two_tables_of_the_same_are_refused(invoke: Invoke, tmp_path: Path) -> None:
    shutil.copy(FLIGHT / "nsys-stats.csv", tmp_path / "rank1.csv")
    assert invoke("import", FLIGHT / "nsys-stats.csv", tmp_path / "rank1.csv").code == 3
    (tmp_path / "empty.csv").write_text("Total Time (ns),Instances,Min (ns),Max (ns),Name\n")
    assert invoke("import", tmp_path / "empty.csv").code == 3


LAUNCH = {
    "detail_count": 2, "grid": [4, 2, 1], "block": [256, 1, 1], "registers_per_thread": 32, "static_shared_bytes": 1024,
    "dynamic_shared_bytes": None, "occupancy_min_ratio": 0.5, "occupancy_max_ratio": 0.75,
}  # fmt: skip


def details(number: int, occupancy: float, **more: Any) -> dict[str, Any]:
    sizes = {"grid": "(4,2,1)", "block": "(256,1,1)", "static_shared": 1024, "occupancy": occupancy}
    return {"type": "kernel_detail", "session_id": "s", "corr_id": number, **sizes, **more}


def test_details_of_launches_are_those_of_their_kernel(profile: Profile, tmp_path: Path) -> None:
    columns = [*KERNELS, "corr_id", "dyn_shared", "num_regs", "has_details"]
    rows = [[n * MS, 1, 0, MS, 10 + n, 512 * n, 32, int(n < 2)] for n in range(3)]
    launches = batch("kernel_event_batch", columns, rows)
    records = (start(), NAMES, details(10, 0.5), launches, details(11, 0.75), details(12, 0.1), shutdown(9))
    document = profile(write(tmp_path / "run.log", *records))
    (kernel,) = document["events"]["kernels"]["top"]
    assert (kernel["count"], kernel["launch"]) == (3, LAUNCH)  # the launches ask for 0 and 512 bytes: no size is theirs
    assert "stall_reasons" not in document["events"]


def test_kernels_of_one_number_have_no_details(profile: Profile, tmp_path: Path) -> None:
    columns = [*KERNELS, "corr_id", "has_details"]
    graph = batch("kernel_event_batch", columns, [[n * MS, 1 + n, 0, MS, 10, 1] for n in range(2)])
    two = {**NAMES, "kernel_dict": {"1": "k", "2": "l"}}
    document = profile(write(tmp_path / "run.log", start(), two, graph, details(10, 0.5), {"type": "kernel_detail"}, shutdown(9)))
    assert [("launch" in kernel) for kernel in document["events"]["kernels"]["top"]] == [False, False]
    assert kinds(document) == ["unreadable_value"]
    assert document["events"]["busy_s"] == 0.002  # a detail that cannot be read hides no kernel


def test_what_the_recorder_could_not_read_is_null(profile: Profile, tmp_path: Path) -> None:
    columns = [*KERNELS, "corr_id", "num_regs", "has_details"]
    rows = batch("kernel_event_batch", columns, [[0, 1, 0, MS, 10, 0, 1]])
    unknown = {"type": "kernel_detail", "session_id": "s", "corr_id": 10, "grid": "(0,0,0)", "block": "?", "occupancy": 0.0}
    document = profile(write(tmp_path / "run.log", start(), NAMES, rows, unknown, shutdown(9)))
    (kernel,) = document["events"]["kernels"]["top"]
    assert {name for name, value in kernel["launch"].items() if value is not None} == {"detail_count"}


def test_details_of_the_older_generation_are_read(profile: Profile) -> None:
    kernels = profile("fat")["events"]["kernels"]["top"]
    launches = [kernel["launch"] for kernel in kernels if "launch" in kernel]
    assert launches and all(launch["block"] == [256, 1, 1] and launch["occupancy_max_ratio"] == 0.8 for launch in launches)


def test_samples_inside_kernels_name_why_warps_waited(profile: Profile, tmp_path: Path) -> None:
    columns = [
        "dt_ns",
        "corr_id",
        "device_id",
        "function_id",
        "pc_offset",
        "metric_id",
        "metric_value",
        "stall_reason",
        "sample_kind",
    ]
    issue = "smsp__pcsamp_warps_issue_stalled_"
    stalls = {"1": f"{issue}long_scoreboard", "3": f"{issue}selected", "4": f"{issue}wait_not_issued"}
    names = {"2": "smsp__sass_inst_executed", **stalls}
    rows = [
        [0, 1, 0, 1, 16, 1, 30, 7, 0],
        [0, 1, 0, 1, 32, 1, 30, 1, 0],  # the name decides: numbers differ from chip to chip
        [0, 1, 0, 1, 48, 0, 20, 4, 0],  # by its number alone
        [0, 1, 0, 1, 48, 9, 70, 5, 0],  # a reason whose name is missing
        [0, 1, 0, 1, 64, 2, 999, 0, 1],  # an instruction count
        [0, 1, 0, 1, 64, 2, 0, 9, 2],  # a line of the source
        [0, 1, 0, 1, 80, 3, 500, 8, 0],  # issued: no stall
        [0, 1, 0, 1, 80, 0, 500, 1, 0],  # issued, by its number alone
        [0, 1, 0, 1, 80, 4, 5, 12, 0],  # perhaps part of the others
    ]
    samples = batch("profile_sample_batch", columns, rows)
    named = batch("profile_sample_batch", [*columns, "reason_name"], [[0, 1, 0, 1, 16, 1, 20, 3, 0, "barrier"]])
    ends = (kernels((0, 4)), shutdown(9))
    document = profile(write(tmp_path / "run.log", start(), samples, named, {**NAMES, "metric_dict": names}, *ends))
    assert document["schema_version"] == "gpu_profile/1.2"
    assert document["events"]["stall_reasons"] == [
        {"reason": "long_scoreboard", "not_issued": False, "sample_count": 60, "ratio": 0.6},
        {"reason": "barrier", "not_issued": False, "sample_count": 20, "ratio": 0.2},
        {"reason": "memory_dependency", "not_issued": False, "sample_count": 20, "ratio": 0.2},
        {"reason": "wait", "not_issued": True, "sample_count": 5, "ratio": 1.0},
    ]
    assert "name_unknown" in kinds(document)
    assert not document["events"]["lossy"]


def test_samples_of_the_older_generation_are_read(profile: Profile, tmp_path: Path) -> None:
    sample = {"type": "profile_sample", "session_id": "s", "sample_kind": "pc_sampling", "stall_reason": 4, "reason_name": "Wait"}
    others = [{**sample, "sample_count": 9, "stall_reason": 1}, {**sample, "sample_count": 9, "sample_kind": "sass_metric"}]
    records = [{**sample, "sample_count": 3}, {**sample, "sample_count": 1, "reason_name": ""}, *others]
    document = profile(write(tmp_path / "run.log", start(), NAMES, *records, kernels((0, 4)), shutdown(9)))
    assert document["events"]["stall_reasons"] == [
        {"reason": "Wait", "not_issued": False, "sample_count": 3, "ratio": 0.75},
        {"reason": "memory_dependency", "not_issued": False, "sample_count": 1, "ratio": 0.25},
    ]


def test_samples_that_cannot_be_read_are_lost_rows(profile: Profile, tmp_path: Path) -> None:
    broken = batch("profile_sample_batch", ["dt_ns", "metric_value", "stall_reason"], [[0, "x", 5], [0, 4, 5]])
    document = profile(write(tmp_path / "run.log", start(), NAMES, broken, kernels((0, 4)), shutdown(9)))
    assert losses(document) == {"unreadable_row": 1}
    assert document["events"]["stall_reasons"] == [{"reason": "texture", "not_issued": False, "sample_count": 4, "ratio": 1.0}]


def test_more_reasons_than_there_are_give_none(profile: Profile, tmp_path: Path) -> None:
    samples = batch("profile_sample_batch", ["metric_value", "stall_reason"], [[1, number] for number in range(2, 400)])
    document = profile(write(tmp_path / "run.log", start(), NAMES, samples, kernels((0, 4)), shutdown(9)))
    assert "stall_reasons" not in document["events"]
    assert kinds(document) == ["too_many_names"]
