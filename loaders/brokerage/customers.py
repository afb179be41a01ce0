"""Customers with their addresses and taxes, who may trade for them, and the securities they watch."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from stallmark.loaders import Piece, digits
from stallmark.loaders.brokerage.companies import symbols
from stallmark.loaders.brokerage.fixed import TAX_RATES, addresses, people, tax_ids, tax_rates
from stallmark.schema import words
from stallmark.schema.brokerage import (
    TAX_ID_DIGITS,
    UNIT,
    Population,
    account_key,
    accounts_of,
    address_key_of_customer,
    customer_key,
    others_permitted,
    owner_of,
    permitted,
    tax_number,
    tier_of,
    watched_by,
)
from stallmark.schema.draw import Ints, percent, whole
from stallmark.schema.words import chosen

TAX_STATUS_PERCENT = (20, 70)  # cumulated percent of accounts with tax status 0, and 0 or 1; the others have 2
_RIGHTS = ("0000", "0001", "0011")  # permissions of the owner, the second and the third who may trade
_KINDS_OF_ACCOUNT = ("Savings", "Retirement", "Education", "Household", "Travel", "Reserve", "Growth", "Income")
_OLDEST, _YOUNGEST = np.datetime64("1920-01-01"), np.datetime64("1987-01-01")


def customers(seed: int, population: Population, unit: int) -> Iterator[Piece]:
    """Return all rows of the customer group of one load unit."""
    customer = unit * UNIT + np.arange(UNIT)
    address_key = address_key_of_customer(population, customer)
    yield "brokerage.address", addresses(seed, "customer", customer, address_key)
    yield "brokerage.customer", _customers(seed, customer, address_key)
    yield "brokerage.customer_taxrate", _tax_rates(seed, customer)
    yield "brokerage.account_permission", _permissions(seed, population, customer)
    yield ("brokerage.watch_list", pa.table({"wl_id": customer_key(customer), "wl_c_id": customer_key(customer)}))
    yield "brokerage.watch_item", _watch_items(seed, population, customer)


def names(seed: int, customer: Ints) -> pa.StringArray:
    """Return first and last names."""
    return pc.binary_join_element_wise(_first_names(seed, customer), _last_names(seed, customer), " ")


def broker_names(seed: int, broker: Ints) -> pa.StringArray:
    return people(seed, "broker", broker)


def account_names(seed: int, account_key: Ints) -> pa.StringArray:
    """Return the owner's name and what the account is for."""
    kind = whole(seed, "kind of account", account_key, len(_KINDS_OF_ACCOUNT))
    return pc.binary_join_element_wise(names(seed, owner_of(account_key)), chosen(_KINDS_OF_ACCOUNT, kind), " ")


def tax_status_of(seed: int, account_key: Ints) -> Ints:
    """Return the tax status: 0, 1 or 2."""
    return percent(seed, "tax status", account_key, TAX_STATUS_PERCENT)


def tax_rate_of(seed: int, customer: Ints) -> Ints:
    """Return the sum of the customer's tax rates, in units of 0.00001."""
    country, state = tax_rates(seed, customer)
    return TAX_RATES[country] + TAX_RATES[state]


def _customers(seed: int, customer: Ints, address_key: Ints) -> pa.Table:
    first, last = _first_names(seed, customer), _last_names(seed, customer)
    initial = whole(seed, "middle initial", customer, 26)
    born = _OLDEST + whole(seed, "born", customer, int((_YOUNGEST - _OLDEST).astype(int)))
    return pa.table(
        {
            "c_id": customer_key(customer),
            "c_tax_id": _tax_ids(customer),
            "c_st_id": pa.repeat("ACTV", len(customer)),
            "c_l_name": last,
            "c_f_name": first,
            "c_m_name": chosen([chr(ord("A") + letter) for letter in range(26)], initial),
            "c_gndr": chosen(("F", "M"), _is_male(seed, customer).astype(np.int64)),
            "c_tier": tier_of(customer).astype(np.int16),
            "c_dob": born,
            "c_ad_id": address_key,
            **_telephones(seed, customer),
            "c_email_1": _email(seed, customer, first, last, 1),
            "c_email_2": _email(seed, customer, last, first, 2),
        }
    )


def _telephones(seed: int, customer: Ints) -> dict[str, pa.Array]:
    columns: dict[str, pa.Array] = {}
    for line in ("1", "2", "3"):
        columns |= {
            f"c_ctry_{line}": pa.repeat("+1", len(customer)),
            f"c_area_{line}": digits(200 + whole(seed, f"area {line}", customer, 800), 3),
            f"c_local_{line}": digits(whole(seed, f"local {line}", customer, 10_000_000), 7),
            f"c_ext_{line}": digits(whole(seed, f"extension {line}", customer, 1_000), 3),
        }
    return columns


def _email(seed: int, customer: Ints, first: pa.Array, other: pa.Array, number: int) -> pa.StringArray:
    domains = words.email_domains()
    domain = chosen(domains, whole(seed, f"e-mail {number}", customer, len(domains)))
    person = pc.ascii_lower(pc.binary_join_element_wise(first, other, "."))
    return pc.binary_join_element_wise(person, domain, "@")


def _tax_rates(seed: int, customer: Ints) -> pa.Table:
    both = np.stack(tax_rates(seed, customer), axis=1).ravel()
    return pa.table({"cx_tx_id": chosen(tax_ids(), both), "cx_c_id": np.repeat(customer_key(customer), 2)})


def _permissions(seed: int, population: Population, customer: Ints) -> pa.Table:
    """Return the permissions: the owner may trade in every account; in some one or two other customers may as well."""
    owner, place = _numbered(customer, accounts_of(customer))
    key = account_key(owner, place)
    account, which = _numbered(key, 1 + others_permitted(seed, key))
    person = permitted(seed, population, account, which)
    return pa.table(
        {
            "ap_ca_id": account,
            "ap_acl": chosen(_RIGHTS, which),
            "ap_tax_id": _tax_ids(person),
            "ap_l_name": _last_names(seed, person),
            "ap_f_name": _first_names(seed, person),
        }
    )


def _watch_items(seed: int, population: Population, customer: Ints) -> pa.Table:
    owner, place = _numbered(customer, watched_by(population, customer))
    # Once around all securities in even steps is too short a way to come by the same one twice.
    first = whole(seed, "first watched", owner, population.securities)
    step = 1 + whole(seed, "watched step", owner, population.securities // population.most_watched)
    security = (first + place * step) % population.securities
    return pa.table({"wi_wl_id": customer_key(owner), "wi_s_symb": symbols(security)})


def _numbered(these: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Repeat each of `these` by its count; return the repeats and their numbers from 0."""
    ends = np.cumsum(counts)
    return np.repeat(these, counts), np.arange(ends[-1]) - np.repeat(ends - counts, counts)


def _tax_ids(customer: Ints) -> pa.StringArray:
    return digits(tax_number(customer), TAX_ID_DIGITS)


def _is_male(seed: int, customer: Ints) -> npt.NDArray[np.bool_]:
    return whole(seed, "gender", customer, 2) == 1


def _first_names(seed: int, customer: Ints) -> pa.StringArray:
    women, men = words.first_names()
    woman = whole(seed, "first name", customer, len(women))
    man = len(women) + whole(seed, "first name", customer, len(men))
    return chosen(pa.concat_arrays([women, men]), np.where(_is_male(seed, customer), man, woman))


def _last_names(seed: int, customer: Ints) -> pa.StringArray:
    last = words.last_names()
    return chosen(last, whole(seed, "last name", customer, len(last)))
