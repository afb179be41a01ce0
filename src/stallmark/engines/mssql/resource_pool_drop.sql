-- Whatever of it is there: a run may have been killed while it made it.
ALTER RESOURCE GOVERNOR WITH (CLASSIFIER_FUNCTION = NULL);
ALTER RESOURCE GOVERNOR RECONFIGURE;
IF EXISTS (SELECT name FROM sys.resource_governor_workload_groups WHERE name = N'stallmark')
    DROP WORKLOAD GROUP stallmark;
IF EXISTS (SELECT name FROM sys.resource_governor_resource_pools WHERE name = N'stallmark')
    DROP RESOURCE POOL stallmark;
ALTER RESOURCE GOVERNOR RECONFIGURE;
DROP FUNCTION IF EXISTS dbo.stallmark_classifier;
