"""A log in another encoding reads as the same log in UTF-8 does; only its digest and size are its own."""

import gzip
import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.io.encoding import SAMPLE, encoding_of
from receipt_cli.io.source import Source

CHINESE = (
    "2026-05-22 02:56:39 开始训练、共有一百轮、批次大小为三十二。\n轮次 1/100 训练损失: 32.1293 验证损失: 3.5 学习率: 0.001\n"
)
JAPANESE = (
    "学習を開始します。モデルを読み込んでいます。\nエポック 1/100 損失: 32.1 検証損失: 3.5 学習率: 0.001 これはテストです。\n"
)
KOREAN = (
    "학습을 시작합니다. 데이터를 불러오는 중입니다.\n에포크 1/100 손실: 32.1 검증 손실: 3.5 학습률: 0.001 정확도를 계산합니다.\n"
)


def read(path: Path) -> tuple[bytes, Source]:
    source = Source(str(path))
    return b"".join(source.blocks()), source


@pytest.mark.parametrize(
    ("text", "encoding", "name"),
    [
        ("step 1 loss 2.5\r\nstep 2 loss 2.4\r\n", "utf-16", "utf-16-le"),
        ("step 1 loss 2.5\nstep 2 loss 2.4\n", "utf-16-le", "utf-16-le"),
        ("step 1 loss 2.5\nstep 2 loss 2.4\n", "utf-16-be", "utf-16-be"),
        (CHINESE * 9, "utf-16", "utf-16-le"),
        (CHINESE * 9, "gbk", "gb18030"),
        # many pairs of bytes are characters of UTF-8 as well
        ("当前Batch\uff1a10/6035 | 当前epoch:0/50 | 当前损失值\uff1a10.113\n" * 9, "gbk", "gb18030"),
        (JAPANESE * 9, "cp932", "cp932"),
        (JAPANESE * 9, "euc_jp", "euc_jp"),
        (KOREAN * 9, "cp949", "cp949"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_text_of_another_encoding_is_read(text: str, encoding: str, name: str, packed: bool, tmp_path: Path) -> None:
    stored = text.encode(encoding)
    path = tmp_path / "run.log"
    path.write_bytes(gzip.compress(stored) if packed else stored)
    given, source = read(path)
    assert given.decode("utf-8").removeprefix("\ufeff") == text
    assert [(p.kind, name in p.detail) for p in source.problems] == [("decoded_as", True)]
    assert (source.size_bytes, source.sha256) == (len(stored), hashlib.sha256(stored).hexdigest())


@pytest.mark.parametrize(
    "stored",
    [
        CHINESE.encode() * 9,
        "\ufeffstep 1 loss 2.5\n".encode(),
        (CHINESE * 9).encode()[:-2],  # torn
        b"caf\xe9 step 1 loss 2.5\n" * 99,  # one byte a character: any byte is text
        b"\xff\xfa\xfc step 1 loss 2.5 \x80\n",
        b"\0" * 4096 + b"step 1 loss 2.5\n",
        bytes(range(256)) * 9,
        b"",
        b"\xb0",
    ],
)
def test_what_proves_no_encoding_is_left_as_it_is(stored: bytes, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(stored)
    given, source = read(path)
    assert given == stored.removeprefix("\ufeff".encode())
    assert source.problems == []


@given(st.text(st.characters(codec="ascii"), min_size=20, max_size=400), st.sampled_from(["utf-16-le", "utf-16-be"]))
def test_any_ascii_text_is_proven_wide(text: str, encoding: str) -> None:
    printed = text.replace("\0", " ")
    assert encoding_of(printed.encode(encoding), whole=True) == encoding
    assert encoding_of(printed.encode(), whole=True) is None


@given(st.text(max_size=400))
def test_utf_8_is_never_taken_for_another(text: str) -> None:
    stored = text.replace("\0", " ").encode()
    assert encoding_of(stored, whole=True) is None


def test_a_character_that_the_sample_cuts_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    text = "x" + CHINESE * (3 * SAMPLE // len(CHINESE.encode("gbk")))
    path.write_bytes(text.encode("gbk"))
    assert read(path)[0].decode("utf-8") == text


def test_a_later_byte_that_is_no_text_becomes_a_mark(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes((CHINESE * 9999).encode("gbk") + b"\xff\n")
    assert read(path)[0].endswith("\ufffd\n".encode())
