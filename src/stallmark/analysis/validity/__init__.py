"""Conditions under which a step's figures must not be used, and the service level."""
