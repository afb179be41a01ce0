-- What the server changes by itself: plans that it forces.
SELECT t.name, t.actual_state_desc AS value
  FROM sys.database_automatic_tuning_options AS t
