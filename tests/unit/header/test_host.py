import importlib.metadata
import os
import platform
import sys
from pathlib import Path

import psutil
import pytest

from receipt_cli.header.document import merge
from receipt_cli.header.host import cuda_of, host_facts, installed_version, own_interpreter


def fake_distribution(folder: Path, name: str, metadata: str) -> None:
    info = folder / f"{name.replace('-', '_')}-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(metadata, "utf-8")


@pytest.mark.parametrize(
    ("torch", "cuda"),
    [
        ("2.9.0+cu130", "13.0"),
        ("2.5.1+cu124", "12.4"),
        ("1.4.0+cu92", "9.2"),
        ("2.10.0.dev20251201+cu126", "12.6"),
        ("2.1.0+cu121.with.pypi.cudnn", "12.1"),
        ("2.9.0+cpu", None),
        ("2.9.0+rocm6.4", None),
        ("2.9.0+xpu", None),
        ("2.9.0", None),
        ("2.6.0a0+ecf3bae40a.nv25.01", None),
        ("2.0.0+custom1", None),
        ("2.0.0+cu1", None),
        ("2.0.0+cu12345", None),
        ("", None),
        (None, None),
    ],
)
def test_cuda_is_what_the_local_version_tag_says(torch: str | None, cuda: str | None) -> None:
    assert cuda_of(torch) == cuda


def test_the_machine_is_described(tmp_path: Path) -> None:
    facts, notes = host_facts(tmp_path)
    assert notes == []
    header = merge(facts)
    assert header["software"]["python"] is None, "whose it is only collect_header knows"
    assert header["software"]["platform"] == platform.platform()
    assert header["hardware"]["cpu_count"] == psutil.cpu_count(logical=True)
    assert header["hardware"]["ram_bytes"] == psutil.virtual_memory().total
    assert header["cwd"] == str(tmp_path)
    assert header["collected_at"] is None
    assert header["git"]["commit"] is None
    assert set(header["sources"].values()) == {"host"}


def test_versions_come_from_metadata_and_import_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, version in (("torch", "2.9.0+cu130"), ("flash-attn", "2.8.3"), ("numpy", "2.1.0")):
        fake_distribution(tmp_path, name, f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    packages = {"flash-attn": "2.8.3", "numpy": "2.1.0"}
    assert own_interpreter() == (platform.python_version(), "2.9.0+cu130", "13.0", packages)
    assert not {"torch", "flash_attn"} & set(sys.modules)


def test_a_broken_distribution_has_no_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_distribution(tmp_path, "jax", "Metadata-Version: 2.1\nName: jax\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert installed_version("jax") is None
    assert installed_version("flax") is None

    def broken(_: str) -> str:
        raise KeyError("Version")

    monkeypatch.setattr(importlib.metadata, "version", broken)
    assert installed_version("numpy") is None


def test_what_the_system_does_not_tell_is_a_note(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse() -> None:
        raise psutil.AccessDenied

    monkeypatch.setattr(psutil, "cpu_count", lambda logical: None)
    monkeypatch.setattr(psutil, "virtual_memory", refuse)
    facts, notes = host_facts(tmp_path)
    assert not {fact.pointer for fact in facts} & {"/hardware/cpu_count", "/hardware/ram_bytes"}
    assert notes == ["host: processors or memory unknown (AccessDenied)"]


def test_a_folder_whose_name_is_no_utf8_is_left_out() -> None:
    facts, notes = host_facts(Path(os.fsdecode(b"/job/\xff")))
    assert "/cwd" not in {fact.pointer for fact in facts}
    assert len(notes) == 1
    assert notes[0].startswith("host: /cwd left out")
