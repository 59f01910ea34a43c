"""Secrets with a known form, such as ``hf_…``, masked anywhere."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from receipt_cli.patterns import compile_later


class Leads:
    """Groups of texts, numbered from 0."""

    def __init__(self, groups: Sequence[Sequence[str]]) -> None:
        self._owners: dict[str, list[int]] = {}
        for number, leads in enumerate(groups):
            for lead in leads:
                self._owners.setdefault(lead, []).append(number)
        self._frequent = [lead for lead in self._owners if len(lead) == 1]
        self._others = [lead for lead in self._owners if len(lead) > 1]
        self._search: Any = None

    def groups_in(self, text: str) -> list[int]:
        """Return, in ascending order, the numbers of the groups that have at least one of their words in ``text``."""
        found = [lead for lead in self._frequent if lead in text]
        if self._search is None:
            self._search = _searcher(self._others)
        if self._search is False:
            found += [lead for lead in self._others if lead in text]
        else:
            hits = self._search(text.encode("utf-8", "surrogatepass"), overlapping=True)
            found += [self._others[number] for number in {hit[0] for hit in hits}] if hits else ()
        return sorted({number for lead in found for number in self._owners[lead]}) if found else []


def _searcher(leads: Sequence[str]) -> Any:
    """Return a function that finds ``leads`` in bytes, or False without the Aho-Corasick package."""
    try:
        from ahocorasick_rs import BytesAhoCorasick
    except ModuleNotFoundError:
        return False
    return BytesAhoCorasick([lead.encode() for lead in leads]).find_matches_as_indexes


class Form(NamedTuple):
    """A form: its class, texts of which every such secret contains one, and its pattern."""

    kind: str
    leads: tuple[str, ...]
    pattern: re.Pattern[str]


_MIXED = r"(?=[A-Za-z_-]{0,64}[0-9])"
"""A digit must follow soon: a key is random, a name consists of words."""


def _after(lead: str, rest: str) -> re.Pattern[str]:
    r"""Return the pattern of a secret that begins with ``lead`` (of fixed length), not after a letter or digit.

    A letter that ends an escape sequence is allowed: ``\n``, ``\x1b``, ``%3D``, the ``m`` of a written-out colour. The
    pattern begins with letters, because searching is then many times faster than with a leading condition.
    """
    escapes = (r"\\[nrtbf0]", r"%[0-9A-Fa-f]{2}", r"\\x[0-9A-Fa-f]{2}", r"\\u[0-9A-Fa-f]{4}", r"\[[0-9]m", r"[;\[][0-9]{2}m")
    before = "|".join([f"(?<![A-Za-z0-9]{lead})", *(f"(?<={escape}{lead})" for escape in escapes)])
    return compile_later(f"{lead}(?:{before}){rest}")


def _form(kind: str, lead: str, rest: str, *leads: str) -> Form:
    return Form(kind, leads or (lead,), _after(lead, rest))


FORMS: tuple[Form, ...] = (
    _form("hf", "hf_", r"(?:[A-Za-z0-9]{16,}|(?:oauth|jwt)_[A-Za-z0-9._-]{16,})"),
    _form("hf", "api_org_", r"[A-Za-z0-9]{16,}"),
    _form("sk", "sk-", rf"{_MIXED}[A-Za-z0-9_-]{{16,}}"),  # OpenAI, Anthropic and imitators
    _form("github", "gh[pousr]_", r"[A-Za-z0-9]{20,}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    _form("github", "github_pat_", r"[A-Za-z0-9_]{16,}"),
    _form("gitlab", "gl", rf"(?:pat|dt|ptt|rt|soat|ft|imt|agent|cbt|oas)-{_MIXED}[A-Za-z0-9_.-]{{14,}}"),
    _form("slack", "xox[abeoprs]", r"(?:\.xox[bp])?-[A-Za-z0-9-]{10,}", "xox"),
    _form("slack", "xapp-", r"[A-Za-z0-9-]{10,}"),
    Form(
        "slack",
        ("hooks.slack.com",),
        compile_later(r"(?<=hooks\.slack\.com/)(?:services|workflows|triggers)/[A-Za-z0-9/_-]{12,}"),
    ),
    _form(
        "aws",
        "A(?:KI|SI|BI|CC)A",
        r"[A-Z0-9]{16}(?![A-Za-z0-9])(?:[\s,;:|\"'=/]{1,10}[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+]))?",  # the key after its id
        *("AKIA", "ASIA", "ABIA", "ACCA"),
    ),
    _form("google", "AIza", r"[A-Za-z0-9_-]{30,}"),
    _form("google", r"ya29\.", r"[A-Za-z0-9_-]{20,}", "ya29."),
    _form("google", "GOCSPX-", r"[A-Za-z0-9_-]{20,}"),
    _form("google", "1//0", r"[A-Za-z0-9_-]{30,}"),
    Form("azure", ("Q~",), compile_later(r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}")),
    _form(
        "jwt",
        "eyJ",
        r"(?:[A-Za-z0-9_-]{8,2048}+(?:\.[A-Za-z0-9_-]+){1,4}"
        r"|(?:hbGci|0eXAi|raWQi|lbmMi|4NX|hcGlf)[A-Za-z0-9_+/.-]{8,}={0,2})",  # cut, but with a JWT's first field
    ),
    _form("private-key", "LS0tLS1CRUdJTi", r"[A-Za-z0-9+/_-]{16,}={0,2}"),  # base64 of its first characters
    _form("private-key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{20,}"),
    _form("nvidia", "nvapi-", r"[A-Za-z0-9_-]{16,}"),
    _form("wandb", "wandb_v1_", r"[A-Za-z0-9_-]{16,}"),
    _form("stripe", "[rsp]k_(?:live|test)_", r"[A-Za-z0-9]{10,}", "k_live_", "k_test_"),
    _form("stripe", "whsec_", r"[A-Za-z0-9+/=]{16,}"),
    _form("npm", "npm_", r"[A-Za-z0-9]{30,}"),
    _form("pypi", "pypi-AgE", r"[A-Za-z0-9_-]{16,}"),
    Form("telegram", (":AA",), compile_later(r"[0-9]{8,10}:AA[A-Za-z0-9_-]{32,33}(?![A-Za-z0-9_-])")),
    Form("telegram", ("/bot",), compile_later(r"(?<=/bot)[0-9]{8,10}:[A-Za-z0-9_-]{30,}")),
    Form("discord", ("/webhooks/",), compile_later(r"(?<=/webhooks/)[0-9]{16,20}/[A-Za-z0-9_-]{30,}")),
    Form(
        "discord",
        (".",),  # a bot's token has no fixed text
        compile_later(r"[MNO](?<![A-Za-z0-9_-][MNO])[A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}"),
    ),
    _form("service", r"hv[sb]\.", r"[A-Za-z0-9_-]{20,}", "hvs.", "hvb."),  # Vault
    _form("service", "dckr_", r"(?:pat|oat)_[A-Za-z0-9_-]{16,}"),
    _form("service", "dapi", r"[0-9a-f]{32}(?:-[0-9])?"),  # Databricks
    _form("service", "do[opr]_v1_", r"[a-f0-9]{40,}", "_v1_"),  # DigitalOcean
    _form("service", r"SG\.", r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}", "SG."),  # SendGrid
    _form("service", "key-", r"[0-9a-f]{32}(?![0-9a-z])"),  # Mailgun
    _form("service", "gsk_", r"[A-Za-z0-9]{32,}"),
    _form("service", "r8_", r"[A-Za-z0-9]{30,}"),
    _form("service", "xai-", r"[A-Za-z0-9]{32,}"),
    _form("service", "pplx-", r"[A-Za-z0-9]{32,}"),
    _form("service", "glsa_", r"[A-Za-z0-9_]{28,}"),  # Grafana, like the next
    _form("service", "glc_", r"[A-Za-z0-9+/=]{28,}"),
    _form("service", "NRAK-", r"[A-Z0-9]{20,}"),
    _form("service", "lin_api_", r"[A-Za-z0-9]{28,}"),
    _form("service", "ntn_", r"[A-Za-z0-9]{30,}"),
    _form("service", "ATATT3", r"[A-Za-z0-9_=-]{20,}"),
    _form("service", "PMAK-", r"[a-f0-9-]{40,}"),
    _form("service", r"dp\.(?:pt|st|sa|ct)\.", r"[A-Za-z0-9._-]{30,}", "dp.pt.", "dp.st.", "dp.sa.", "dp.ct."),
    _form("service", "lsv2_(?:pt|sk)_", r"[a-f0-9_]{30,}", "lsv2_"),
    _form("service", "tskey-", r"[a-z]{3,12}-[A-Za-z0-9-]{16,}"),
    _form("service", "sbp_", r"[a-f0-9]{40}"),
    _form("service", "sess-", r"[A-Za-z0-9]{32,}"),
    _form("service", "rpa_", rf"{_MIXED}[A-Za-z0-9]{{32,}}"),
    _form("service", "KGAT_", r"[a-f0-9]{32}"),
)
"""Lengths are lower bounds that exclude words and hashes, not the issuers' documented lengths."""
FORM_LEADS = Leads([form.leads for form in FORMS])
"""Finds the forms that may occur in a text."""
