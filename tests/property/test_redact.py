"""Masking takes time in proportion to the text; that no secret shows is what ``tests/fuzz/targets/redact.py`` tries."""

import pytest

from receipt_cli.redaction.mask import mask_secrets
from tests.tools.slow import one_in
from tests.tools.timed import takes_less

LEADS = [
    "hf_", "sk-", "github_pat_", "AKIA", "eyJ", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "MII", "://a:",
    "&token=",
    "authorization: digest ", "cookie={", "password='", 'password="a\\"', "api_key=[", "--api-key ", "token=", "curl -u ",
    "mysql ", "wandb ", "%3a%2f%2f", "a:b1@", "password ....", "\nhf_ab1", "[redacted:",
]  # fmt: skip


@pytest.mark.parametrize("lead", LEADS)
@pytest.mark.parametrize("rest", one_in(3, ["", "a1", "aB1+/", "- ", "a.b", "a\n"]))
def test_a_text_made_to_be_slow_takes_time_in_proportion(lead: str, rest: str) -> None:
    """What is masked at once is the end of a log, some three times as long as these texts at most."""
    for text in ((lead + rest) * (32_768 // len(lead + rest)), lead + (rest or "x") * (32_768 // len(rest or "x"))):
        assert takes_less(5, mask_secrets, text)
