"""The name and the version of several workloads on one server."""

from hypothesis import given
from hypothesis import strategies as st

from stallmark.schema.several import version_of, versions_in


@given(st.lists(st.integers(0, 99), min_size=1, max_size=4))
def test_the_one_version_of_several_tells_that_of_each(versions):
    assert versions_in(version_of(versions), len(versions)) == versions
