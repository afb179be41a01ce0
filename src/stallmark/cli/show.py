"""The display of commands that run experiments: the facts of an experiment, as sentences."""

from stallmark.analysis.finding import Finding
from stallmark.experiment.estimate import Estimate
from stallmark.experiment.progress import Show
from stallmark.report.text import experiment, sentence


class ShowInSentences(Show):
    """A display that has words for findings and estimates."""

    def tell(self, finding: Finding) -> None:
        self.say(sentence(finding))

    def expect(self, expected: Estimate) -> None:
        super().expect(expected)
        runs, sooner = len(expected.runs_s), expected.ends_sooner
        many = f"{'at most ' * expected.chooses}{runs} run{'s' * (runs > 1)}"
        whole = experiment.takes(
            expected.total_s, expected.build_s, at_most=sooner, asks=expected.asks, longest_s=expected.longest_s
        )
        self.say(experiment.work_and_duration(many, runs * expected.load_s, whole, at_most=sooner))
