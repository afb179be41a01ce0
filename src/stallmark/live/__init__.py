"""The live view: an experiment's page while it runs, and its metrics for Prometheus. It reads records, as all else."""
