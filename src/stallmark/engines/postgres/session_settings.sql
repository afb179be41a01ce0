-- The settings that end sessions, as they are for this one, and where their values come from.
SELECT name, setting, coalesce(unit, '') AS unit, source FROM pg_settings WHERE name = ANY(%s)
