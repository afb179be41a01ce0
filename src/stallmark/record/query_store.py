"""The states of Query Store as they are recorded: why it counts nothing, and what makes it count again."""

_ON = "run ALTER DATABASE CURRENT SET QUERY_STORE = ON (OPERATION_MODE = READ_WRITE);"
_CLEAR = "ALTER DATABASE CURRENT SET QUERY_STORE CLEAR ALL; (which forgets all that it has)"

# Bits of readonly_reason. As long as one of the last three is set, the server refuses or takes back READ_WRITE.
_REASONS = {
    1: ("the database is read-only", "run ALTER DATABASE CURRENT SET READ_WRITE;"),
    2: ("the database is in single-user mode", "run ALTER DATABASE CURRENT SET MULTI_USER;"),
    4: ("the database is in emergency mode", "repair the database first"),
    8: ("the database is a secondary replica", "name the primary"),
    65536: (
        "it is full",
        f"enlarge it (ALTER DATABASE CURRENT SET QUERY_STORE (MAX_STORAGE_SIZE_MB = …);) or clear it ({_CLEAR}), and "
        f"then {_ON}",
    ),
    131072: ("it has too many different statements for its memory", f"clear it ({_CLEAR}), and then {_ON}"),
    262144: ("what it has in memory is not on disk yet", "wait: it goes on by itself once that is written"),
    524288: (
        "the database has reached its largest size",
        f"enlarge the database or clear Query Store ({_CLEAR}), and then {_ON}",
    ),
}


def stop_reason(reason: int | None) -> str | None:
    """Return the reason why Query Store is read-only, as a clause, or None if the server gives no known reason."""
    return " and ".join(reason_text for bit, (reason_text, _) in _REASONS.items() if (reason or 0) & bit) or None


def resume_command(state: str, reason: int | None) -> str:
    """Return the command that makes Query Store write again."""
    if remedies := [remedy for bit, (_, remedy) in _REASONS.items() if (reason or 0) & bit]:
        return "; ".join(remedies)
    if state == "ERROR":
        return (
            "run ALTER DATABASE CURRENT SET QUERY_STORE = OFF; EXEC sys.sp_query_store_consistency_check; and then "
            f"{_ON.removeprefix('run ')} or clear it: {_CLEAR}"
        )
    return "name the primary" if state == "READ_CAPTURE_SECONDARY" else _ON
