"""The brokerage of a wanted size: which customers and days it is made of."""

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stallmark.errors import StallmarkError
from stallmark.loaders import loader_for
from stallmark.loaders.brokerage import LOADER
from stallmark.loaders.brokerage.counts import LEAST_DAYS, MOST_CUSTOMERS, MOST_DAYS, estimated_bytes, split
from stallmark.loaders.load import expected_bytes
from stallmark.schema.brokerage import UNIT
from stallmark.transactions import find_workload

pytestmark = pytest.mark.thorough

SMALLEST, LARGEST = estimated_bytes(UNIT, LEAST_DAYS), estimated_bytes(MOST_CUSTOMERS, MOST_DAYS)
SIZES = st.one_of(st.integers(SMALLEST, LARGEST), st.integers(SMALLEST, 100 * 10**9))


@given(SIZES)
def test_it_is_of_that_size(wanted):
    customers, days = split(wanted)
    assert customers % UNIT == 0 and UNIT <= customers <= MOST_CUSTOMERS and LEAST_DAYS <= days <= MOST_DAYS
    assert LOADER.scale({"customers": customers, "days": days})  # which it may be
    assert customers == UNIT or estimated_bytes(customers - UNIT, MOST_DAYS) < wanted, "no more customers than it takes"
    assume(LEAST_DAYS < days < MOST_DAYS)
    assert estimated_bytes(customers, days) == pytest.approx(wanted, rel=0.05)


@given(SIZES, SIZES)
def test_more_bytes_are_never_fewer_customers_or_less_data(one, other):
    small, large = map(split, sorted((one, other)))
    assert small[0] <= large[0]
    assert estimated_bytes(*small) <= estimated_bytes(*large)
    if small[0] == large[0]:
        assert small[1] <= large[1]


@given(
    st.integers(1, 5).map(lambda units: units * UNIT), st.integers(1, 10 * MOST_DAYS).map(lambda tenths: tenths / 10)
)
def test_the_estimate_is_that_of_every_build(customers, days):
    scale = {"customers": customers, "days": days}
    assert estimated_bytes(customers, days) == expected_bytes("postgresql", find_workload("brokerage"), scale)


@pytest.mark.parametrize("impossible", [0, SMALLEST - 1, LARGEST + 1, 10**18])
def test_what_cannot_be_is_refused_with_what_can(impossible):
    with pytest.raises(StallmarkError, match=r"cannot be: it takes from [\d.]+\WMiB to \d+\WTiB\.$"):
        split(impossible)


def test_a_size_stands_for_customers_and_days():
    scale = LOADER.scale({"size": 20 * 10**9, "compressibility": 3})
    assert scale.keys() == {"customers", "days", "compressibility"} and scale["compressibility"] == 3
    assert (scale["customers"], scale["days"]) == split(20 * 10**9)
    assert LOADER.scale(scale) == scale
    together = loader_for("bank+brokerage").scale({"branches": 1, "size": 20 * 10**9})
    assert together == {"branches": 1, **LOADER.scale({"size": 20 * 10**9})}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"size": 10**10, "days": 1}, "leave out `size` or `days`"),
        ({"size": 10**10, "customers": 1000}, "leave out `size` or `customers`"),
        ({"size": 1e10}, "write `size: 20GB`"),
        ({"size": True}, "write `size: 20GB`"),
        ({"size": 20}, "cannot be"),
    ],
)
def test_a_size_that_says_two_things_is_refused(given: dict[str, Any], words: str):
    with pytest.raises(StallmarkError, match=words):
        LOADER.scale(given)


def test_others_have_no_size():
    for workload in ("bank", "mail", "warehouse", "bank+mail"):
        with pytest.raises(StallmarkError, match="size"):
            loader_for(workload).scale({"size": 10**10})
