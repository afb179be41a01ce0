"""The ceiling of a load: the highest level at which the service level held, of each variant."""
