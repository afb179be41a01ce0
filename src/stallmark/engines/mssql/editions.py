"""Editions and versions by their numbers (SERVERPROPERTY), where they differ in what can be done."""

STANDARD, EXPRESS = 2, 4
AZURE_DATABASE, MANAGED_INSTANCE = 5, 8
AZURE = (AZURE_DATABASE, MANAGED_INSTANCE)

SQL_SERVER_2022, SQL_SERVER_2025 = 16, 17


def limits(edition: int, major: int, name: str) -> str | None:
    """What an edition uses at most, as a sentence; None where only the machine is the limit. `name` holds that of the
    edition: Standard and Web have one number. From "Editions and supported features of SQL Server", 2017 to 2025."""
    newest = major >= SQL_SERVER_2025
    if edition == EXPRESS:
        return f"Express uses 1,410 MB of buffer pool, 4 cores and {50 if newest else 10} GB per database at most."
    if edition != STANDARD:
        return None
    if "Web Edition" in name:
        return "Web uses 64 GB of buffer pool and 16 cores at most."
    return f"Standard uses {256 if newest else 128} GB of buffer pool and {32 if newest else 24} cores at most."
