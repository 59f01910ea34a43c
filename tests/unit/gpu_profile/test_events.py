"""Kernels, copies, scopes and samples of a session: pairs, unions, directions and doubtful values."""

from receipt_cli.gpu_profile.activity import Scopes
from receipt_cli.gpu_profile.devices import Inventory, Samples


def test_nested_scopes_are_paired_from_the_inside() -> None:
    scopes = Scopes()
    for begins, time in ((True, 0), (True, 10), (False, 15), (False, 40)):
        assert scopes.add_event({"name": "step", "ts_ns": time}, begins=begins)
    assert not scopes.add_event({"name": "step", "ts_ns": 50}, begins=False)
    assert (scopes.by_name.of["step"].shortest, scopes.by_name.of["step"].longest) == (5, 40)


def test_devices_without_numbers_are_counted_by_their_place() -> None:
    inventory = Inventory()
    listed = [{"name": "H100", "uuid": "a", "vendor": "NVIDIA"}, {"name": "H200", "uuid": "b"}]
    inventory.add({"cuda_static_devices": listed}, "device.log", Samples())
    assert ([inventory.name(n) for n in (0, 1, 2)], inventory.number_of("b")) == (["H100", "H200", None], 1)
    assert (inventory.vendors, inventory.place) == ({"NVIDIA"}, ("device.log", "/cuda_static_devices"))
    inventory.add({"cuda_static_devices": [{"name": "L4"}]}, "device.log", Samples())
    assert inventory.name(0) is None  # two names
