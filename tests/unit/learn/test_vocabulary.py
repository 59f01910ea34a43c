"""The words of other languages: a text of ASCII is passed by unless it contains one that is spelled in ASCII."""

import pytest

from receipt_cli.detect.generic import load_generic


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("Verlust: 0.5", " loss : 0.5"),
        ("PERDA 0.5", " loss  0.5"),
        ("perdas 0.5", "perdas 0.5"),
        ("loss_verlust 0.5", "loss_verlust 0.5"),
        ("train loss 0.5", "train loss 0.5"),
        ("損失 0.5", " loss  0.5"),
        ("训练损失 0.5", " train  loss  0.5"),
    ],
)
def test_words_become_english(text: str, english: str) -> None:
    assert load_generic().english(text) == english


def test_no_word_has_a_letter_that_is_one_of_ascii_in_the_other_case() -> None:
    folded = {"\u0130", "\u0131", "\u017f", "\u212a"}  # else a text of ASCII could contain a word that is not spelled in it
    assert not [word for word in load_generic().translations if folded & {*word}]
