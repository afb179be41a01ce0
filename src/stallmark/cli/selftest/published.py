"""Make the output of a selftest fit to be published."""

import platform
import re
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from stallmark.engines.base import Engine
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.experiment.target import Target


class Discretion:
    """Takes out of a sentence what names the server, its user or this machine: a selftest is made to be published.

    A user's name may be a word of the language, so it goes where it is quoted, as 'x', "x" or [x]; DOMAIN\\x is none,
    and goes everywhere, as every other name of that domain does.
    """

    def __init__(self, target: Target, engine: Engine, login: str):
        """`login` as the server knows it: the URL may leave it to Windows or Kerberos."""
        if isinstance(engine, MssqlEngine):
            address = engine.address
            host, user, password = address.host, address.user, address.password
        else:
            known = conninfo_to_dict(target.url or "")
            host, user, password = (str(known.get(key) or "") for key in ("host", "user", "password"))
        names = {platform.node(): "<this machine>", str(Path.home()): "~", host: "<host>", password: "<password>"}
        patterns = {rf"(?<!\w){re.escape(name)}(?!\w)": names[name] for name in sorted(filter(None, names), key=len)}
        for name in filter(None, (user, login)):
            patterns[rf"""['"\[]{re.escape(name)}['"\]]"""] = "<user>"
            domain, separator, _ = name.partition("\\")
            if separator:
                patterns[rf"(?<!\w){re.escape(domain)}\\[\w.$-]+"] = "<user>"
        self._patterns = [(re.compile(pattern, re.IGNORECASE), said) for pattern, said in patterns.items()]

    def __call__(self, said: str) -> str:
        for pattern, placeholder in self._patterns:
            said = pattern.sub(placeholder, said)
        return said
