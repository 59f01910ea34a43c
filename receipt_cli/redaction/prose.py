"""Passwords in sentences: ``password "…"``, ``the passphrase is …``, ``Passwort lautet …``.

Patterns are matched against lower-case text. A statement about a password (``password is required``) is kept.
"""

from __future__ import annotations

from receipt_cli.patterns import compile_later
from receipt_cli.redaction.assignments import says_nothing

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
