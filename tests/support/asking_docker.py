"""`stallmark server`, asked as a user does, and what it says."""

from click.testing import Result

from support.command_line import stallmark
from support.docker_api import Container

IMAGE = "mcr.microsoft.com/mssql/server:2022-latest"


def up(*arguments: object) -> Result:
    return stallmark("server", "up", "--accept-eula", *arguments)


def said(result: Result, code: int = 3) -> str:
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return " ".join(result.output.split())


def first_password_of(made: Container) -> str:
    [password] = [each.partition("=")[2] for each in made.body["Env"] if each.startswith("MSSQL_SA_PASSWORD=")]
    return password
