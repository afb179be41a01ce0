"""Where a server is and who we are there, from a URL to a connection string."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.engines import reach
from stallmark.engines.mssql.address import Address
from stallmark.engines.mssql.odbc import Driver
from stallmark.errors import StallmarkError

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)


@given(password=WORDS, user=WORDS)
def test_any_user_and_password_survive_the_way_through_url_and_connection_string(password, user):
    address = Address("host", 1433, None, "db", user, password, {})
    again = Address.parse(address.url())
    assert again == address
    text = again.connection_string(Driver("driver"), "app")
    assert attributes(text)["UID"] == user and attributes(text)["PWD"] == password


def attributes(text: str) -> dict[str, str]:
    """A connection string as the ODBC Programmer's Reference has it: values in braces, } doubled."""
    found, at = {}, 0
    while at < len(text):
        equals = text.index("=", at)
        key, at = text[at:equals], equals + 1
        if text[at : at + 1] == "{":
            at, value = at + 1, ""
            while text[at] != "}" or text[at : at + 2] == "}}":
                value, at = value + text[at], at + (2 if text[at] == "}" else 1)
            at += 2
        else:
            end = text.find(";", at)
            value, at = (text[at:], len(text)) if end < 0 else (text[at:end], end + 1)
        found[key] = value
    return found


def test_encryption_is_on_and_a_broken_session_is_never_mended_behind_our_back():
    known = attributes(Address.parse("mssql://me@db/bank").connection_string(Driver("x"), "app"))
    assert (known["Encrypt"], known["ConnectRetryCount"]) == ("yes", "0")
    assert "TrustServerCertificate" not in known


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("mssql://db/bank", {"Trusted_Connection": "yes"}),
        ("mssql+pyodbc://me@db:1500/bank", {"Server": "db,1500", "UID": "me"}),
        ("mssql://me@db/bank?Authentication=ActiveDirectoryMsi", {"Authentication": "ActiveDirectoryMsi"}),
        ("mssql://me@db\\prod/bank", {"Server": "db\\prod"}),
    ],
)
def test_ways_to_name_a_server(url, expected):
    known = attributes(Address.parse(url).connection_string(Driver("x"), "app"))
    assert expected.items() <= known.items()


@pytest.mark.parametrize("option", ["PWD=s3cret", "UID=me&pwd=s3cret", "Password=s3cret", "uid=me", "User%20Id=me"])
def test_who_we_are_stands_before_the_host_and_nowhere_else(option):
    with pytest.raises(StallmarkError, match="SQLCMDPASSWORD") as refused:
        Address.parse(f"mssql://db/bank?Encrypt=yes&{option}")
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("option", ["driver=FreeTDS", "Driver=FreeTDS", "DRIVER=SQL+Server"])
def test_no_driver_but_microsofts_is_taken(option):
    with pytest.raises(StallmarkError, match="Microsoft's driver 18 or 17 alone"):
        Address.parse(f"mssql://db/bank?{option}")


def test_the_driver_that_sqlalchemy_names_is_the_one_of_this_machine():
    address = Address.parse("mssql+pyodbc://me@db/bank?driver=ODBC+Driver+17+for+SQL+Server")
    assert attributes(address.connection_string(Driver("x"), "app"))["Driver"] == "x"


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("mssql://db/bank", [("db", 1433)]),
        ("mssql://db:1500/bank", [("db", 1500)]),
        ("mssql://db\\prod:1500/bank", [("db", 1500)]),
        ("mssql://db\\prod/bank", [("db", "prod")]),
        ("mssql://db/bank?Failover_Partner=other", []),
    ],
)
def test_where_a_connect_is_tried_before_a_login(monkeypatch, url, asked):
    tried = []
    for name in ("why_unreachable", "why_instance_unreachable"):
        monkeypatch.setattr(reach, name, lambda *place: tried.append(place))
    assert Address.parse(url).why_unreachable() is None
    assert tried == ([] if sys.platform == "win32" else asked)


def test_what_is_shown_of_an_address_holds_nothing_secret():
    address = Address.parse("mssql://me:s3cret@db/bank?KeyStoreSecret=h1dden")
    assert "db" in repr(address) and "s3cret" not in repr(address) and "h1dden" not in repr(address)


@pytest.mark.parametrize("url", ["mssql://me:s3cret@/bank", "mssql://me:s3cret@db", "mssql://me:s3cret@db:x/bank"])
def test_a_url_that_cannot_be_is_refused_without_repeating_it(url):
    with pytest.raises(StallmarkError) as refused:
        Address.parse(url)
    assert "mssql://user@host:1433/database" in str(refused.value) and "s3cret" not in str(refused.value)


def test_what_the_bulk_copy_s_driver_does_not_know_is_kept_from_it():
    """mssql-python raises for a keyword that it does not know, and for one that comes twice."""
    url = "mssql://me@db/bank?encrypt=strict&Language=french&KeepAlive=9&Failover_Partner=b&BulkCopy=yes"
    known = attributes(Address.parse(url).copier_string())
    assert known == {
        "Server": "db", "Database": "bank", "UID": "me", "PWD": "", "Encrypt": "strict", "KeepAlive": "9",
    }  # fmt: skip
    assert attributes(Address.parse(url).connection_string(Driver("x"), "app")).keys() >= {"Encrypt", "Language"}
