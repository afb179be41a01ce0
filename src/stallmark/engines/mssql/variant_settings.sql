-- [resource_pool_classifier]
-- Which group a login goes to: the users of a load to ours, everybody else where they were.
CREATE FUNCTION dbo.stallmark_classifier() RETURNS sysname WITH SCHEMABINDING AS
BEGIN
    RETURN CASE WHEN APP_NAME() LIKE N'stallmark-user%' THEN N'stallmark' ELSE N'default' END;
END

-- [resource_pool_drop]
-- Whatever of it is there: a run may have been killed while it made it.
ALTER RESOURCE GOVERNOR WITH (CLASSIFIER_FUNCTION = NULL);
ALTER RESOURCE GOVERNOR RECONFIGURE;
IF EXISTS (SELECT name FROM sys.resource_governor_workload_groups WHERE name = N'stallmark')
    DROP WORKLOAD GROUP stallmark;
IF EXISTS (SELECT name FROM sys.resource_governor_resource_pools WHERE name = N'stallmark')
    DROP RESOURCE POOL stallmark;
ALTER RESOURCE GOVERNOR RECONFIGURE;
DROP FUNCTION IF EXISTS dbo.stallmark_classifier;
