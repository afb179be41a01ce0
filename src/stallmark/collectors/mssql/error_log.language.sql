-- The language of the server, if its messages are not in English (1033).
SELECT language.name
  FROM sys.configurations AS option_of_server
  JOIN sys.syslanguages AS language ON language.langid = CAST(option_of_server.value_in_use AS int)
 WHERE option_of_server.name = 'default language' AND language.msglangid <> 1033
