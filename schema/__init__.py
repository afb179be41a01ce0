"""Which tables exist: one module per database, and the order of deployment."""
