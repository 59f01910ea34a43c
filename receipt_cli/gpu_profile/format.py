"""The wire format of GPU Flight (gpufl): records, their versions, and the meaning of columns.

Source: gpufl-client (``include/gpufl/core/model/*``, ``tests/core/test_wire_contract.cpp``). Columns were added, one of them in
the middle, without a new version, so a column is identified only by its declared name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

GPUFL_FORMAT = "gpufl"
"""The format's name in documents and options."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A columnar record: its known versions, required columns, and other columns."""

    versions: frozenset[int]
    needed: tuple[str, ...]
    others: frozenset[str]

    def knows(self, column: str) -> bool:
        """Return whether any known version has this column."""
        return column in self.needed or column in self.others


def _batch(versions: range, needed: str, others: str) -> Batch:
    return Batch(frozenset(versions), tuple(needed.split()), frozenset(others.split()))


KERNELS, COPIES, SCOPES = "kernel_event_batch", "memcpy_event_batch", "scope_event_batch"
SAMPLES = "profile_sample_batch"
DEVICES, HOSTS = "device_metric_batch", "host_metric_batch"
BATCHES: Mapping[str, Batch] = {
    KERNELS: _batch(
        range(1, 2),
        "dt_ns kernel_id duration_ns",
        "stream_id device_id corr_id dyn_shared num_regs has_details external_kind external_id",
    ),
    COPIES: _batch(range(1, 2), "dt_ns duration_ns", "bytes copy_kind stream_id device_id corr_id"),
    SCOPES: _batch(range(1, 4), "dt_ns scope_instance_id name_id event_type", "depth repeat warmup original_start_ns"),
    DEVICES: _batch(
        range(1, 2),
        "dt_ns device_id",
        "gpu_util mem_util temp_c power_mw used_mib total_mib clock_sm fan_speed_pct temp_mem_c temp_junction_c voltage_mv "
        "energy_uj clock_mem pcie_bw_bps ecc_corrected ecc_uncorrected",
    ),
    SAMPLES: _batch(
        range(1, 2),
        "metric_value stall_reason",
        "dt_ns corr_id device_id function_id pc_offset metric_id sample_kind scope_name_id source_file_id source_line "
        "reason_name",
    ),
    HOSTS: _batch(range(1, 2), "dt_ns", "cpu_pct_x100 ram_used_mib ram_total_mib"),
}
"""Batches whose rows contribute to figures."""
DETAIL, SAMPLE = "kernel_detail", "profile_sample"
"""Details of one launch, and one sample inside a kernel."""
STARTS, ENDS = frozenset({"job_start", "init"}), "shutdown"
NAMES = "dictionary_update"
SINGLE = frozenset(
    {
        "kernel_event", "kernel_start", "kernel_end", "memcpy_event", "memset_event", "scope_begin", "scope_end",
        "system_start", "system_sample", "system_stop", "system_end",
    }
)  # fmt: skip
"""Records of one event each: all of older generations, and fills of the newest."""
IGNORED = frozenset(
    {
        "pm_sample_batch", "synchronization_event",
        "synchronization_event_batch", "memory_alloc_event", "memory_alloc_event_batch", "sass_config",
        "pm_sampling_config", "execution_signature", "capture_capabilities", "perf_metric_event",
        "kernel_perf_metric_event", "nvtx_marker_event", "graph_launch_event", "graph_node_definition",
        "deep_window_event", "deep_window_rule_summary", "rule_state_checkpoint", "counter_data_quality_summary",
        "cubin_disassembly", "source_file_content", "segment_start", "segment_end", "run_end", "cuda_error",
    }
)  # fmt: skip
"""Known records without figures: counters, listings, configuration."""
TYPES = frozenset({*BATCHES, *STARTS, ENDS, NAMES, DETAIL, SAMPLE, *SINGLE, *IGNORED})
"""All known records."""

CUPTI_COPIES = {
    0: "unknown", 1: "host_to_device", 2: "device_to_host", 3: "host_to_device", 4: "device_to_host",
    5: "device_to_device", 6: "device_to_device", 7: "device_to_device", 8: "device_to_device", 9: "host_to_host",
    10: "peer_to_peer",
}  # fmt: skip
"""``CUpti_ActivityMemcpyKind``, with arrays as device memory."""
ROCM_COPIES = {0: "unknown", 1: "host_to_device", 2: "device_to_host", 3: "device_to_device", 4: "host_to_host"}
"""Kinds of gpufl's ROCprofiler backend."""
NAMED_COPIES = {
    "HtoD": "host_to_device", "DtoH": "device_to_host", "HtoA": "host_to_device", "AtoH": "device_to_host",
    "AtoA": "device_to_device", "AtoD": "device_to_device", "DtoA": "device_to_device", "DtoD": "device_to_device",
    "HtoH": "host_to_host", "PtoP": "peer_to_peer",
}  # fmt: skip
"""Kinds of the older generation."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """A sampled column: its metric, base units = value * ``times`` / ``over``, and the largest possible value."""

    metric: str
    times: int = 1
    over: int = 1
    most: float = 2.0**63


_MIB, _MHZ = 1 << 20, 10**6
_SHARE, _HOT, _POWER, _CLOCK, _MEMORY = 1.0, 200.0, 5000.0, 20e9, 2.0**50
DEVICE_COLUMNS: Mapping[str, Sampled] = {
    "gpu_util": Sampled("utilization_ratio", over=100, most=_SHARE),
    "mem_util": Sampled("memory_utilization_ratio", over=100, most=_SHARE),
    "used_mib": Sampled("memory_used_bytes", _MIB, most=_MEMORY),
    "temp_c": Sampled("temperature_celsius", most=_HOT),
    "temp_mem_c": Sampled("memory_temperature_celsius", most=_HOT),
    "temp_junction_c": Sampled("junction_temperature_celsius", most=_HOT),
    "power_mw": Sampled("power_w", over=1000, most=_POWER),
    "energy_uj": Sampled("energy_j", over=10**6),
    "clock_sm": Sampled("sm_clock_hz", _MHZ, most=_CLOCK),
    "clock_mem": Sampled("memory_clock_hz", _MHZ, most=_CLOCK),
    "clock_gfx": Sampled("graphics_clock_hz", _MHZ, most=_CLOCK),
    "fan_speed_pct": Sampled("fan_speed_ratio", over=100, most=_SHARE),
    "voltage_mv": Sampled("voltage_v", over=1000, most=100.0),
    "ecc_corrected": Sampled("ecc_corrected_count"),
    "ecc_uncorrected": Sampled("ecc_uncorrected_count"),
}
"""Device columns by their name in batches. Energy and error counts are cumulative and stay so. The bus rate is left out,
because not all backends write it in the same unit."""
DEVICE_ALIASES: Mapping[str, str] = {
    "util_gpu": "gpu_util", "util_gpu_pct": "gpu_util", "util_mem": "mem_util", "util_mem_pct": "mem_util",
    "clk_sm": "clock_sm", "clk_mem": "clock_mem", "clk_gfx": "clock_gfx",
}  # fmt: skip
"""Names of the same columns in older generations."""
HOST_COLUMNS: Mapping[str, Sampled] = {
    "cpu_pct_x100": Sampled("cpu_ratio", over=10**4, most=_SHARE),
    "cpu_pct": Sampled("cpu_ratio", over=100, most=_SHARE),
    "ram_used_mib": Sampled("ram_used_bytes", _MIB, most=_MEMORY),
    "ram_total_mib": Sampled("ram_total_bytes", _MIB, most=_MEMORY),
}
"""Columns of a host."""
