"""A secret planted anywhere in a text does not show, and what is shown is clean, bounded text."""

from receipt_cli.redaction.mask import mask_secrets
from receipt_cli.redaction.text import clean, log_tail, mask_texts, safe_text
from tests.fuzz.feed import Feed

_LETTERS = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA"  # made up, as all here
_HEX = "0123456789abcdef0123456789abcdef01234567"
_PLANTED = (
    ("", f"hf_{_LETTERS}"),
    ("", f"sk-{_LETTERS}"),
    ("", f"ghp_{_LETTERS}abcd"),
    ("", f"github_pat_{_LETTERS}"),
    ("", f"glpat-{_LETTERS}"),
    ("", f"xoxb-{_LETTERS}"),
    ("", "AKIAABCDEFGHIJ234567"),
    ("", f"AIza{_LETTERS}abc"),
    ("", f"nvapi-{_LETTERS}"),
    ("", f"eyJ{_LETTERS}.{_LETTERS}.{_LETTERS}"),
    ("Bearer ", _LETTERS),
    ("wandb: ", _HEX),
    ("wandb: ", f"wandb_v1_{_LETTERS}"),
    ("AWS_SECRET_ACCESS_KEY=", f"{_LETTERS}{_LETTERS[:8]}"),
    ("password: ", f"{_LETTERS}"),
    ("--api-key ", f"{_LETTERS}"),
    ("https://me:", f"{_LETTERS}"),
)


def target(data: bytes) -> None:
    feed = Feed(data)
    head, secret = feed.pick(_PLANTED)
    place = feed.below(1 << 16)
    repeats = feed.pick((1, 1, 1, 60))
    raw = feed.rest()
    text = raw.decode("utf-8", "replace").replace("\ufffd", "?")
    place %= len(text) + 1
    end = "@example.org" if "://" in head else ""
    planted = f"{text[:place]} {head}{secret}{end} {text[place:] * repeats}"
    if secret not in text and not _hidden(text[:place], head):
        for shown in (
            safe_text(planted.replace("\n", " "), 1 << 20),
            "\n".join(log_tail(planted.encode())),
            mask_secrets(clean(planted)),
        ):
            assert secret not in shown, shown
        assert secret not in str(mask_texts({"a": [{"b": planted}]}))
    for line in log_tail((text * repeats).encode(), cut=True):
        line.encode()
        assert clean(line) == line
    masked = [mask_secrets(text)]
    while len(masked) < 5:
        masked.append(mask_secrets(masked[-1]))
    assert masked[-1] == masked[-2], masked  # where quotation marks are out of step, once may not be enough
    assert len(safe_text(text, 50)) <= 50


def _hidden(before: str, head: str) -> bool:
    """Return whether what is planted behind ``before`` may be something else: a quotation or a terminal sequence is open."""
    return any(letter in before[-300:] for letter in ("\"'-=:@/^\x1b" if head else "\x1b^"))


def seeds() -> list[bytes]:
    texts = (
        b"step 1 loss 2.5\nTraceback (most recent call last):\n  File x\n",
        b"export HF_TOKEN=abc123def456 \r x\n",
        b"curl -H 'Authorization: Basic abcdefgh12345678'",
        b"-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\n",
        b"postgres://u:p@ss@h/db https://a:b@c",
        b"api_key: none token=null\x1b[31m",
        b"commit 0123456789abcdef0123456789abcdef01234567 of /data/run-3",
        b'secret_key=\'abc def ghi\' "password": "x y z 1 2 3"',
        b"\xe2\x80\xaewandb: Currently logged in",
    )
    return [
        bytes([number, 0, at, 0]) + text for number in range(len(_PLANTED)) for at in (0, 20) for text in texts[number % 3 :: 3]
    ]
