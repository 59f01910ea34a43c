"""What a user reads where Ray does not let a batch begin; Ray itself is not needed for that."""

import pytest

from receipt_cli.batch.ray_engine import refused


class AuthenticationError(Exception):
    """As ``ray.exceptions`` calls it."""


def test_a_missing_token_is_named_with_the_ways_to_pass_it() -> None:
    error = refused(AuthenticationError("Token authentication is enabled but no token was found. Ensure that"), "10.0.0.1:6379")
    assert (error.message, error.where) == ("the Ray cluster requires a token", "10.0.0.1:6379")
    assert error.why == "Token authentication is enabled but no token was found"
    assert "RAY_AUTH_TOKEN_PATH" in error.try_


@pytest.mark.parametrize(
    ("where", "message", "hint"),
    [("10.0.0.1:6379", "the Ray cluster cannot be reached", True), ("local", "Ray does not start on this machine", False)],
)
def test_a_cluster_that_cannot_be_reached_may_want_another_token(where: str, message: str, hint: bool) -> None:
    """Ray raises the same for a wrong address and a wrong token."""
    error = refused(ConnectionError("Failed to connect to Ray cluster"), where)
    assert error.message == message
    assert ("RAY_AUTH_MODE=token" in error.try_) is hint
