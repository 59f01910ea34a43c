"""Secrets in known places (a URL, an HTTP header, a cookie, a command, a line about wandb), and passwords in sentences.

A sentence says ``password "…"``, ``the passphrase is …`` or ``Passwort lautet …``; its patterns are matched against lower-case
text. A statement about a password (``password is required``) is kept.

Also secrets after a name: ``password=…``, ``'api_key': '…'``, ``--token …``, ``export HF_TOKEN=…``. All these patterns are
matched against lower-case text. A ``sure`` name always names a secret; after a ``loose`` name (``token``, ``key``) only a value
that looks as random as a key is a secret.
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


URL = compile_later(
    r"(?<=://)(?:(?!\[redacted:)[^\s/:@\"'<>]{0,128}:"
    r"(?:[^\s/\"'<>]{1,256}(?=@)|(?![0-9]{1,5}/)[^\s@\"'<>]{1,256}(?=@[A-Za-z0-9\[.-]))"  # an @ may be part of a password
    r"|(?=[A-Za-z_-]{0,200}[0-9])[A-Za-z0-9_-]{16,200}(?=@))"
)
URL_ESCAPED = compile_later(r"(?<=%3a%2f%2f)(?P<secret>[^\s%/:@]{0,128}%3a[^\s/@]{1,256}?)(?=%40|@)")
BARE_URL = compile_later(
    r"(?<![\w/.-])(?!mailto:)[\w.+-]{1,64}:(?P<secret>(?=[^\s@]{0,128}[0-9])[^\s:@/\"'\[]{8,128})"
    r"@[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,8}"
)
"""``URL`` without a scheme: the remote of a clone, the target of a copy."""
QUERY = compile_later(
    r"[?&;](?:amp;)?(?:x-amz-(?:signature|credential|security-token)|x-goog-(?:signature|credential)|sig|signature|policy|key-pair-id"
    r"|(?:access|id|refresh|auth|api|private|session|security)?[_-]?token|auth|api[_-]?key|key|secret|client[_-]?secret"
    r"|password|passwd|pwd|pass|code|jwt|assertion|credential)=(?P<secret>[^\s&\"'<>;#]{6,})"
)
AUTHORIZATION = compile_later(
    r"authorization(?:\\{0,3}[\"'])?[ ]{0,4}(?:[:=]|,[ ]?|%3a)[ ]{0,4}(?:[bru]{0,2}\\{0,3}[\"'])?(?:%20)?"
    r"(?:(?P<scheme>basic|bearer|token|apikey|key|negotiate|sharedkey(?:lite)?)(?:[ ]{1,4}|%20|\+)"
    r"|(?:digest|aws4-hmac-sha256)(?P<many>[ ]))?"
    r"(?P<secret>(?(many)[^\n\"'\\]{6,}|(?!(?:basic|bearer|token|negotiate)\b)[^\s\"'\\\[,;][^\s\"'\\,;]{5,}))"
)
BEARER = compile_later(r"\bbearer(?:[ ]{1,4}|%20|\+)(?P<secret>[a-z0-9._~+/=-]{8,})")
COOKIE = compile_later(
    r"(?<![a-z])(?:set-)?cookies?(?:\\{0,3}[\"'])?[ ]{0,4}(?:[:=]|,[ ]?(?=[\"']))[ ]{0,4}[bru]{0,2}"
    r"(?P<secret>\{[^}\n]{4,}\}?|\\{0,3}\"[^\"\n]{4,}|\\{0,3}'[^'\n]{4,}|[^\s\"'\[{][^\n\"']{5,})"
)
SESSION = compile_later(
    r"(?:session[_ -]?(?:id|key|cookie)|(?<![a-z])sid|connect\.sid|csrftoken|phpsessid|jsessionid)\\{0,3}[\"']?"
    r"[ ]{0,24}[:=][ ]{0,4}[bru]{0,2}\\{0,3}[\"']?"
    r"(?P<secret>[^\s\"',;\[\\]{8,})"
)
NETRC = compile_later(
    r"(?:\blogin[ ]{1,8}\S{1,128}[ ]{1,8}password[ ]{1,8}|(?P<line>(?<![^\n])[ ]{0,8}password[ ]{1,4}))"
    r"(?P<secret>[^\s:=\[]\S{3,256})(?(line)(?=[ ]{0,8}(?:\r|\n|\Z))|(?=\s|\Z))"
)
COMMAND = compile_later(
    r"(?:\bsshpass[ ]+-p[ ]?|\bcurl\b[^\n]{0,300}?[ ](?:-u|--user)[ ]?|\bdocker[ ]login\b[^\n]{0,200}?[ ]-p[ ]"
    r"|\bwandb[ ]login[ ](?:--[a-z-]+[ ])*|\bmysql[a-z]*\b[^\n]{0,200}?[ ]-p(?=[^\s-]))"
    r"[\"']?(?P<secret>[^\s\"'\[-][^\s\"']{3,256})"
)
WANDB = compile_later(r"(?:wandb|weights[ ]?&[ ]?biases)[^\n]{0,400}")
HASH_WORD = compile_later(
    r"(?:commit|sha-?1?|hash|rev(?:ision)?|digest|head|checkout|tree|ref|version|artifact|run|git)(?:[ ](?:is|at|id))?"
    r"[\"']?[\s:=@/]{0,3}[\"']?\Z"
)
"""Words before a commit id, but never before a key."""
KEY_WORD = compile_later(r"key|login|netrc|api|password|paste|token|quit|(?:wandb|biases)[\s:=\"'(]{0,6}\Z")
"""Words between ``wandb`` and its key."""
WANDB_KEY = compile_later(r"(?<![0-9a-z/@])[0-9a-f]{40}(?![0-9a-z])")


PASSWORD = (
    r"(?:pass(?:word|phrase|code|wort)|kennwort|mots?[ ]de[ ]passe|contrase(?:ñ|n)a|(?<![a-z])senha|wachtwoord|lösenord"
    r"|пароль|密码|密碼|口令|パスワード|비밀번호)"
)
LEADS = (
    *("pass", "kennwort", "contrase", "senha", "wachtwoord", "lösenord"),
    *("пароль", "密码", "密碼", "口令", "パスワード", "비밀번호"),
)
_OF = r"(?:[ ](?:for|of|to|on|für|von|de|du|del|da|do|pour|para|voor)[ ][^\n\"'`]{1,40}?)?"
_OPEN = r"[\"'`\u201c-\u201e«\u2018]"
_VERB = r"[ ](?:(?:(?:is|was|been)[ ])?set[ ]to|is|was|are|will[ ]be|lautet|ist|war|est|es|é|era|är)(?:[ ]now)?[ ]?:?"
_CLOSE = r"\"'`\u201c\u201d»\u2019"
QUOTED = compile_later(rf"{PASSWORD}(?:[ ]{{1,2}}|{_OF}{_VERB}[ ]){_OPEN}(?P<secret>[^\n{_CLOSE}]{{3,256}})(?=[{_CLOSE}])")
"""``password "…"``, ``password of the vault is '…'``; not ``password for user "…"``, which quotes the user."""
SAID = compile_later(rf"{PASSWORD}{_OF}{_VERB}[ ](?P<secret>[^\s\"'`\u201c\u201e«\[(<{{]\S{{3,255}})")
"""``the password is …``: the value is more than a word."""
SAID_LAST = compile_later(rf"{PASSWORD}{_OF}[ ](?:is|was)[ ]:?[ ]?(?P<secret>[^\W\d_]{{4,64}})(?=[.!]?[ \t]*(?:\r|\n|\Z))")
"""``the password is swordfish``: a word that ends the line and is no adjective."""

_WORD = compile_later(r"[^\W\d_]+(?:['-][^\W\d_]+)?")
_QUALITY = compile_later(
    r"(?i).*(?:ed|ing|ly|able|ible|ory|ive|al|ect|ent|id|ous|ful|less|ant)"
    r"|(?:wrong|right|weak|strong|short|long|unknown|okay|fine|good|safe|needed|unset|here|there|below|above|yours|shown|hidden"
    r"|given|taken|broken|open|public|private|same|first|last|secure|simple|easy|plain|text|stale|unique|absent|secret|password)"
)


def is_quoted_password(before: str, value: str) -> bool:
    """Return whether ``value`` is neither a placeholder nor an adjective for a password."""
    return not says_nothing(value) and _QUALITY.fullmatch(value.strip(" :.")) is None


def is_said_password(before: str, value: str) -> bool:
    """Return whether ``value`` is more than plain words: it has digits, signs or inner capitals."""
    bare = value.strip("\"'`.,;:!?()»\u201d")
    if says_nothing(bare) or len(bare) < 4 or bare.startswith(("/", "~/", "./")) or "://" in bare:
        return False
    return _WORD.fullmatch(bare) is None or not (bare.islower() or bare.istitle())
