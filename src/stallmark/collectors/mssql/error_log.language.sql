-- The default language of logins, if its messages are not in English (1033). That of the log is not told: it is the
-- language in which the server was installed.
SELECT language.name
  FROM sys.configurations AS option_of_server
  JOIN sys.syslanguages AS language ON language.langid = CAST(option_of_server.value_in_use AS int)
 WHERE option_of_server.name = 'default language' AND language.msglangid <> 1033
