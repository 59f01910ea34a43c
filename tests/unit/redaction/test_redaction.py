"""What of a log's text stands in a receipt: bounded, clean, without secrets, and otherwise as it was."""

import json
import unicodedata

import pytest

from receipt_cli.redaction.mask import mask_secrets
from receipt_cli.redaction.text import clean, log_tail, mask_texts, safe_names, safe_text
from receipt_cli.scan.segment import TAIL_KEPT
from tests.tools.logs import receipt_of, toy_receipt

LETTERS = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA"  # made up, as everything here: 32 characters
SECRETS = {
    "hf": ("token ", "hf_" + LETTERS),
    "aws session id": ("id ", "ASIA" + "ABCDEFGHIJ234567"),
    "aws secret": ("AWS_SECRET_ACCESS_KEY=", LETTERS + "/+abcdef"),
    "google access": ("gcp ", "ya29." + LETTERS),
    "bearer": ("Authorization: Bearer ", LETTERS),
    "basic": ("Authorization: Basic ", LETTERS),
    "url": ("clone https://", "me:" + LETTERS + "@example.org/repo.git"),
    "wandb": ("wandb: appending key ", "0123456789abcdef0123456789abcdef01234567"),
    "wandb, second on the line": ("wandb: run " + "1" * 40 + " key ", "0123456789abcdef0123456789abcdef01234567"),
    "authorization by token": ("Authorization: token ", LETTERS),
    "bearer, wide": ("Authorization: Bearer   ", LETTERS),
    "flag of a password": ("--db_password ", LETTERS),
    "quoted, with blanks": ('"password": "correct horse ', LETTERS + '"'),
    "quoted, with a quote": ("{'api_key': 'ab\"", LETTERS + "'}"),
    "wandb variable": ("WANDB_API_KEY=", "0123456789abcdef0123456789abcdef01234567"),
}
SAID = [
    'the password "{}" was taken', "Passwort: {}", "mot de passe : {}", "contraseña={}", "la contraseña es {}", "пароль: {}",
    "passphrase is {}", "the password of the vault is {}.", "Kennwort lautet {}", "mot de passe est «{}»", "密码\uff1a{}",
    "temporary password for user admin is '{}'", "senha: {}", "your password was set to {} today",
]  # fmt: skip
PASSWORDS = ["hunter2!", "correct-horse-battery-staple", "Tr0ub4dor&3", "xK9-pQz", "0815-4711"]
KEPT = [
    *(f"password is {word}" for word in ("required", "incorrect", "invalid", "wrong", "optional.", "case-sensitive", "empty")),
    'password authentication failed for user "postgres"',
    "String base64Credentials = CredentialsProvider.getBase64Credentials(options)",
    'password for user "admin" was not given',
    "the password is stored in /etc/receipt/credentials",
    "Enter the passphrase 'secret' here",
    "passwords are compared in constant time",
    "one pass is enough, pass 2 is next",
    "password was changed 3 days ago",
    "mot de passe incorrect",
    "Passwort ist falsch",
    "commit 0123456789abcdef0123456789abcdef01234567",
    "sha256 " + "0123456789abcdef" * 4,
    "/home/user/checkpoints/step_1000/model.safetensors",
    "https://example.org/repo.git@main",
    "s3://bucket/run-7/step_100.pt",
    "tokens_per_step: 524288, num_tokens: 9876",
    "api_key=None",
    "pad_token: '<|endoftext|>'",
    "task-force-with-a-long-name-of-words",
    "the password is asked for",
    "python train.py --password-file /run/secrets/x --tokens 1048576",
    "--api-key --lr 0.1",
]


@pytest.mark.parametrize("kind", SECRETS)
def test_secrets_of_every_kind_are_masked(kind: str) -> None:
    head, secret = SECRETS[kind]
    found = mask_secrets(f"{head}{secret} and so on")
    hidden = secret.removesuffix("@example.org/repo.git").removeprefix("me:").rstrip("\"'}")
    assert hidden not in found
    assert found.startswith(head.split("wandb: run")[0].removesuffix("correct horse ").removesuffix('ab"'))
    assert "[redacted:" in found
    assert found.endswith(" and so on")
    assert mask_secrets(found) == found


@pytest.mark.parametrize("sentence", SAID)
def test_a_password_in_a_sentence_is_masked(sentence: str) -> None:
    for password in PASSWORDS:
        found = mask_secrets(sentence.format(password))
        assert found.startswith(sentence.partition("{}")[0].rstrip("'\"«"))
        assert "[redacted:named]" in found
        assert password not in found


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("the password is swordfish", "the password is [redacted:named]"),
        ("the passphrase was swordfish.\nnext", "the passphrase was [redacted:named].\nnext"),
        ("postgres://me:p@ss@db.example.org/x", "postgres://[redacted:url-password]@db.example.org/x"),
    ],
)
def test_no_more_than_a_secret_is_masked(text: str, masked: str) -> None:
    assert mask_secrets(text) == masked


@pytest.mark.parametrize("text", KEPT)
def test_what_is_no_secret_stays(text: str) -> None:
    assert mask_secrets(text) == text


def test_a_private_key_is_masked_whole() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + f"{LETTERS}\n" * 20 + "-----END RSA PRIVATE KEY-----"
    found = mask_secrets(f"before\n{key}\nafter")
    assert LETTERS not in found
    assert found.startswith("before\n") and found.endswith("\nafter")


def test_texts_at_any_depth() -> None:
    secret = "".join(SECRETS["hf"])
    assert secret not in json.dumps(mask_texts({"a": [{"b": secret}, 1, None, True]}))
    assert mask_texts({"a": [1, None, True, 0.5]}) == {"a": [1, None, True, 0.5]}


def is_clean(text: str) -> bool:
    text.encode()
    return not any(unicodedata.category(c) in ("Cc", "Cs") or c in "\u202e\u2066\u200f" for c in text)


@pytest.mark.parametrize("text", ["a\x1b[31mb", "a\x00b", "a\x9bb", "a\u202eb", "a\ud800b", "a\tb", "a\rb", "a\x7fb"])
def test_no_control_characters(text: str) -> None:
    assert is_clean(clean(text))
    assert clean(text).startswith("a") and clean(text).endswith("b")
    assert clean("Verlust äöü 損失 потеря 🙂") == "Verlust äöü 損失 потеря 🙂"


@pytest.mark.parametrize("limit", [1, 10, 400])
def test_excerpts_are_bounded(limit: int) -> None:
    assert len(safe_text("x" * 5000, limit)) == limit


def size(lines: list[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)


def test_the_tail_is_the_last_fifty_lines() -> None:
    assert log_tail(b"".join(b"line %d\n" % n for n in range(200))) == [f"line {n}" for n in range(150, 200)]
    assert log_tail(b"one\ntwo") == ["one", "two"]
    assert log_tail(b"") == log_tail(b"\n\n\n") == []
    assert log_tail(b"before\n" + b"".join(b"\r%3d%%" % n for n in range(101)) + b"\n")[-1].strip() == "100%"


@pytest.mark.parametrize(
    "line", [b"x" * 300, b"x" * 5000, b"x" * 100_000, "損失".encode() * 200, b"\xff" * 900, b"\x1b[31m" * 500 + b"red"]
)
def test_the_tail_is_at_most_8_kib(line: bytes) -> None:
    tail = log_tail(b"".join(line + b" %d\n" % n for n in range(60)))
    assert 0 < len(tail) <= 50
    assert size(tail) <= 8192
    assert all(is_clean(text) for text in tail)


def test_the_tail_of_a_receipt() -> None:
    log = "".join(f"\x1b[32mtoy step {n} | loss=2.5\x1b[0m\n" for n in range(100))
    tail = toy_receipt(log, exit_code=1)["failure"]["log_tail"]
    assert tail == [f"toy step {n} | loss=2.5" for n in range(50, 100)]


def test_a_secret_cut_by_the_limit_of_an_excerpt_is_masked() -> None:
    secret = "hf_" + LETTERS
    for pad in range(280, 540, 7):
        text = json.dumps(toy_receipt(f"toy step 0 | loss=2.5\nValueError: {'x' * pad} {secret}\n"))
        assert secret[:5] not in text or "[redacted:hf]" in text
        assert secret[:9] not in text


def test_a_secret_cut_by_the_start_of_the_tail_does_not_show() -> None:
    secret = "hf_" + LETTERS
    for after in range(TAIL_KEPT - 40, TAIL_KEPT + 4, 3):
        log = f"toy step 0 | loss=2.5\n{secret} {'y ' * (after // 2)}{'z' * (after % 2)}"
        tail = toy_receipt(log, exit_code=1)["failure"]["log_tail"]
        assert tail and secret[-12:] not in tail[0]


def test_a_private_key_longer_than_the_tail_does_not_show() -> None:
    key = b"-----BEGIN PRIVATE KEY-----\n" + f"{LETTERS}{LETTERS}\n".encode() * 60 + b"-----END PRIVATE KEY-----\n"
    assert log_tail(b"before\n" + key + b"after\n") == ["before", "[redacted:private-key]", "after"]


def test_what_began_long_before_the_last_lines_is_masked_in_them() -> None:
    lines = [f"{LETTERS}{LETTERS}".encode()] * 120
    key = b"\n".join([b"-----BEGIN PRIVATE KEY-----", *lines])
    assert log_tail(b"before\n" + key) == ["before", "[redacted:private-key]"]
    assert log_tail(b"before\n" + key.replace(b"VATE", b"V\x1b[0mATE")) == ["before", "[redacted:private-key]"]


@pytest.mark.parametrize(
    ("printed", "want"), [("a\x01b\u202e hf_" + LETTERS, "ab [redacted:hf]"), ("\x01", None), ("x" * 900, "x" * 500)]
)
def test_the_name_of_a_phase_is_text_of_the_log(printed: str, want: str | None) -> None:
    grammar = r"""
grammar: staged
version: 1
title: Any text names a stage
trainer: staged
rules:
  stage: {event: phase, literal: 'stage=', pattern: 'stage=(?P<phase>.++)', fields: {phase: {type: string}}}
  train: {event: step, literal: 'loss=', pattern: 'loss=(?P<loss>[\d.]++)', fields: {loss: {type: number}}}
"""
    [phase] = receipt_of(f"stage={printed}\nloss=2.5\nloss=1.5\n", grammar)["phases"]
    assert (phase["name"], phase["summary"]["phase"]) == (want, want)


@pytest.mark.parametrize("start", ["\x1b[3 ", "\x1b[", "\x1b[0;", "\x1b[ "])
def test_a_sequence_that_eats_the_first_letter_of_a_secret(start: str) -> None:
    secret = "hf" + "_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3f"
    line = f"login {start}{secret} done"
    for shown in (safe_text(line), *log_tail(f"{line}\n".encode()), mask_texts(line), *safe_names([line])):
        assert secret[4:] not in shown
