"""Causes: where response time goes, why one variant differs from another, and what other read times would give."""
