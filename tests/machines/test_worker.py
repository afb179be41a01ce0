"""The process that joins a load of several machines, and what its parent may say to it when."""

from support.waiting import TIMEOUT_S

from stallmark.driver.channel import start_child
from stallmark.driver.messages import Finished, Quit


def test_one_that_is_stopped_before_it_has_an_order_ends_without_a_word(capfd):
    process, channel = start_child("stallmark.machines.worker")
    try:
        channel.send(Quit())
        assert channel.receive() == Finished()
        assert process.wait(TIMEOUT_S) == 0
    finally:
        channel.close()
        process.kill()
        process.wait()
    assert capfd.readouterr().err == ""
