"""Secrets in known places (a URL, an HTTP header, a cookie, a command, a line about wandb), and passwords in sentences.

A sentence says ``password "…"``, ``the passphrase is …`` or ``Passwort lautet …``; its patterns are matched against lower-case
text. A statement about a password (``password is required``) is kept.
"""

from __future__ import annotations

from receipt_cli.patterns import compile_later
from receipt_cli.redaction.assignments import says_nothing

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


def is_last_password(before: str, value: str) -> bool:
    """Return whether ``value`` is neither a placeholder nor an adjective for a password."""
    return not says_nothing(value) and _QUALITY.fullmatch(value) is None
