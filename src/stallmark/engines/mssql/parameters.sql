-- The parameters of a procedure in their order, by the types they are declared with.
SELECT TYPE_NAME(p.system_type_id) AS type_name, CAST(p.max_length AS integer) AS bytes,
       CAST(p.[precision] AS integer) AS digits, CAST(p.scale AS integer) AS decimals
  FROM sys.parameters AS p
 WHERE p.object_id = OBJECT_ID(N'{procedure}')
   AND p.parameter_id > 0
 ORDER BY p.parameter_id
