"""The emulated array's commands: options become an array, arrays become words."""

import json
from dataclasses import replace

import pytest
from support.command_line import stallmark

from stallmark.errors import StallmarkError
from stallmark.lab.block_device import ArrayWork
from stallmark.lab.command import in_words, long_way, model_of, sentence, sentences
from stallmark.storage.block_devices import ArrayFacts
from stallmark.storage.emulator import DISK_SHELF, ArrayModel, FlashCache, FlashTier
from stallmark.storage.emulator.layout import ArrayCounters

GIB = 1 << 30
TIERED = replace(DISK_SHELF, tier=FlashTier(GIB))
NOTHING = dict.fromkeys(["spindles", "rpm", "seek_ms", "mb_per_s", "sync_ms", "cache", "tier"])


@pytest.mark.parametrize(
    ("options", "base", "no_flash", "expected"),
    [
        ({}, DISK_SHELF, False, DISK_SHELF),
        ({"spindles": 3, "cache": GIB}, DISK_SHELF, False, replace(DISK_SHELF, spindles=3, cache=FlashCache(GIB))),
        ({"tier": GIB}, replace(DISK_SHELF, cache=FlashCache(GIB)), False, TIERED),
        ({"rpm": 7200.0}, TIERED, False, replace(TIERED, rpm=7200)),
        ({}, TIERED, True, DISK_SHELF),
    ],
)  # fmt: skip
def test_options_change_what_they_name(options, base: ArrayModel, no_flash: bool, expected) -> None:
    assert model_of(NOTHING | options, base, no_flash=no_flash) == expected


@pytest.mark.parametrize(
    ("options", "no_flash", "sentence"),
    [
        ({"cache": GIB, "tier": GIB}, False, "give one of"),
        ({"cache": GIB}, True, "give one of"),
        ({"spindles": 0}, False, "spindles must be a whole number"),
        ({"cache": 1}, False, r"cache\.size must be"),
    ],
)
def test_an_array_that_cannot_be_is_refused(options, no_flash: bool, sentence: str) -> None:
    with pytest.raises(StallmarkError, match=sentence):
        model_of(NOTHING | options, no_flash=no_flash)


def test_it_is_called_emulated_wherever_it_is_named() -> None:
    facts = ArrayFacts(name="one", size=GIB, model=replace(DISK_SHELF, cache=FlashCache(GIB)), loop="/dev/loop3")
    assert sentence(facts, None) == (
        "one (EMULATED), /dev/loop3: 12 spindles of 10,000 rpm, 4 ms a seek, 150 MB/s each, a flash "
        "cache of 1\u00a0GiB."
    )
    assert "destroy one` removes it" in sentence(facts, "its nbdkit is gone")
    assert "1 spindle of 8 ms a read" in in_words(ArrayModel(1, 8, 8, 8, 100))


@pytest.mark.parametrize(("late", "words"), [(5, "have."), (6, "have: this machine was too slow for it.")])
def test_what_the_way_there_takes_is_said_with_what_was_done(late: int, words: str) -> None:
    said = list(sentences(ArrayWork(ArrayCounters(100, 0, 5 * 10**8, *[0] * 6, late=late), 0.254, 5.4)))
    assert said == [
        "Since it was created, or last changed:",
        "100 reads, 5.00 ms each.",
        "0 writes.",
        "These times include 0.25 ms for the path to the array; the array waits that much less.",
        f"{late} of 100 I/Os took longer than the array would {words}",
    ]


@pytest.mark.parametrize(("waited_ms", "said"), [(None, False), (5.49, False), (5.51, True)])
def test_who_waits_for_longer_than_the_array_says_is_told(waited_ms: float | None, said: bool) -> None:
    text = " ".join(sentences(ArrayWork(ArrayCounters(100, 0, 5 * 10**8, *[0] * 7), 0.25, waited_ms)))
    assert ("At the block device a read took 5.51 ms: the path took longer than measured" in text) == said


def test_a_way_longer_than_a_flash_read_is_warned_of() -> None:
    assert long_way(0.25) is None
    assert "takes 1.90 ms, longer than a flash read: was this machine busy?" in str(long_way(1.9))


def test_no_lab_is_no_error(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("STALLMARK_HOME", str(tmp_path))
    listed = stallmark("array", "list", "--json")
    assert (listed.exit_code, json.loads(listed.output)) == (0, [])
    assert "not a size" in stallmark("array", "create", "one", "--size", "big").output
    gone = stallmark("array", "status", "one")
    assert (gone.exit_code, gone.output) == (
        3,
        "Error: There is no emulated array one: `stallmark array list` shows those that are there.\n",
    )


def test_a_lab_that_cannot_be_read_is_not_in_the_way_of_others(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("STALLMARK_HOME", str(tmp_path))
    facts = ArrayFacts(name="two", size=GIB, model=DISK_SHELF)
    for name, text in [("one", "{}"), ("two", facts.model_dump_json())]:
        folder = tmp_path / "arrays" / name
        folder.mkdir(parents=True)
        (folder / "array.json").write_text(text)
    listed = stallmark("array", "list", "--json")
    one, two = json.loads(listed.output)
    assert (one["name"], one["array"]) == ("one", None) and "`stallmark array destroy one`" in one["broken"]
    assert (two["size_bytes"], two["broken"]) == (GIB, "it was never completed")
    words = " ".join(stallmark("array", "list").output.split())
    assert "one (EMULATED), broken: " in words and "two (EMULATED), broken: it was never" in words
