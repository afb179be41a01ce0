"""Editions by their number, SERVERPROPERTY('EngineEdition'), where they differ in what can be done."""

EXPRESS = 4
AZURE_DATABASE, MANAGED_INSTANCE = 5, 8
AZURE = (AZURE_DATABASE, MANAGED_INSTANCE)
