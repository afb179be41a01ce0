-- The line in front of a message has its number in every language: "Error: 823, Severity: 24, State: 2.".
SET NOCOUNT ON;
EXEC sys.sp_readerrorlog 0, 1, N'{words}';
