"""The wire contract of GPU Flight, as its public sources have it: a column that we rely on keeps its name and its meaning."""

import io
import json
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO

import pytest

from receipt_cli.gpu_profile.document import build_document
from receipt_cli.gpu_profile.files import list_streams
from receipt_cli.gpu_profile.format import (
    BATCHES,
    CUPTI_COPIES,
    DEVICE_ALIASES,
    DEVICE_COLUMNS,
    HOST_COLUMNS,
    IGNORED,
    ROCM_COPIES,
    SINGLE,
    TYPES,
)
from receipt_cli.gpu_profile.session import read_session
from receipt_cli.gpu_profile.stream import StreamProblems

T0 = 1_700_000_000 * 10**9
_DEVICE = "dt_ns,device_id,gpu_util,mem_util,temp_c,power_mw,used_mib"
_EXTENDED = "fan_speed_pct,temp_mem_c,temp_junction_c,voltage_mv,energy_uj,clock_mem,pcie_bw_bps,ecc_corrected,ecc_uncorrected"
_SAMPLE = "dt_ns,corr_id,device_id,function_id,pc_offset,metric_id,metric_value,stall_reason,sample_kind,scope_name_id"
HEADERS = [
    ("kernel_event_batch", 1, "dt_ns,kernel_id,stream_id,duration_ns,corr_id,dyn_shared,num_regs,has_details"),
    (
        "kernel_event_batch",
        1,
        "dt_ns,kernel_id,stream_id,duration_ns,corr_id,dyn_shared,num_regs,has_details,external_kind,external_id",
    ),
    ("memcpy_event_batch", 1, "dt_ns,stream_id,duration_ns,bytes,copy_kind,corr_id"),
    ("device_metric_batch", 1, _DEVICE),
    ("device_metric_batch", 1, f"{_DEVICE},clock_sm"),
    ("device_metric_batch", 1, f"{_DEVICE},clock_sm,{_EXTENDED}"),
    ("device_metric_batch", 1, f"{_DEVICE},total_mib,clock_sm"),
    ("device_metric_batch", 1, f"{_DEVICE},total_mib,clock_sm,{_EXTENDED}"),
    ("scope_event_batch", 1, "dt_ns,scope_instance_id,name_id,event_type,depth"),
    ("scope_event_batch", 2, "dt_ns,scope_instance_id,name_id,event_type,depth,repeat,warmup"),
    ("scope_event_batch", 3, "dt_ns,scope_instance_id,name_id,event_type,depth,repeat,warmup,original_start_ns"),
    ("host_metric_batch", 1, "dt_ns,cpu_pct_x100,ram_used_mib,ram_total_mib"),
    ("profile_sample_batch", 1, _SAMPLE),
    ("profile_sample_batch", 1, f"{_SAMPLE},source_file_id,source_line"),
]
"""Every header that a version of the client has written, in its order."""
VALUES: dict[str, int] = {
    "dt_ns": 0, "kernel_id": 7, "stream_id": 2, "duration_ns": 1500, "corr_id": 99, "dyn_shared": 1024, "num_regs": 64,
    "has_details": 1, "external_kind": 3, "external_id": 808, "bytes": 4096, "copy_kind": 1, "device_id": 0, "gpu_util": 77,
    "mem_util": 33, "temp_c": 70, "power_mw": 150000, "used_mib": 2048, "total_mib": 24576, "clock_sm": 1987,
    "fan_speed_pct": 42, "temp_mem_c": 60, "temp_junction_c": 71, "voltage_mv": 850, "energy_uj": 123456, "clock_mem": 1200,
    "pcie_bw_bps": 5, "ecc_corrected": 3, "ecc_uncorrected": 4, "scope_instance_id": 1, "name_id": 1, "event_type": 0,
    "depth": 0, "repeat": 10, "warmup": 3, "original_start_ns": T0, "cpu_pct_x100": 2500, "ram_used_mib": 4096,
    "ram_total_mib": 16384, "function_id": 3, "pc_offset": 420, "metric_id": 0, "metric_value": 30, "stall_reason": 4,
    "sample_kind": 0, "scope_name_id": 2, "source_file_id": 1, "source_line": 12,
}  # fmt: skip
"""One row's values by column: where two columns were mixed up, a figure would be another."""
SAMPLED = {
    "gpu_util": ("utilization_ratio", 0.77), "mem_util": ("memory_utilization_ratio", 0.33),
    "temp_c": ("temperature_celsius", 70), "power_mw": ("power_w", 150), "used_mib": ("memory_used_bytes", 2048 << 20),
    "clock_sm": ("sm_clock_hz", 1_987_000_000), "fan_speed_pct": ("fan_speed_ratio", 0.42),
    "temp_mem_c": ("memory_temperature_celsius", 60), "temp_junction_c": ("junction_temperature_celsius", 71),
    "voltage_mv": ("voltage_v", 0.85), "energy_uj": ("energy_j", 0.123456), "clock_mem": ("memory_clock_hz", 1_200_000_000),
    "ecc_corrected": ("ecc_corrected_count", 3), "ecc_uncorrected": ("ecc_uncorrected_count", 4),
}  # fmt: skip


def told(*records: dict[str, Any]) -> dict[str, Any]:
    """Return the document of a session of these records."""
    start = {"type": "job_start", "ts_ns": T0, "gpu_static_devices": [{"id": 0, "name": "x", "vendor": "NVIDIA"}]}
    text = "".join(f"{json.dumps(record)}\n" for record in (start, *records, {"type": "shutdown", "ts_ns": T0 + 10**6}))
    opener: Callable[[], BinaryIO] = partial(io.BytesIO, text.encode())
    return build_document(read_session(list_streams([("device.log", opener)]), StreamProblems()))


@pytest.mark.parametrize(("kind", "version", "header"), HEADERS)
def test_every_header_that_was_ever_written_is_read(kind: str, version: int, header: str) -> None:
    columns = header.split(",")
    record = {"version": version, "type": kind, "base_time_ns": T0, "columns": columns, "rows": [[VALUES[c] for c in columns]]}
    document = told(record)
    events = document["events"]
    assert [p["kind"] for p in document["derivation"]["problems"]["first"] if p["kind"] != "name_unknown"] == []
    if kind == "kernel_event_batch":
        (kernel,) = events["kernels"]["top"]
        assert (kernel["name"], kernel["total_s"]) == ("#7", 1.5e-06)
    elif kind == "memcpy_event_batch":
        assert [(c["direction"], c["total_s"], c["total_bytes"]) for c in events["copies"]] == [("host_to_device", 1.5e-06, 4096)]
    elif kind == "scope_event_batch":
        assert [(s["name"], s["open_count"]) for s in events["scopes"]] == [("#1", 1)]
    elif kind == "profile_sample_batch":
        assert events["stall_reasons"] == [{"reason": "memory_dependency", "not_issued": False, "sample_count": 30, "ratio": 1.0}]
    elif kind == "host_metric_batch":
        assert {name: f["last"] for name, f in events["hosts"][0]["metrics"].items()} == {
            "cpu_ratio": 0.25, "ram_used_bytes": 4096 << 20, "ram_total_bytes": 16384 << 20
        }  # fmt: skip
    else:
        (device,) = events["devices"]
        wanted = dict(SAMPLED[column] for column in columns if column in SAMPLED)
        assert {name: f["last"] for name, f in device["metrics"].items()} == wanted
        assert device["memory_bytes"] == (24576 << 20 if "total_mib" in columns else None)


def test_the_columns_that_are_known_are_those_of_the_headers() -> None:
    written: dict[str, set[str]] = {kind: set() for kind in BATCHES}
    versions: dict[str, set[int]] = {kind: set() for kind in BATCHES}
    for kind, version, header in HEADERS:
        written[kind] |= set(header.split(","))
        versions[kind].add(version)
    later = {"kernel_event_batch": {"device_id"}, "memcpy_event_batch": {"device_id"}, "profile_sample_batch": {"reason_name"}}
    for kind, batch in BATCHES.items():
        assert {*batch.needed, *batch.others} == written[kind] | later.get(kind, set())
        assert batch.versions == versions[kind]


def test_what_we_rely_on_by_name() -> None:
    """A change here changes what documents say: it needs a new version of the rules."""
    assert {kind: batch.needed for kind, batch in BATCHES.items()} == {
        "kernel_event_batch": ("dt_ns", "kernel_id", "duration_ns"),
        "memcpy_event_batch": ("dt_ns", "duration_ns"),
        "scope_event_batch": ("dt_ns", "scope_instance_id", "name_id", "event_type"),
        "device_metric_batch": ("dt_ns", "device_id"),
        "profile_sample_batch": ("metric_value", "stall_reason"),
        "host_metric_batch": ("dt_ns",),
    }
    assert {c for c in DEVICE_COLUMNS if c not in SAMPLED} == {"clock_gfx"}
    assert set(HOST_COLUMNS) == {"cpu_pct_x100", "cpu_pct", "ram_used_mib", "ram_total_mib"}
    assert set(DEVICE_ALIASES.values()) <= DEVICE_COLUMNS.keys()
    assert not (SINGLE & IGNORED or SINGLE & BATCHES.keys() or IGNORED & BATCHES.keys())
    assert {"job_start", "init", "shutdown", "dictionary_update"} <= TYPES
    assert CUPTI_COPIES[8] == "device_to_device"
    assert {kind for kind in ROCM_COPIES if ROCM_COPIES[kind] == CUPTI_COPIES[kind]} == {0, 1, 2}
