"""Leads of secrets: found in one pass, or one by one where only the standard library is there."""

import sys

import pytest

from receipt_cli.redaction.forms import Leads
from receipt_cli.redaction.mask import mask_secrets

GROUPS = (("hf_", "key"), (".",), ("token", "key"), ("keyboard",))
TEXTS = {"": [], "a.b": [1], "the keyboard": [0, 2, 3], "hf_ and \udcff.": [0, 1], "tok en": [], "é token": [2]}


@pytest.mark.parametrize("alone", [False, True])
def test_groups_are_found_with_and_without_the_search_for_many_texts(monkeypatch: pytest.MonkeyPatch, alone: bool) -> None:
    if alone:
        monkeypatch.setitem(sys.modules, "ahocorasick_rs", None)
    leads = Leads(GROUPS)
    assert {text: leads.groups_in(text) for text in TEXTS} == TEXTS


def test_a_line_that_was_wrapped_behind_a_frame_is_masked() -> None:
    secret = "ghp_" + "aB3" * 12
    text = f"{'x' * 60} {secret[:20]} │\n{secret[20:]} rest"
    assert secret[:20] not in mask_secrets(text) and secret[20:] not in mask_secrets(text)


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("  api_key: 1f22fdceb9627374a657d3532fde61b7a", "HTTPBasicAuth('admin', 'ma42gIHlqlCPlOBuqkll05LgMQkWuUxS')"),
        ("progress: loss=1.25 gho_jequwHWHrm2uU8YcLiSRFiz5Fd", "glpat-BC7WNrxjMHkBjtr51phJ"),
    ],
    ids=["named by a call", "of another form"],
)
def test_what_may_continue_a_wrapped_secret_is_masked_by_itself_too(line: str, after: str) -> None:
    secret = after.split("'")[-2] if "'" in after else after.removeprefix("glpat-")
    for text in (f"{line}\n{after}", f"{line}\n{after} and more\nloss: 2.5"):
        assert secret not in mask_secrets(text)
        assert mask_secrets(mask_secrets(text)) == mask_secrets(text)
