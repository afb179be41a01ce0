"""What a scenario asks of a SQL Server that cannot give it."""

import pytest
from mssql_server import answering, engine_at, says_it_is
from tds.answers import Rows
from tds.datatypes import INT
from tds.script import Script
from tds.tokens import Column

from stallmark.driver.engines.errors import StallmarkError
from stallmark.scenarios.refusals import refuse_what_cannot_be


def test_more_users_than_a_sql_server_takes_and_its_own_word_for_that(read, tmp_path):
    script = Script(databases=["bank"])
    says_it_is(script)
    script.sql("@@MAX_CONNECTIONS", Rows([Column("most", INT)], [(12,)]))
    plain = ("device=null", "start_cache=as it is", "reset=continue", "variants=[{name: a}]")
    with answering(script) as server:
        engine = engine_at(server)
        refuse_what_cannot_be(read(sets=("users=2", *plain)), engine, tmp_path, None)
        with pytest.raises(StallmarkError, match="ask for fewer, or raise its `user connections`"):
            refuse_what_cannot_be(read(sets=("users=3", *plain)), engine, tmp_path, None)
