"""`report --fail-if "enough above …"`: what is understood, and when it fails."""

import pytest

from stallmark.analysis.finding import caution, info
from stallmark.analysis.pool_curve.findings import CurveKind
from stallmark.cli.enough_rule import EnoughRule
from stallmark.errors import StallmarkError

GIB = 1024**3


@pytest.mark.parametrize("text", ["enough above 4GiB", "  Enough  above 4 GiB "])
def test_it_is_understood(text):
    assert EnoughRule.parse(text).most_bytes == 4 * GIB


@pytest.mark.parametrize("text", ["", "worse", "enough", "enough above", "enough above 4", "enough above lots"])
def test_anything_else_is_refused(text):
    with pytest.raises(StallmarkError, match="--fail-if"):
        EnoughRule.parse(text)


def test_it_fails_above_the_limit_and_where_nothing_is_shown():
    rule = EnoughRule.parse("enough above 4GiB")
    assert rule.reason([info(CurveKind.ENOUGH, pool_bytes=4 * GIB)]) is None
    assert "5 GiB" in rule.reason([info(CurveKind.ENOUGH, pool_bytes=5 * GIB)]).replace("\u00a0", " ")
    for shown in ([], [caution(CurveKind.MAY_BE_ENOUGH, pool_bytes=GIB)], [info(CurveKind.STILL_BUYS, pool_bytes=GIB)]):
        assert rule.reason(shown)
