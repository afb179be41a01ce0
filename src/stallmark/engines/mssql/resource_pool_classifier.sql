-- Which group a login goes to: the users of a load to ours, everybody else where they were.
CREATE FUNCTION dbo.stallmark_classifier() RETURNS sysname WITH SCHEMABINDING AS
BEGIN
    RETURN CASE WHEN APP_NAME() LIKE N'stallmark-user%' THEN N'stallmark' ELSE N'default' END;
END
