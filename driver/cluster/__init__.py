"""A load from several load machines: Locust's master and workers."""
