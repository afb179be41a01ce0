"""The bottleneck of a step: where response time goes, what limits throughput, what other read times would give."""
