"""Kernels, copies, scopes and samples of a session: pairs, unions, directions and doubtful values."""

from typing import Any

import pytest

from receipt_cli.gpu_profile.activity import Copies, CopyTotals, Kernels, Scopes
from receipt_cli.gpu_profile.devices import Inventory, Samples
from receipt_cli.gpu_profile.stream import Rows


def rows(base: int = 0, **columns: tuple[Any, ...]) -> Rows:
    return Rows(base, columns, len(next(iter(columns.values()))), 0, ())


def test_kernels_are_summed_by_id_and_their_times_joined_by_device() -> None:
    kernels = Kernels()
    batch = rows(100, dt_ns=(0, 5, -200), duration_ns=(10, 10, 1), kernel_id=(7, 7, 8), device_id=(0, 0, 0))
    assert kernels.add_batch(batch) == 1  # the last began before 0
    assert (kernels.by_name.of[7].count, kernels.by_name.of[7].total, kernels.all.longest) == (2, 20, 10)
    assert {device: spans.total() for device, spans in kernels.spans.items()} == {0: 15}


def test_starts_and_ends_of_kernels_are_paired_by_process_and_number() -> None:
    kernels = Kernels()
    assert kernels.begin({"name": "k", "ts_ns": 10, "corr_id": 1, "pid": 2}, device=3)
    assert kernels.end({"ts_ns": 25, "corr_id": 1, "pid": 9})  # of another process: no start
    assert kernels.end({"ts_ns": 25, "corr_id": 1, "pid": 2})
    assert not kernels.end({"ts_ns": 25})
    assert (kernels.by_name.of["k"].total, kernels.unstarted, kernels.unended) == (15, 1, 0)


def test_copies_are_told_by_what_the_vendor_means() -> None:
    copies = Copies()
    assert copies.add_batch(rows(dt_ns=(0, 0, 0), duration_ns=(1, 2, 4), bytes=(10, 20, -1), copy_kind=(1, 1, 2))) == 1
    assert copies.add_event({"start_ns": 5, "end_ns": 9, "copy_kind": "HtoD"}, fill=False)
    assert copies.add_event({"start_ns": 5, "end_ns": 6, "bytes": 8}, fill=True)
    assert not copies.add_event({"start_ns": 5, "end_ns": 4}, fill=False)
    assert copies.merged({1: "host_to_device"}) == {"host_to_device": CopyTotals(3, 7, None), "fill": CopyTotals(1, 1, 8)}


def test_scopes_are_paired_whichever_half_comes_first() -> None:
    scopes = Scopes()
    batch = rows(
        dt_ns=(5, 0, 0, 9), scope_instance_id=(1, 1, 2, 3), name_id=(4, 4, 4, 4), event_type=(1, 0, 0, 1),
    )  # fmt: skip
    assert scopes.add_batch(batch) == 0
    assert (scopes.by_name.of[4].count, scopes.by_name.of[4].total) == (1, 5)
    assert (scopes.unbegun, scopes.open()) == (1, {4: 1})


def test_nested_scopes_are_paired_from_the_inside() -> None:
    scopes = Scopes()
    for begins, time in ((True, 0), (True, 10), (False, 15), (False, 40)):
        assert scopes.add_event({"name": "step", "ts_ns": time}, begins=begins)
    assert not scopes.add_event({"name": "step", "ts_ns": 50}, begins=False)
    assert (scopes.by_name.of["step"].shortest, scopes.by_name.of["step"].longest) == (5, 40)


def test_samples_are_in_base_units_first_and_last_by_their_time() -> None:
    samples = Samples()
    batch = rows(dt_ns=(20, 10, 30), device_id=(0, 0, 0), power_mw=(2000, 1000, None), total_mib=(81920, 81920, 81920))
    assert samples.add_devices(batch) == 0
    power = samples.devices[0].metrics()["power_w"]
    assert (power["first"], power["last"], power["record_count"], samples.memory) == (1, 2, 2, {0: {81920}})


@pytest.mark.parametrize(("values", "known"), [((0, 0), False), ((50, 101), False), ((50, 100), True)])
def test_zeros_alone_and_impossible_values_give_no_figure(values: tuple[int, ...], known: bool) -> None:
    samples = Samples()
    samples.add_devices(rows(dt_ns=(1, 2), device_id=(0, 0), gpu_util=values))
    assert ("utilization_ratio" in samples.devices[0].metrics()) is known


def test_devices_without_numbers_are_counted_by_their_place() -> None:
    inventory = Inventory()
    listed = [{"name": "H100", "uuid": "a", "vendor": "NVIDIA"}, {"name": "H200", "uuid": "b"}]
    inventory.add({"cuda_static_devices": listed}, "device.log", Samples())
    assert ([inventory.name(n) for n in (0, 1, 2)], inventory.number_of("b")) == (["H100", "H200", None], 1)
    assert (inventory.vendors, inventory.place) == ({"NVIDIA"}, ("device.log", "/cuda_static_devices"))
    inventory.add({"cuda_static_devices": [{"name": "L4"}]}, "device.log", Samples())
    assert inventory.name(0) is None  # two names
