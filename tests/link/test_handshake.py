"""The handshake: versions, ids, and proof of the shared token in both directions."""

from __future__ import annotations

import pytest

from broker_runtime.link.handshake import check_greeting, check_hello, check_welcome, proof
from broker_runtime.wire.frames import PROTOCOL_VERSION, Greeting, Hello, Welcome, WireError

CHALLENGE = b"0123456789abcdef"


def hello(**changes) -> Hello:
    fields = {
        "version": PROTOCOL_VERSION,
        "role": "client",
        "id": "S0",
        "incarnation": "1",
        "challenge": CHALLENGE,
    }
    return Hello(**{**fields, **changes})


def refusal(check, *arguments) -> str:
    with pytest.raises(WireError) as refused:
        check(*arguments)
    return refused.value.code


def test_a_client_that_knows_the_token_is_let_in():
    check_hello(hello(proof=proof("secret", "hello", CHALLENGE, "S0", "B1")), "B1", CHALLENGE, "secret")


@pytest.mark.parametrize(
    "given",
    [
        b"",
        b"secret",
        proof("other", "hello", CHALLENGE, "S0", "B1"),
        proof("secret", "hello", b"another challenge", "S0", "B1"),
        proof("secret", "hello", CHALLENGE, "S1", "B1"),
        proof("secret", "hello", CHALLENGE, "S0", "B2"),
        proof("secret", "welcome", CHALLENGE, "S0", "B1"),
    ],
)
def test_any_other_proof_is_refused(given):
    assert refusal(check_hello, hello(proof=given), "B1", CHALLENGE, "secret") == "AUTHENTICATION"


def test_a_broker_must_prove_the_token_too():
    welcome = Welcome(
        session="1",
        incarnation="1",
        resumed=False,
        received=(0, 0),
        proof=proof("secret", "welcome", CHALLENGE, "B1"),
    )
    check_welcome(welcome, "B1", CHALLENGE, "secret")
    assert refusal(check_welcome, welcome, "B2", CHALLENGE, "secret") == "AUTHENTICATION"


@pytest.mark.parametrize("bad", ["", "-x", "a b", "x" * 65, "ä", "a/b", "a\n"])
def test_ids_are_checked(bad):
    assert refusal(check_hello, hello(id=bad), "B1", CHALLENGE, "") == "BAD_ID"


def test_versions_roles_and_a_brokers_own_id_are_checked():
    assert refusal(check_hello, hello(version=99), "B1", CHALLENGE, "") == "VERSION"
    assert refusal(check_hello, hello(role="king"), "B1", CHALLENGE, "") == "BAD_HELLO"
    assert refusal(check_hello, hello(id="B1"), "B1", CHALLENGE, "") == "SELF"


def test_a_dialler_without_token_says_so_before_anything_else():
    greeting = Greeting(version=PROTOCOL_VERSION, broker="B1", challenge=CHALLENGE, token_required=True)
    assert refusal(check_greeting, greeting, "S0", "") == "AUTHENTICATION"


def test_the_token_is_in_no_representation():
    from broker_runtime.broker import BrokerSettings
    from broker_runtime.client_core import ClientSettings
    from broker_runtime.link.endpoint import Identity
    from broker_runtime.link.session import Role

    for holder in (
        BrokerSettings(id="B1", token="secret"),
        ClientSettings(id="S0", address="127.0.0.1:1", token="secret"),
        Identity("S0", Role.CLIENT, "1", token="secret"),
    ):
        assert "secret" not in repr(holder)
