"""Secrets after a name: ``password=…``, ``'api_key': '…'``, ``--token …``, ``export HF_TOKEN=…``.

All patterns are matched against lower-case text. A ``sure`` name always names a secret; after a ``loose`` name (``token``,
``key``) only a value that looks as random as a key is a secret.
"""

from __future__ import annotations

import re
from functools import lru_cache

from receipt_cli.patterns import compile_later

_SURE = (
    r"(?:(?:api|app|secret|access|account|private|shared|storage|encryption|signing|master|license|service|deploy|ssh|consumer"
    r"|subscription|kaggle|openai|anthropic|comet|wandb|clearml)"
    r"[ _-]?(?:access[ _-]?|secret[ _-]?){0,2}keys?(?:[ _-]?(?:id|base))?"
    r"|(?:api|access|auth|session|refresh|hub|hf|hugging[_-]?face|github|gitlab|bearer|bot|oauth|csrf|xsrf|security|personal"
    r"|wandb|npm|pypi|slack|registry|deploy|service|account|login|client|admin|private|secret|runner|vault|tracking|mlflow"
    r"|neptune|comet|cloud|discord|telegram|github_app|installation)[ _-]?tokens?"
    r"|secrets?|credentials?|connection[ _-]?string|conn[_-]?str"
    r"|password|passwd|passphrase|passcode|passwort|kennwort|mot[ ]de[ ]passe|contrase(?:ñ|n)a|(?<![a-z])senha|wachtwoord|пароль"
    r"|密码|密碼|口令|パスワード|비밀번호|(?:db|smtp|mysql|pg|redis|ssh|root|admin|mail|ftp|git|sudo)_?pass"
    r"|pwd(?![\"']?[ ]{0,4}[:=][ ]{0,4}[\"']?(?:[/~.]|[a-z]:)))"
)
_LOOSE = r"(?:(?<![a-z])(?:token|auth|key)|_(?:token|key|auth))"
_ANNOTATION = (
    r"(?:[ ]{0,2}:[ ]{0,2}(?:(?:\w{1,16}\.)?(?:optional|final|annotated|union)\[[^\]=\n]{1,40}\]|[a-z][\w.]{1,24})"
    r"(?:[ ]?\|[ ]?[a-z]{2,12})?(?=[ ]{0,4}=[ ]{0,4}[bru]{0,2}\\{0,3}[\"']))?"
)
_BETWEEN = (
    rf"{_ANNOTATION}"
    r"(?:\\{0,3}[\"'`])?\]?(?:[ ]{0,24}=[ ]{0,4}(?=[bru]{0,2}\\{0,3}[\"'])"
    r"|[ ]{0,4}(?::=|=>|->|={1,2}|:|\uff1a|%3a|%3d)[ ]{0,4}|[ ]{1,2}\.{2,80}[ ]{1,2}|[ ]{0,60}[│┃|][ ]{0,4}"
    r"|(?<=[\"']),[ ]{0,2}(?=[\"'])|(?<=\w)>(?=[^<\s]))(?:%22|%27)?"
)
_DELIMITER = r"[,;&)}\]\"'`]"
_UNQUOTED = (
    rf"[^\s\"'`,;&)}}\]<\[({{=>](?:[^\s\"'`,;&)}}\]<%]|%(?!2[26cC])|<(?!/)"
    rf"|{_DELIMITER}(?=[^\s,;&)}}\]\"'`])(?!\\?[\"']?[\w.-]{{1,40}}\\?[\"']?[ ]?[:=])){{3,}}"
)
_VALUE = (
    r"(?:[bruf]{1,2}(?=[\"'])|\w{1,32}\((?=[bru]{0,2}[\"'])[bru]{0,2})?(?:(?P<q>\\{0,3}[\"'`])|\\{0,3}[\"'`])?"
    rf"(?P<secret>(?(q)(?:(?!(?P=q))(?:\\[^\n]|[^\n\\])){{4,1024}}(?=(?P=q)|\Z)"
    rf"|(?:\[(?!redacted)[^\]\n]{{4,}}\]?|\{{(?![{{\s])[^}}\n]{{4,}}\}}?|{_UNQUOTED})))"
)
_FLAG = r"(?<!\S)[\"']?--?[\w-]{0,40}?"

PASS = compile_later(r"(?<![a-z0-9])(?:[a-z0-9]{1,24}_){0,6}pass" + _BETWEEN + _VALUE)
"""``MY_PASS=…``, ``pass = …``: the value must not be the number, time or verdict of a pass."""
PAIR = compile_later(
    r"\b(?:user(?:[ _-]?name)?|login)[ ]?/[ ]?pass(?:[ _-]?word)?[\"']?[ ]{0,4}[:=][ ]{0,4}[\"']?"
    r"(?P<secret>[^\s\"'\[][^\s\"']{0,64}[ ]/[ ][^\s\"'\[]{4,256}|[^\s\"'\[][^\s\"']{3,256})"
)
"""``user/pass: admin/…``: both are masked, because the user may be a part of the password."""
_QUOTE = r"\\{0,3}[\"']"
AUTH = compile_later(
    rf"(?:\bauth(?:{_QUOTE})?[ ]?[:=][ ]?[\[(]|\b[a-z]{{0,16}}auth\()[ ]?(?:\w{{1,24}}[ ]?=[ ]?)?{_QUOTE}"
    rf"[^\"'\n]{{0,128}}{_QUOTE}[ ]?,[ ]?(?:\w{{1,24}}[ ]?=[ ]?)?(?P<q>{_QUOTE})"
    rf"(?P<secret>(?:(?!(?P=q))(?:\\[^\n]|[^\n\\])){{4,1024}})(?=(?P=q)|\Z)"
)
"""``auth=('admin', '…')``, ``HTTPBasicAuth('admin', '…')``"""

SURE = compile_later(_SURE + _BETWEEN + _VALUE)
SURE_FLAG = compile_later(
    rf"{_FLAG}{_SURE}[ ]{{1,4}}(?!-)(?:(?P<q>[\"'])|[\"'])?"
    rf"(?P<secret>(?(q)(?:(?!(?P=q))[^\n]){{4,1024}}(?=(?P=q))|[^\s\"'\[]\S{{3,}}))"
)
LOOSE = compile_later(_LOOSE + _BETWEEN + _VALUE)
LOOSE_FLAG = compile_later(rf"{_FLAG}(?:token|key|auth)[ ]{{1,4}}(?P<secret>[^\s\"'\[-][^\s\"']{{11,}})")
SPOKEN = compile_later(
    r"(?:api[ _-]?key|(?:access|auth|secret)[ _-]?(?:key|token)|password|token|secret)(?:[ ](?:is|was|of|provided))?[ :]{1,3}"
    r"[\"'`]?(?P<secret>[^\s\"'`\[(,;]{12,})"
)
"""In a sentence: ``Incorrect API key provided: …``, ``the token is …``; judged like a loose name."""
SURE_LEADS = (
    *("pass", "pwd", "secret", "key", "token", "credential", "conn", "kennwort", "contrase", "senha", "wachtwoord"),
    *("пароль", "密码", "密碼", "口令", "パスワード", "비밀번호"),
)
LOOSE_LEADS = ("token", "key", "auth", "password", "secret")

_NAME = compile_later(
    rf"(?s)(?:.*[^a-z])?(?:{_SURE}|.*(?:password|secret|api_?key|(?:access|auth|secret|private)_?(?:key|token)))"
)
_NOTHING = frozenset(
    {
        *("none", "null", "nil", "true", "false", "yes", "no", "n/a", "not", "unset", "set", "empty", "unknown", "undefined"),
        *("required", "optional", "missing", "invalid", "hidden", "redacted", "masked", "omitted", "default", "prompt"),
        *("str", "string", "bytes", "secretstr", "optional[str]", "env", "environment"),
    }
)
_PLACEHOLDER = compile_later(
    r"[*xX.•#?_-]+|<[^<>]*>?|\$\{[^}]*\}?|\$\([^)]*\)?|\$[A-Z_][A-Z0-9_]*|\{\{.*|%\(.*|%s|\{\w*\}?"
    r"|os\.(?:environ|getenv).*|getpass.*|secretstr\(.*|your[_-].*|(?:[a-z]+_)?[A-Z]{2,}(?:_[A-Z]{2,})+"
)
_CALL = compile_later(r"(?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*\([\w.]{0,40}\)?;?")
"""``Provider.get_credentials(request)``: code that names a secret but contains none."""
_VOCABULARY = compile_later(
    r"(?:pad|eos|bos|unk|sep|cls|mask|image|video|audio|next|prev|last|first|start|end|stop|special|per|max|min|num|input|output)_token\Z"
)
_RANDOM = compile_later(r"[^\s<>|()\[\]{}\"'`,;\\]{12,}")
_PATH = compile_later(r"[~./\\]|[A-Za-z]:[\\/]|[a-z][a-z0-9+.-]*://")
_MEASURED = compile_later(r"[+-]?[0-9][0-9.,:/x]*(?:e[+-]?[0-9]+)?[ ]?[A-Za-zµ%/]{0,8}")
_CAPITALS = compile_later(r"(?:\A|[^A-Za-z0-9])(?:[A-Z0-9]+_)*PASS[\"']?=[\"']?\Z")
_ALONE = compile_later(r"(?i)(?:\A|[^A-Za-z0-9_ -]|[^A-Za-z0-9_ -][ ]+)pass[\"']?[ ]{0,24}[:=][ ]{0,4}[\"']?\Z")
_ENDS = ("key", "id", "base", "token", "secret", "credential", "string", "str", "word", "passwd", "phrase", "code", "pass", "pwd")
_HEX_HASH = compile_later(r"(?<![0-9a-f])[0-9a-f]{32,}(?![0-9a-f])")


def says_nothing(value: str) -> bool:
    """Return whether ``value`` is a placeholder for a secret: ``None``, ``required``, ``****``, ``<your key>``, ``$TOKEN``."""
    bare = value.strip(" \"'`,.;:()")
    return bare.lower() in _NOTHING or not bare or _PLACEHOLDER.fullmatch(bare) is not None or _CALL.fullmatch(value) is not None


def looks_random(name: str, value: str) -> bool:
    """Return whether ``value`` after a loose ``name`` can only be a key: long, letters and digits, no path, name or number.

    After ``key`` it must have letters of both cases and no hash, because caches and dictionaries have keys too.
    """
    value = value.strip("\"'`,.;:()")
    if says_nothing(value) or _RANDOM.fullmatch(value) is None or _VOCABULARY.search(name):
        return False
    if _PATH.match(value) is not None and "+" not in value:  # base64 may begin like a path
        return False
    digits = sum(c.isdigit() for c in value)
    letters = sum(c.isalpha() for c in value)
    if not digits or not letters or _is_number(value):
        return False
    mixed = any(c.islower() for c in value) and any(c.isupper() for c in value)
    if "key" in name:
        return len(value) >= 20 and digits > 1 and mixed and "." not in value and _HEX_HASH.search(value) is None
    words = [word for word in re.split(r"[_./+=~%-]", value) if word]
    if len(words) > 2 and max(map(len, words)) < 12 and not mixed:
        return False  # a name made of words and numbers
    return mixed or max(map(len, words), default=0) >= 12


def looks_like_password(before: str, value: str) -> bool:
    """Return whether ``value`` after ``pass``, which may also mean a verdict or a pass over data, can only be a password.

    After a variable in capitals: anything but a number or a path. Else letters mixed with digits or signs, and after a longer
    name also both cases.
    """
    value = value.strip("\"'`,.;:()")
    if says_nothing(value) or len(value) < 4 or _PATH.match(value) is not None or _MEASURED.fullmatch(value) is not None:
        return False
    if _CAPITALS.search(before) is not None:
        return True
    mixed = any(c.islower() for c in value) and any(c.isupper() for c in value)
    strange = any(c.isdigit() for c in value) or any(c in "!#$%&*?@^~+" for c in value)
    if len(value) < 6 or not strange or not any(c.isalpha() for c in value):
        return False
    alone = _ALONE.search(before) is not None
    return alone or (len(value) >= 8 and (mixed or looks_random("token", value)))


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Return whether a field of this name always holds a secret: ``wandb_api_key``."""
    ends = name.lower().rstrip("s").endswith(_ENDS) or name.lower().endswith("pass")
    return ends and "/" not in name and _NAME.fullmatch(name.lower()) is not None


def _is_number(value: str) -> bool:
    try:
        float(value.replace("_", ""))
    except ValueError:
        return False
    return True
