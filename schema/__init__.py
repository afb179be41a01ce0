"""The tables of each database, their physical design, and the order of deployment."""
