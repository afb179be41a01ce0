"""The sentences about how long an experiment takes."""

from stallmark import format


def takes(
    total_s: float, build_s: float, *, at_most: bool = False, asks: bool = False, longest_s: float | None = None
) -> str:
    """Return how long an experiment takes: "about 4 minutes, about 20 seconds of it to load the database"."""
    said = f"{'at most ' * at_most}about {format.roughly(total_s)}"
    if longest_s is not None:
        said += f" (at most {format.roughly(longest_s)}, where levels contradict each other)"
    if build_s >= 1:
        said += f", about {format.roughly(build_s)} of it to load the database"
    return said + (", and what the operator is asked to do" if asks else "")


def before_the_load(what: str, load_s: float, takes: str, *, at_most: bool = False) -> str:
    """Return what follows and how long it takes: "4 runs, 2 minutes of load in all; it takes about 3 minutes"."""
    load = f", {'at most ' * at_most}{format.duration(load_s)} of load in all" if load_s else ""
    return f"{what}{load}; it takes {takes}"


def left(left_s: float, *, refined: bool) -> str:
    """Return the time left, and whether it goes by the experiment's own runs."""
    by = "going by the runs that are whole" if refined else "as estimated before a run is whole"
    return f"about {format.roughly(left_s)} left, {by}" if left_s >= 1 else f"it should have ended by now, {by}"
