"""Made-up secrets in the places where real logs hold theirs, by seed: what must never leave a log.

No value here was ever valid. Each is put together when the test runs, so that no file of this repository holds one.
"""

import base64
import json
import random
import string
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from ahocorasick_rs import AhoCorasick

FRAGMENT = 12
"""Characters of a secret that must not show up in a row."""
MANY = 20
"""Secrets above which all of them are looked for at once."""
_ALNUM = string.ascii_letters + string.digits


class Planted(NamedTuple):
    """Text of a log, one line or more, the secrets in it, and which kind stands in which position."""

    kind: str
    position: str
    text: str
    secrets: tuple[str, ...]


def _random(r: random.Random, size: int, letters: str = _ALNUM) -> str:
    """Return random letters; of a larger alphabet at least a capital, a small letter and a digit are among them."""
    made = [r.choice(letters) for _ in range(size)]
    if size >= 8 and letters[:3] == _ALNUM[:3]:
        kinds = (string.ascii_uppercase, string.ascii_lowercase, string.digits)
        for at, some in zip(r.sample(range(size), 3), kinds, strict=True):
            made[at] = r.choice(some)
    return "".join(made)


_HEX = "0123456789abcdef"
_URLSAFE = _ALNUM + "-_"


def _segment(r: random.Random, value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def _jwt(r: random.Random) -> str:
    claims = {"sub": _random(r, 10), "iat": r.randrange(10**9), "name": _random(r, 30)}
    return ".".join((_segment(r, {"alg": "HS256", "typ": "JWT"}), _segment(r, claims), _random(r, 43, _URLSAFE)))


FORMS: dict[str, Callable[[random.Random], str]] = {
    "hf": lambda r: "hf" + "_" + _random(r, 34),
    "openai": lambda r: "sk" + "-" + _random(r, 48),
    "openai-project": lambda r: "sk" + "-proj-" + _random(r, 60, _URLSAFE + "0123456789") + _random(r, 20),
    "anthropic": lambda r: "sk" + "-ant-api03-" + _random(r, 80, _URLSAFE) + _random(r, 9) + "AA",
    "github-classic": lambda r: "gh" + "p_" + _random(r, 36),
    "github-oauth": lambda r: "gh" + "o_" + _random(r, 36),
    "github-server": lambda r: "gh" + "s_" + _random(r, 36),
    "github-fine": lambda r: "github" + "_pat_" + _random(r, 22) + "_" + _random(r, 59),
    "gitlab": lambda r: "gl" + "pat-" + _random(r, 20),
    "slack": lambda r: "xo" + "xb-" + _random(r, 12, string.digits) + "-" + _random(r, 24),
    "slack-hook": lambda r: "https://hooks.slack" + f".com/services/T{_random(r, 9)}/B{_random(r, 9)}/{_random(r, 24)}",
    "discord-hook": lambda r: "https://discord" + ".com/api/webhooks/" + _random(r, 18, string.digits) + "/" + _random(r, 68),
    "aws-pair": lambda r: "AK" + "IA" + _random(r, 16, string.ascii_uppercase + "234567") + " " + _random(r, 40, _ALNUM + "+/"),
    "google": lambda r: "AI" + "za" + _random(r, 35),
    "google-client": lambda r: "GOC" + "SPX-" + _random(r, 28),
    "azure-client": lambda r: _random(r, 3) + "8Q" + "~" + _random(r, 34),
    "azure-account": lambda r: "DefaultEndpointsProtocol=https;AccountName=runs;Account" + "Key=" + _random(r, 86) + "==",
    "azure-sas": lambda r: "https://runs.blob.core.windows.net/c/x.pt?sv=2023-01-03&sp=r&s" + "ig=" + _random(r, 43) + "%3D",
    "aws-presigned": lambda r: "https://b.s3.amazonaws.com/x?X-Amz-Expires=9&X-Amz-Sig" + "nature=" + _random(r, 64, _HEX),
    "wandb-2025": lambda r: "wandb" + "_v1_" + _random(r, 60),
    "stripe": lambda r: "sk" + "_live_" + _random(r, 24),
    "npm": lambda r: "np" + "m_" + _random(r, 36),
    "pypi": lambda r: "py" + "pi-AgEIcHlwaS5vcmc" + _random(r, 80, _URLSAFE),
    "telegram": lambda r: _random(r, 9, "123456789") + ":A" + "A" + _random(r, 33),
    "jwt": _jwt,
    "nvidia": lambda r: "nv" + "api-" + _random(r, 64, _URLSAFE),
    "postgres": lambda r: "postgres" + "://runs:" + _random(r, 20) + "@db.example.org:5432/runs",
    "mongodb": lambda r: "mongodb" + "+srv://runs:" + _random(r, 20) + "@c0.example.net/?retryWrites=true",
    "redis": lambda r: "redis" + "://:" + _random(r, 20) + "@cache.example.org:6379/0",
    "mysql": lambda r: "mysql" + "://root:" + _random(r, 9) + "/" + _random(r, 9) + "@db.example.org/runs",
    "amqp": lambda r: "amqps" + "://runs:" + _random(r, 20) + "@mq.example.org//",
    "git-remote": lambda r: "https://oauth2:" + _random(r, 26) + "@git.example.org/team/run.git",
    "git-remote-token": lambda r: "https://" + _random(r, 26) + "@git.example.org/team/run.git",
    "sentry": lambda r: "https://" + _random(r, 32, _HEX) + "@o1.ingest.example.io/7",
    "neptune": lambda r: "eyJhcGlfYWRkcmVzcyI6" + _random(r, 60) + "==",
    "vault": lambda r: "hv" + "s." + _random(r, 90),
    "runpod": lambda r: "rp" + "a_" + _random(r, 40, _ALNUM + string.digits),
    "base64": lambda r: base64.b64encode(f"WANDB_API_KEY={_random(r, 40)}".encode()).decode(),
    "base64 of a token": lambda r: base64.b64encode(f"HF_TOKEN={_random(r, 34)}\n".encode()).decode(),
    "databricks": lambda r: "da" + "pi" + _random(r, 32, _HEX),
}
"""Kinds that are known by their form: they may stand anywhere."""

VALUES: dict[str, Callable[[random.Random], str]] = {
    "hex-key": lambda r: _random(r, 40, _HEX[1:]),
    "hex-32": lambda r: _random(r, 31, _HEX[1:]) + "7a",
    "opaque": lambda r: _random(r, 32),
    "aws-secret": lambda r: _random(r, 40, _ALNUM + "+/"),
    "password": lambda r: "Correct" + _random(r, 6) + "!horse#" + _random(r, 6) + "$9",
}
"""Values that nothing but the name before them gives away."""

ANYWHERE: dict[str, str] = {
    "alone": "{}",
    "in words": "using {} for the upload",
    "in quotes": "token is '{}', as given",
    "in brackets": "retry (credential={}) failed",
    "coloured": "\x1b[33muse \x1b[1m{}\x1b[0m now",
    "after a redraw": "\rloading  10%\rloading with {} 100%",
    "after NULs": "\x00\x00at {}\x00\x00",
    "written-out newline": "message was 'see\\n{}\\n'",
    "percent-encoded quotes": "GET /resolve?x=%22{}%22 401",
    "repr of bytes": "b'{}'",
    "in a list": "['--data', '{}', '--lr', '0.1']",
    "JSON": '{{"event": "login", "value": "{}"}}',
    "traceback frame": '    client = Client("{}")  # noqa',
    "rank prefix": "[rank3]: {} was refused",
    "timestamp prefix": "2026-03-01 10:00:00,123 - INFO - root - using {}",
    "wide line": "x" * 480 + " {}",
    "behind 2 KiB": "y" * 2030 + " {}",
}
NAMED: dict[str, str] = {
    "export": "export WANDB_API_KEY={}",
    "environment": "HF_TOKEN={}",
    "YAML": "  api_key: {}",
    "JSON": '{{"user": "me", "password": "{}", "lr": 0.1}}',
    "JSON in JSON": '{{"config": "{{\\"client_secret\\": \\"{}\\"}}"}}',
    "dict": "{{'lr': 0.1, 'hub_token': '{}', 'steps': 10}}",
    "Namespace": "Namespace(lr=0.1, openai_api_key='{}', steps=10)",
    "SecretStr": "Config(db_password=SecretStr('{}'))",
    "flag": "python train.py --lr 0.1 --wandb-api-key {} --steps 10",
    "flag with equals": "python train.py --hub_token={}",
    "list of arguments": "CalledProcessError: Command '['train', '--api-key', '{}', '--x']' returned non-zero exit status 1.",
    "Megatron": "  wandb_api_key ................... {}",
    "table": "| aws_secret_access_key | {} |",
    "bearer": "Authorization: Bearer {}",
    "header in a dict": "headers={{'Accept': '*/*', 'Authorization': 'Bearer {}'}}",
    "header in a command": "curl -s -H 'X-Api-Key: {}' https://example.org",
    "basic": "authorization: Basic {}",
    "cookie": "Cookie: theme=dark; session={}; lang=en",
    "set-cookie": "< Set-Cookie: sid={}; Path=/; HttpOnly",
    "query": "GET https://example.org/api?user=me&access_token={}&page=2 403",
    "percent-encoded": "redirect=%2Flogin%3Fpassword%3D{}%26next%3D1",
    "netrc": "machine api.wandb.ai login user password {}",
    "environ": "os.environ['OPENAI_API_KEY'] = '{}'",
    "Incorrect": "Incorrect API key provided: {}. You can find yours in the console.",
    "connection string": "Endpoint=sb://x.example.net/;SharedAccessKeyName=Root;SharedAccessKey={}",
    "XML": "<password>{}</password>",
    "assignment": "PGPASSWORD='{}' psql -h db",
    "unclosed at the end": 'RuntimeError: {{"api_key": "{}',
    "in a traceback": '    login(token="{}")',
    "local": "    token      = '{}'",
    "local password": "password   = '{}'",
    "annotated": "token: str = '{}'",
    "annotated, optional": "    api_key: Optional[str] = '{}'",
    "annotated, or None": '    password: str | None = "{}"',
    "auth pair": "requests.get(url, auth=('admin', '{}'))",
    "basic auth": "HTTPBasicAuth('admin', '{}')",
    "basic auth of another": 'auth=aiohttp.BasicAuth("me", "{}")',
    "exported pass": "export RCLONE_CONFIG_PASS={}",
    "own pass": "MY_PASS={}",
    "pass": "pass={}",
    "pass in a file": "pass = {}",
    "user/pass": "user/pass: admin/{}",
    "username/password": "username/password: me / {}",
    "user/pass alone": "user/pass: {}",
    "session": "session_id={}",
    "session in words": "session id: {}",
    "session in JSON": '{{"session_id": "{}"}}',
    "sshpass": "sshpass -p {} ssh host",
}
"""Positions whose name says that what follows is a secret."""
KEYS_ONLY = ("Incorrect", "percent-encoded", "basic", "bearer", "header in a dict")
"""Positions in which no password looks as the one here does."""


PLACES: dict[str, str] = {
    "alone": "{}",
    "indented": "        {}",
    "rank": "[rank0]: {}",
    "Elastic": "[default3]:{}",
    "Ray": "(RayTrainWorker pid=4711) {}",
    "srun": "3: {}",
    "logging": "2026-03-01 10:00:00,123 - INFO - root - {}",
    "Lightning": "[2026-03-01 10:00:00,123][train][INFO] - {}",
    "container": "2026-03-01T10:00:00.123456789Z stderr F {}",
    "syslog": "Mar  1 10:00:00 node7 train[4711]: {}",
    "shell trace": "+ {}",
    "pytest": "E       {}",
    "quoted source": "> {}",
    "error": "ValueError: {}",
    "coloured": "\x1b[33m{}\x1b[0m",
    "redrawn": "loading  10%\r{}",
    "wide": "x" * 480 + " {}",
    "followed": "{} and so on",
    "ended": "using {} .",
    "JSON": '{{"level": "info", "message": {}}}',
}
"""Places of a whole text in a log."""


def table(seed: int, size: int = 200) -> list[Planted]:
    """Return ``size`` secrets with what gives them away, each in every one of the places."""
    r = random.Random(seed)
    chosen = [(kind, "{}") for kind in FORMS]
    named = [(kind, text) for kind in VALUES for name, text in NAMED.items() if not (kind == "password" and name in KEYS_ONLY)]
    chosen += r.sample(named, size - len(chosen))
    made: list[Planted] = []
    for kind, text in chosen:
        secret = FORMS[kind](r) if kind in FORMS else VALUES[kind](r)
        whole = text.format(secret)
        parts = secret_parts(kind, secret) if kind in FORMS else (secret,)
        for place, line in PLACES.items():
            made.append(Planted(f"{kind} {text}", place, line.format(json.dumps(whole) if place == "JSON" else whole), parts))
    return made


def private_key(r: random.Random, header: str, lines: int, width: int = 64, start: str = "MII") -> list[str]:
    """Return the lines of a private key that is none."""
    dashes = "-----"
    body = [_random(r, width, _ALNUM + "+/") for _ in range(lines)]
    body[0] = start + body[0][len(start) :]
    first, last = (f"{dashes}{word} {header}PRIVATE KEY{dashes}" for word in ("BEGIN", "END"))
    return [first, *body, _random(r, 30) + "==", last]


def blocks(r: random.Random) -> list[Planted]:
    """Return private keys, as files, in JSON, behind prefixes, and secrets that a terminal broke in two."""
    made: list[Planted] = []
    kinds = (
        ("RSA ", 64, "MIIEpAIBAAKCAQEA"),
        ("", 64, "MIIEvQIBADANBg"),
        ("OPENSSH ", 70, "b3BlbnNzaC1rZXktdjE"),
        ("EC ", 64, "MHcCAQEEI"),
    )
    for header, width, start in kinds:
        key = private_key(r, header, 12, width, start)
        body = tuple(key[1:-1])
        kind = f"private key {header}".strip()
        made.append(Planted(kind, "as a file", "\n".join(key), body))
        made.append(Planted(kind, "behind a prefix", "\n".join(f"[rank0]: {line}" for line in key), body))
        account = json.dumps({"type": "service_account", "private_key_id": _random(r, 40, _HEX), "private_key": "\n".join(key)})
        made.append(Planted(kind, "service account", account, body))
    for kind in ("hf", "openai", "github-classic", "gitlab", "nvidia"):
        secret = FORMS[kind](r)
        for cut in (6, len(secret) // 2, len(secret) - 6):
            line = f"{'using the token of this machine, which is ':>60}{secret[:cut]}"
            made.append(Planted(kind, "wrapped", f"{line}\n{secret[cut:]} from here", (secret,)))
            tagged = f"[rank0]: {line}\n[rank0]: {secret[cut:]} from here"
            parts = tuple(part for part in (secret[:cut], secret[cut:]) if len(part) > 6)
            made.append(Planted(kind, "two lines of a rank", tagged, parts))
    for kind in ("jwt", "anthropic", "github-fine", "pypi"):
        secret = FORMS[kind](r)
        rows = [f"{'the answer of the server was: ':>60}{secret[:20]}"]
        rows += [secret[at : at + 40] for at in range(20, len(secret), 40)]
        made.append(Planted(kind, "wrapped often", "\n".join(rows), (secret[:20], *rows[1:])))
    for kind, make in VALUES.items():
        secret = make(r)
        if kind != "password":
            line = f"{'INFO  the settings of this run: WANDB_API_KEY=':>60}{secret[:14]}"
            made.append(Planted(kind, "wrapped", f"{line}\n{secret[14:]}", (secret,)))
    return made


def corpus(seed: int) -> list[Planted]:
    """Return each kind in each position that it can have."""
    r = random.Random(seed)
    made: list[Planted] = []
    for kind, make in FORMS.items():
        for position, template in ANYWHERE.items():
            secret = make(r)
            made.append(Planted(kind, position, template.format(secret), secret_parts(kind, secret)))
    for kind, make in VALUES.items():
        for position, template in NAMED.items():
            secret = make(r)
            if kind == "password" and position in KEYS_ONLY:
                continue  # nobody's key looks like this there
            made.append(Planted(kind, position, template.format(secret), (secret,)))
    return made + blocks(r)


def secret_parts(kind: str, secret: str) -> tuple[str, ...]:
    """Return what of a planted text is secret: of a URL, the user and the password or the part that grants access."""
    if kind in ("azure-account", "azure-sas", "aws-presigned"):
        return (secret[secret.rindex("ey=" if kind == "azure-account" else "ig=" if kind == "azure-sas" else "re=") + 3 :],)
    if kind in ("slack-hook", "discord-hook"):
        return (secret.rsplit("/", 1)[1],)
    if "://" in secret:
        return (secret.split("://", 1)[1].split("@")[0].rsplit(":", 1)[-1],)
    return tuple(secret.split(" "))


def leaks(secrets: Iterable[str], output: str) -> list[str]:
    """Return the secrets of which ``FRAGMENT`` characters in a row stand in ``output``."""
    given = tuple(secrets)
    if len(given) > MANY and not _searcher(given).find_matches_as_indexes(output):
        return []
    return [s for s in given if any(fragment in output for fragment in _fragments(s))]


def _fragments(secret: str) -> Iterator[str]:
    return (secret[at : at + FRAGMENT] for at in range(max(1, len(secret) - FRAGMENT + 1)))


@lru_cache(maxsize=4)
def _searcher(secrets: tuple[str, ...]) -> AhoCorasick:
    """Return what finds all fragments of many secrets in one pass."""
    return AhoCorasick({fragment for secret in secrets for fragment in _fragments(secret)})


ORDINARY = """\
commit 0123456789abcdef0123456789abcdef01234567
HEAD is now at 3f2a9c1 Merge pull request #12 from team/feature
wandb: git commit 0123456789abcdef0123456789abcdef01234567 (main)
wandb: 🚀 View run dark-sun-7 at: https://wandb.ai/team/project/runs/a1b2c3d4
wandb: Run data is saved locally in /workspace/wandb/run-20260101_101010-a1b2c3d4
runs/wandb/run-20260329_011604-a1b2c3d4/files/output.log 0123456789abcdef0123456789abcdef01234567
sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
image nvcr.io/nvidia/pytorch@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
/home/user/checkpoints/step_1000/model-00001-of-00003.safetensors
s3://bucket/run-7/step_100.pt
tcp://10.0.0.1:29500
http://localhost:8080/path@v2
https://github.com/team/repo.git@main
ssh://git@github.com/team/repo
uuid 123e4567-e89b-12d3-a456-426614174000
GPU-8f2a1c3d-1234-5678-9abc-def012345678
meta-llama/Llama-3.1-8B-Instruct
tokenizer=meta-llama/Llama-3.1-8B max_tokens=4096 token: 512 num_tokens: 9876
tokens/s: 123456.789 | tokens_per_second=98765.4321 | total tokens: 131072000
eos_token: <|reserved_special_token_250|> pad_token='<|finetune_right_pad_id|>'
bos_token_id=128000 eos_token_id=[128001, 128008, 128009]
special_tokens_map={'bos_token': '<s>', 'eos_token': '</s>'}
Missing key(s) in state_dict: "model.layers.11.self_attn.q_proj.weight"
state_dict key: model.layers.0.self_attn.q_proj.weight
KeyError: 'password'
KeyError: 'model.layers.31.mlp.down_proj.weight'
pass@1: 0.512 pass@10: 0.8731 | secret_sauce_lr: 3e-4
api_key=None password: '' hub_token=None use_auth_token=True
hub_token: null, push_to_hub_token='<PUSH_TO_HUB_TOKEN>'
--password-file /run/secrets/x --tokens 1048576 --key-averages 12
PWD=/home/user/run OLDPWD=/root
export TOKENIZERS_PARALLELISM=false
export WANDB_API_KEY=$WANDB_API_KEY
NCCL_SOCKET_IFNAME=eth0 NCCL_DEBUG=INFO MASTER_PORT=29500
forward_pass: 12.3456ms backward_pass: 24.6912ms
TOKENIZERS_PARALLELISM=(true | false)
task-0123456789abcdef is queued; slurm job 1234567
run id 7f3a9b2c4d5e6f70 of sweep abcd1234
cache key: Linux-pip-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
attention: query/key/value fused, key value cache: 123 MB
RuntimeError: CUDA error: an illegal memory access was encountered
torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/ProcessGroupNCCL.cpp:1970, internal error
ncclUniqueId: 0x1f2e3d4c5b6a79880001f2e3d4c5b6a7
step 1000: loss 2.345, lr 3e-4, grad norm 1.234, 123.4 TFLOPS, mfu 45.6%
Token indices sequence length is longer than the specified maximum sequence length (1024 > 512)
2026-03-01T10:00:00.123456Z [INFO] rank=0 world_size=8 seed=1337
File "/opt/conda/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1511, in _wrapped_call_impl
optimizer=AdamW(lr=0.0003, betas=(0.9, 0.95), eps=1e-08, weight_decay=0.1)
loaded checkpoint-1000/optimizer.bin md5 d41d8cd98f00b204e9800998ecf8427e
the password is asked for
hf_trainer_utils_with_a_long_name.py and sk-learn-contrib-with-words
author_key: smith | primary key: id | foreign key: run_id
Authorization required: see the documentation
cookies are disabled; cookie policy: strict
basic settings: lr 0.1 | bearer of news
key_padding_mask=None, attn_mask=None, is_causal=True
forward_pass=12.3ms first_pass: layer12 second_pass = 0.34 PASS=1 pass: True pass = 3/4 one-pass=on
pass: train pass=eval num_pass=2 two_pass: yes PASS: test_forward[cuda-bf16] PASSED
auth=('user', None) session_dir=/tmp/ray/session_2026-03-01_10-00-00_123456_78 session: 12
token: int = 512 key: str = 'loss' eos_token: str = '</s>' token    = 512
user/pass: none dGhpcyBpcyBqdXN0IGEgcGxhaW4gc2VudGVuY2U= aGVsbG8gd29ybGQgaGVsbG8gd29ybGQ=
""".splitlines()
"""Lines of real kinds that hold no secret, though some of them look as if they did."""
