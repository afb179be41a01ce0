"""The driver's machine."""

import pytest

from stallmark.record.devices import has_address


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("127.0.0.1", True),
        ("localhost", True),
        ("/var/run", True),
        ("", True),
        ("192.0.2.1", False),
        ("no.invalid", None),
    ],
)
def test_an_address_is_of_this_machine_or_not(host, here):
    """192.0.2.0/24 belongs to nobody (RFC 5737), and .invalid has no names (RFC 6761)."""
    assert has_address(host) is here
