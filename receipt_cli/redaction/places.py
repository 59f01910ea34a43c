"""Secrets in known places: in a URL, an HTTP header, a cookie, a command, a line about wandb."""

from __future__ import annotations

from receipt_cli.patterns import compile_later

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
