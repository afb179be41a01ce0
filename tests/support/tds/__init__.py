"""A responder that speaks TDS 7.4 as SQL Server does and answers what a script says. For tests and benchmarks only.

Source of the formats: Microsoft, [MS-TDS] Tabular Data Stream Protocol.
"""
