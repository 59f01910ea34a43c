"""Where a log's bytes come from: files, pipes, compressed streams whole and broken, and files that change."""

import bz2
import gzip
import hashlib
import io
import lzma
import os
import random
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
import zstandard

from receipt_cli.errors import InputError
from receipt_cli.io.compression import BLOCK, HEAD, compression_of, decompress
from receipt_cli.io.source import Source

TEXT = b"".join(b"iter %d: loss %d.%04d, time 131.97ms\n" % (n, n % 7, n * 7919 % 10007) for n in range(20_000))


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "zstd": zstd,
    "xz": lzma.compress,
    "bzip2": bz2.compress,
}
KINDS = sorted(COMPRESS)


@cache
def packed(kind: str) -> bytes:
    """Return ``TEXT``, compressed."""
    return COMPRESS[kind](TEXT)


def stored(kind: str | None) -> bytes:
    """Return ``TEXT`` as a file of a kind has it."""
    return TEXT if kind is None else packed(kind)


def unpack(kind: str, data: bytes) -> tuple[bytes, str | None]:
    stream = decompress(kind, io.BytesIO(data).read)
    pieces: list[bytes] = []
    while True:
        try:
            pieces.append(next(stream))
        except StopIteration as stop:
            return b"".join(pieces), stop.value


def read(path: Path | str) -> tuple[bytes, Source]:
    source = Source(str(path))
    return b"".join(source.blocks()), source


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


class TestDecompress:
    @pytest.mark.parametrize("kind", KINDS)
    def test_whole_streams_and_what_follows_them(self, kind: str) -> None:
        assert unpack(kind, packed(kind)) == (TEXT, None)
        assert unpack(kind, COMPRESS[kind](b"")) == (b"", None)
        data = packed(kind) + b"\0" * 40 + COMPRESS[kind](b"more\n") + b"\0" * 70_000
        assert unpack(kind, data) == (TEXT + b"more\n", None)
        text, wrong = unpack(kind, packed(kind) + b"plain words\n")
        assert text == TEXT
        assert wrong == f"the {kind} stream is followed by something else, which was not read, after {len(TEXT)} bytes of text"

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("part", [0.3, 0.5, 0.99])
    def test_a_stream_that_ends_early_gives_what_stands_before(self, kind: str, part: float) -> None:
        text, wrong = unpack(kind, packed(kind)[: int(len(packed(kind)) * part)])
        assert TEXT.startswith(text)
        assert wrong == f"the {kind} stream ends early after {len(text)} bytes of text"
        if kind not in ("bzip2", "zstd"):  # those give whole blocks only
            assert len(text) > len(TEXT) * part / 2

    @pytest.mark.parametrize("kind", KINDS)
    def test_every_beginning_of_a_stream(self, kind: str) -> None:
        small = COMPRESS[kind](b"iter 1: loss 2.0\n")
        for size in range(1, len(small)):
            text, wrong = unpack(kind, small[:size])
            assert b"iter 1: loss 2.0\n".startswith(text)
            assert wrong is not None
            assert "ends early" in wrong

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_flipped_bit_anywhere_is_told_and_never_raises(self, kind: str) -> None:
        chance = random.Random(7)
        small = COMPRESS[kind](TEXT[:20_000])
        for _ in range(60):
            at = chance.randrange(len(small))
            damaged = bytearray(small)
            damaged[at] ^= 1 << chance.randrange(8)
            text, wrong = unpack(kind, bytes(damaged))
            assert wrong is not None or text == TEXT[:20_000], (at, len(text))

    def test_all_that_stands_before_a_damage_is_given(self) -> None:
        stored = gzip.compress(TEXT, compresslevel=0, mtime=0)  # stored blocks: text and stream go side by side
        at = stored.index(b"iter 10000:")
        blocks_end = (at // 65_535 + 1) * 65_535
        text, wrong = unpack("gzip", stored[:blocks_end] + b"\xff" * 100)
        assert wrong is not None
        assert len(text) > at - 65_535 - 100

    def test_the_size_of_the_reads_does_not_matter_to_what_is_salvaged(self) -> None:
        """What a damaged stream gives is part of the derivation: it may depend on nothing but the bytes."""
        damaged = bytearray(packed("gzip"))
        damaged[len(damaged) // 2] ^= 0xFF
        wanted = unpack("gzip", bytes(damaged))

        def by_the_byte(size: int) -> bytes:
            nonlocal at
            at += 1
            return bytes(damaged[at - 1 : at])

        at = 0
        stream, pieces = decompress("gzip", by_the_byte), []
        try:
            while True:
                pieces.append(next(stream))
        except StopIteration as stop:
            assert (b"".join(pieces), stop.value) == wanted

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_bomb_comes_in_pieces(self, kind: str) -> None:
        bomb = COMPRESS[kind](bytes(40_000_000))
        stream = decompress(kind, io.BytesIO(bomb).read)
        sizes = [len(piece) for piece in stream]
        assert sum(sizes) == 40_000_000
        assert max(sizes) < 2 * BLOCK

    def test_an_error_of_the_file_below_is_not_taken_for_damage(self) -> None:
        def broken(size: int) -> bytes:
            raise OSError(5, "Input/output error")

        with pytest.raises(OSError, match="Input/output"):
            next(decompress("bzip2", broken))

    @pytest.mark.parametrize(
        ("head", "want"),
        [
            (b"", None),
            (b"iter 1: lo", None),
            (b"\x1f\x8b", "gzip"),
            (b"\x28\xb5\x2f\xfd", "zstd"),
            (b"\x50\x2a\x4d\x18\x04\0\0\0", "zstd"),
            (b"\x5f\x2a\x4d\x18", "zstd"),
            (b"\x60\x2a\x4d\x18", None),
            (b"\xfd7zXZ\0", "xz"),
            (b"BZh9", "bzip2"),
            (b"BZh91AY&SY", "bzip2"),
            (b"BZh9\x17rE8P\x90", "bzip2"),
            (b"BZh9 is not a stream"[:HEAD], None),
            (b"BZhello", None),
            (b"BZh", None),
        ],
    )
    def test_what_the_first_bytes_announce(self, head: bytes, want: str | None) -> None:
        assert compression_of(head) == want

    @pytest.mark.parametrize("size", [0, 5, 300_000])
    def test_skippable_frames_around_a_zstd_stream(self, size: int) -> None:
        skippable = b"\x50\x2a\x4d\x18" + size.to_bytes(4, "little") + b"h" * size
        assert unpack("zstd", skippable + packed("zstd") + skippable * 2 + packed("zstd")) == (TEXT * 2, None)

    @pytest.mark.parametrize("level", [-5, 3, 9])
    @pytest.mark.parametrize("told", [True, False])
    @pytest.mark.parametrize("checked", [True, False])
    def test_zstd_frames_of_every_make(self, level: int, told: bool, checked: bool) -> None:
        noise = random.Random(3).randbytes(300_000)  # stored as it is
        for text in (b"", b"x", bytes(300_000), noise, TEXT + noise + bytes(200_000)):
            pack = zstandard.ZstdCompressor(level=level, write_checksum=checked, write_content_size=told).compressobj(
                size=len(text) if told else -1
            )
            frame = pack.compress(text) + pack.flush()
            assert unpack("zstd", frame * 3) == (text * 3, None)

    def test_all_whole_blocks_before_a_damaged_zstd_block_are_given(self) -> None:
        noise = random.Random(3).randbytes(1_000_000)
        frame = bytearray(zstandard.ZstdCompressor().compress(noise))
        at = len(frame) - 100_000
        frame[at - at % 131_075 + 10] |= 6  # near the head of its block: no longer stored as it is, but of no known kind
        text, wrong = unpack("zstd", bytes(frame))
        assert noise.startswith(text)
        assert wrong is None or len(text) >= 131_072 * 6

    @pytest.mark.parametrize("kind", KINDS)
    def test_members_that_come_by_the_byte(self, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("receipt_cli.io.compression.CHUNK", 1)
        assert unpack(kind, COMPRESS[kind](TEXT[:50_000]) * 2) == (TEXT[:50_000] * 2, None)


class TestPaths:
    @pytest.mark.parametrize("kind", [None, *KINDS])
    def test_a_file_has_the_digest_of_its_text(self, tmp_path: Path, kind: str | None) -> None:
        text, source = read(write(tmp_path / "run.log", stored(kind)))
        assert (text, source.size_bytes, source.sha256) == (TEXT, len(TEXT), hashlib.sha256(TEXT).hexdigest())
        assert (source.compression, source.plain_size) == (kind, len(TEXT) if kind is None else None)
        assert (source.changed, source.problems) == (False, [])

    @pytest.mark.parametrize("kind", [None, *KINDS])
    def test_a_pipe(self, tmp_path: Path, kind: str | None) -> None:
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        writer = threading.Thread(target=write, args=(pipe, stored(kind)))
        writer.start()
        text, source = read(pipe)
        writer.join()
        assert text == TEXT
        assert (source.compression, source.plain_size) == (kind, None)

    @pytest.mark.parametrize("kind", [None, *KINDS])
    def test_stdin_in_drops(self, monkeypatch: pytest.MonkeyPatch, kind: str | None) -> None:
        """A slow writer, and one that made the pipe non-blocking."""
        data = stored(kind)
        reader, writer = os.pipe()
        os.set_blocking(reader, False)

        def drip() -> None:
            with os.fdopen(writer, "wb", buffering=0) as stream:
                for at in range(0, len(data), 70_001):
                    stream.write(data[at : at + 70_001])

        dripping = threading.Thread(target=drip)
        with os.fdopen(reader, "rb") as stream:
            monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
            dripping.start()
            text, source = read("-")
            dripping.join()
        assert text == TEXT
        assert source.name == "stdin"

    def test_a_closed_stdin(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", None)
        with pytest.raises(InputError, match="closed"):
            Source("-")

    def test_a_name_that_no_file_can_have(self) -> None:
        for name in ("nul\0byte", "x" * 5000):
            with pytest.raises(InputError, match="cannot read"):
                Source(name)

    def test_a_tar_archive_inside_a_stream(self, tmp_path: Path) -> None:
        import tarfile

        with tarfile.open(tmp_path / "run.tar.gz", "w:gz") as archive:
            archive.add(write(tmp_path / "run.log", TEXT), "run.log")
        with pytest.raises(InputError, match="is a tar archive"):
            read(tmp_path / "run.tar.gz")

    def test_closing_is_not_forced_to_read(self, tmp_path: Path) -> None:
        before = os.listdir("/dev/fd")
        Source(str(write(tmp_path / "run.log", TEXT))).close()
        assert os.listdir("/dev/fd") == before


class TestChanges:
    @pytest.mark.parametrize("kind", [None, *KINDS])
    def test_bytes_that_come_later_wait_for_the_next_run(self, tmp_path: Path, kind: str | None) -> None:
        path = write(tmp_path / "run.log", stored(kind))
        source = Source(str(path))
        with path.open("ab") as file:
            file.write(stored(kind))
        assert b"".join(source.blocks()) == TEXT
        assert (source.changed, source.size_bytes) == (True, len(TEXT))

    def test_a_log_that_is_cut(self, tmp_path: Path) -> None:
        path = write(tmp_path / "run.log", TEXT)
        source = Source(str(path))
        os.truncate(path, 1000)
        assert TEXT.startswith(b"".join(source.blocks()))
        assert source.changed

    def test_a_log_that_is_replaced_or_removed_is_read_as_it_was(self, tmp_path: Path) -> None:
        path = write(tmp_path / "run.log", TEXT)
        source = Source(str(path))
        write(tmp_path / "new", b"something else\n").replace(path)
        path.unlink()
        assert b"".join(source.blocks()) == TEXT
        assert not source.changed

    def test_a_log_that_is_rewritten_in_place_with_the_same_size(self, tmp_path: Path) -> None:
        path = write(tmp_path / "run.log", TEXT)
        os.utime(path, ns=(1, 1))
        source = Source(str(path))
        write(path, b"x" * len(TEXT))
        list(source.blocks())
        assert source.changed


def test_progress_counts_stored_bytes_and_ends_at_all_of_them(tmp_path: Path) -> None:
    for kind in (None, *KINDS):
        data = TEXT * 4 if kind is None else COMPRESS[kind](TEXT)
        told: list[tuple[int, int]] = []
        path = write(tmp_path / f"run.{kind}", data)
        source = Source(str(path), lambda done, total: told.append((done, total)))  # noqa: B023
        for _ in source.blocks():
            pass
        assert told[-1] == (len(data), len(data)), kind
        assert [done for done, _ in told] == sorted(done for done, _ in told)


def cut_stream(lines: int, lost: int) -> bytes:
    text = b"".join(b"iter %d: loss %d.%04d\n" % (n, n % 7, n * 7919 % 10007) for n in range(lines))
    return gzip.compress(text, mtime=0)[:-lost]


@pytest.mark.parametrize("lines", [50, 2000, 20_000])
@pytest.mark.parametrize("before, end", [(0, None), (0, 10), (5, 40), (40, None)])
def test_a_small_log_is_read_again_as_its_file_would_be(tmp_path: Path, lines: int, before: int, end: int | None) -> None:
    path = write(tmp_path / "a.log.gz", cut_stream(lines, 40))
    seen = []
    for later in (False, True):  # of a file that was opened later nothing is kept
        source = Source(str(path), later=later)
        text = b"".join(source.blocks())
        again = source.excerpt(before, end)
        part = b"".join(again.blocks())
        twice = again.reopen()
        assert twice is not None and b"".join(twice.blocks()) == part
        assert (twice.sha256, twice.problems) == (again.sha256, again.problems)
        seen.append((text, part, again.sha256, again.size_bytes, again.problems, source.problems, [*again.empty_lines]))
    assert seen[0] == seen[1]


def test_a_small_log_that_is_gone_by_now_is_read_again(tmp_path: Path) -> None:
    path = write(tmp_path / "a.log", TEXT[:1000])
    source = Source(str(path))
    text = b"".join(source.blocks())
    path.unlink()
    again = source.reopen()
    assert again is not None and (b"".join(again.blocks()), again.sha256, again.size_bytes) == (text, source.sha256, 1000)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_is_measured_without_its_text(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path / "a.log", packed(kind))
    source = Source(str(path))
    source.measure()
    assert (source.sha256, source.size_bytes) == (hashlib.sha256(TEXT).hexdigest(), len(TEXT))


@pytest.mark.parametrize("before, end", [(0, None), (3, 9), (20, 30)])
def test_hidden_lines_are_empty_in_each_part_of_a_small_log(tmp_path: Path, before: int, end: int | None) -> None:
    lines = [b"line %d" % number for number in range(1, 41)]
    path = write(tmp_path / "a.log", b"\n".join(lines) + b"\n")
    source = Source(str(path))
    assert b"".join(source.blocks()).count(b"\n") == 40
    for hidden in ([4, 5, 21], [], [1, 9, 10, 40]):
        again = source.excerpt(before, end)
        again.report_copies(again.copies._replace(lines=hidden))
        shown = [b"" if number in hidden else line for number, line in enumerate(lines, 1)][before:end]
        for each in (again, again.reopen()):
            assert each is not None and b"".join(each.blocks()) == b"\n".join(shown) + b"\n"


def test_a_small_log_that_changed_stays_changed_for_whoever_reads_it_again(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(b"one\ntwo\n")
    source = Source(str(path))
    path.write_bytes(b"one\ntwo\nthree\n")
    assert list(source.blocks()) == [b"one\ntwo\n"] and source.changed
    again = source.reopen()
    assert again is not None and list(again.blocks()) == [b"one\ntwo\n"] and again.changed
