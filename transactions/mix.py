"""The mix of a scenario as cards of the shuffled deck: which transactions the users start, and how often."""

from collections.abc import Mapping
from fractions import Fraction
from math import floor, gcd, lcm, sqrt
from typing import TypeVar

from stallmark.errors import StallmarkError
from stallmark.transactions.workload import Workload

MOST_CARDS = 1_000
"""The mix is met exactly only where a deck was dealt whole: a larger one takes too long."""

READ_SHARE = "read_share"

FEWEST = 0.1  # of a workload's background_sessions, for the timers where nothing follows

Kind = TypeVar("Kind")
Mix = Mapping[str, float]


def deck_of(workload: Workload, mix: Mix | None) -> dict[str, int]:
    """Return the cards by the transaction's name; without a mix those of the workload.

    A mix has weights by name, and what it does not name is not started. Or it says which share (`read_share`, 0 to 1)
    of all that users start only reads. The transactions that read then keep their proportions, and so do those that
    write. Raise StallmarkError, a sentence without its full stop, for a mix that cannot be.
    """
    own = {kind.name: cards for kind, cards in workload.users.deck.items()}
    if not own:
        raise StallmarkError(
            f"users start no transactions of {workload.name}, whose queries are executed by streams: say queries in "
            "place of users, warm_up and measure"
        )
    if mix is None:
        return own
    weights = _by_read_share(workload, mix) if READ_SHARE in mix else _by_name(workload, mix)
    return dict.fromkeys(own, 0) | weights


def background_per_user(workload: Workload, deck: Mapping[str, int]) -> float:
    """Return the background sessions for each virtual user.

    With the workload's own deck they are as many as it says. The more users start of what other transactions follow
    from, the more of these come. The sessions do not grow in proportion: what is followed takes longer than what users
    start otherwise, so fewer start in all. The square root lies halfway.
    """
    own = _following(workload, deck_of(workload, None))
    if not own:
        return workload.background.sessions_per_user
    more = sqrt(_following(workload, deck) / own)
    return workload.background.sessions_per_user * max(more, FEWEST)


def _following(workload: Workload, deck: Mapping[str, int]) -> float:
    """Return how many transactions follow, on average, for each that users start."""
    return sum(deck[of.name] * each for of, each in workload.background.followers.values()) / sum(deck.values())


def apportioned(weights: Mapping[Kind, Fraction], cards: int, least: Mapping[Kind, int]) -> dict[Kind, int]:
    """Deal so many cards in these proportions, by the largest remainder. Each gets `least` at least; these must add up
    to no more than `cards`."""
    total = sum(weights.values())
    quotas = {kind: weight / total * cards for kind, weight in weights.items()}
    if few := {kind: least[kind] for kind, quota in quotas.items() if quota < least[kind]}:
        others = {kind: weight for kind, weight in weights.items() if kind not in few}
        return few | (apportioned(others, cards - sum(few.values()), least) if others else {})
    dealt = {kind: floor(quota) for kind, quota in quotas.items()}
    by_remainder = sorted(quotas, key=lambda kind: dealt[kind] - quotas[kind])
    for kind in by_remainder[: cards - sum(dealt.values())]:
        dealt[kind] += 1
    return dealt


def _by_name(workload: Workload, mix: Mix) -> dict[str, int]:
    names = [kind.name for kind in workload.users.deck]
    for name, weight in mix.items():
        if name not in names:
            others = [kind.name for kind in workload.transactions]
            what = "is not started by users" if name in others else f"is no transaction of {workload.name}"
            raise StallmarkError(f"{name} {what}: there are {', '.join(names)}, or {READ_SHARE} alone")
        if weight <= 0:
            raise StallmarkError(
                f"{name} has the weight {weight:g}: give it more than 0, or leave it out to have none started"
            )
    weights = {name: _exact(weight) for name, weight in mix.items()}
    return _exactly(weights) or apportioned(weights, MOST_CARDS, dict.fromkeys(weights, 1))


def _by_read_share(workload: Workload, mix: Mix) -> dict[str, int]:
    if len(mix) > 1:
        raise StallmarkError(f"{READ_SHARE} stands alone: remove it, or the weights beside it")
    share = _exact(mix[READ_SHARE])
    if not 0 <= share <= 1:
        raise StallmarkError(f"{READ_SHARE} is 0 to 1 (0.9: nine of ten only read), not {mix[READ_SHARE]:g}")
    groups: dict[str, dict[str, Fraction]] = {}
    shares = {does: part for does, part in (("reads only", share), ("writes", 1 - share)) if part}
    for does in shares:
        groups[does] = {
            kind.name: Fraction(cards)
            for kind, cards in workload.users.deck.items()
            if kind.reads_only == (does == "reads only")
        }
        if not groups[does]:
            raise StallmarkError(
                f"{READ_SHARE} cannot be {mix[READ_SHARE]:g}: no transaction of {workload.name} {does}"
            )
    weights = {
        name: shares[does] * weight / sum(group.values())
        for does, group in groups.items()
        for name, weight in group.items()
    }
    if exact := _exactly(weights):
        return exact
    # First how many read, so that rounding each type by itself does not add up to another share.
    sizes = apportioned(shares, MOST_CARDS, {does: len(group) for does, group in groups.items()})
    return {
        name: cards
        for does, group in groups.items()
        for name, cards in apportioned(group, sizes[does], dict.fromkeys(group, 1)).items()
    }


def _exact(weight: float) -> Fraction:
    return Fraction(str(weight))  # as it is written: 0.1 is a tenth


def _exactly(weights: Mapping[Kind, Fraction]) -> dict[Kind, int] | None:
    """Return the smallest deck that has exactly these proportions; None when it is too large."""
    unit = lcm(*(weight.denominator for weight in weights.values()))
    whole = {kind: int(weight * unit) for kind, weight in weights.items()}
    cards = {kind: count // gcd(*whole.values()) for kind, count in whole.items()}
    return cards if sum(cards.values()) <= MOST_CARDS else None
