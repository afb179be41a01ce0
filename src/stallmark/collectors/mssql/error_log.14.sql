-- The current log, lines that hold "offset": in English the messages of 823, 824, 825 and 833 all do.
SET NOCOUNT ON;
EXEC sys.sp_readerrorlog 0, 1, N'offset';
