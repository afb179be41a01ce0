"""PostgreSQL: any server by URL, and the embedded one."""
