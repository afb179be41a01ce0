"""The time that a sizing usually takes."""

from stallmark.experiment.estimate import WRITE_BYTES_PER_S, Estimate, estimate
from stallmark.scenarios.model import AnyScenario
from stallmark.sizing.scenario import SizingScenario


def estimate_sizing(
    scenario: AnyScenario,
    dialect: str = "postgresql",
    *,
    to_build: float = 1.0,
    to_copy: bool = True,
    pace: float = 1.0,
    windows: int = 1,
) -> Estimate | None:
    """Estimate a sizing: the replay of the `windows`, the loads alone, two trials, and the ceiling. Return None for
    other scenarios."""
    if not isinstance(scenario, SizingScenario):
        return None
    assert scenario.search
    rate = dict.fromkeys(scenario.loads, 1.0)
    parts = [scenario.calibration(None), *2 * [scenario.trial(rate, None)], scenario.ceiling(rate, None)]
    built = estimate(parts[0], dialect, to_build=to_build, to_copy=to_copy, pace=pace).build_s
    runs = [run for part in parts for run in estimate(part, dialect, to_build=0.0, to_copy=False, pace=pace).runs_s]
    choice = scenario.replay
    files_s = pace * (choice.size + choice.log_size) / WRITE_BYTES_PER_S
    played_s = scenario.search.spec().usual_levels * windows * min(choice.play, choice.window)
    return Estimate(build_s=built, runs_s=(files_s + played_s, *runs))
