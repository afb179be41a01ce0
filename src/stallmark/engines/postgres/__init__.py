"""PostgreSQL: any server by URL, and the embedded one."""

MINIMUM_POOL_BYTES = 8 * 1024**2
"""30 users and more pin buffers at once; below this PostgreSQL refuses calls."""
