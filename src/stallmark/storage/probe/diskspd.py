"""`diskspd` (Windows): its command line for one step, and its results in XML.

Written by its documentation (github.com/microsoft/diskspd, wiki "Command line and parameters", and the source of its
XmlResultParser); it has never run here.
"""

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from stallmark.errors import StallmarkError
from stallmark.record.probe import Asked, ProbeStep, coarser
from stallmark.storage.probe.fio import SKIP_BYTES, WINDOW_MS, part_bytes


def command(program: str, file: Path, size_bytes: int, asked: Asked, seconds: float, seed: int) -> list[str]:
    """Return the command line of one step. Its time is in whole seconds. In order, every outstanding I/O is a stream
    with a thread of its own.

    -Su: past the system's cache; the hardware's stays on, as with fio's direct=1. -Zr: written data are random
    and incompressible.
    """
    pattern = asked.pattern
    streams = 1 if pattern.random else asked.outstanding
    return [
        program,
        f"-b{pattern.block_bytes}",
        f"-B{SKIP_BYTES}",
        f"-f{size_bytes}",
        f"-d{max(1, round(seconds))}",
        "-W0",
        f"-t{streams}",
        f"-o{asked.outstanding // streams}",
        f"-r{pattern.block_bytes}" if pattern.random else f"-s{pattern.block_bytes}",
        *([f"-T{part_bytes(size_bytes, streams, pattern.block_bytes)}"] if streams > 1 else []),
        "-w0" if pattern.reads else "-w100",
        *([] if pattern.reads else ["-Zr"]),
        f"-z{seed}",
        "-Su",
        "-L",
        f"-D{WINDOW_MS}",
        "-Rxml",
        str(file),
    ]


def parse(asked: Asked, text: str) -> ProbeStep:
    """Return the step from its result in XML. Raise StallmarkError when that is unreadable, or reports no I/O."""
    verb = "Read" if asked.pattern.reads else "Write"
    try:
        span = ElementTree.fromstring(text[text.index("<Results") :]).find("TimeSpan")
        assert span is not None
        seconds = float(_text(span, "TestTimeSeconds"))
        targets = span.findall("Thread/Target")
        ios = sum(int(_text(target, f"{verb}Count")) for target in targets)
        size = sum(int(_text(target, f"{verb}Bytes")) for target in targets)
        if not ios or seconds <= 0:
            raise StallmarkError(
                f"diskspd could not measure {asked.pattern.title} at {asked.outstanding} outstanding (no I/O ended in "
                "time): look at the device, or give it more --seconds."
            )
        mean = float(_text(span, f"Latency/Average{verb}Milliseconds"))
        bins = list(_histogram(span, verb, ios))
        windows = tuple(
            (int(bucket.attrib["SampleMillisecond"]) / 1000, float(bucket.attrib[verb]))
            for bucket in span.findall("Iops/Bucket")
        )
    except (ValueError, AssertionError, KeyError, ElementTree.ParseError):
        raise StallmarkError(
            "diskspd ended without a result that can be read: Stallmark needs diskspd 2.0.20 or later."
        ) from None
    whole = tuple((t, rate) for t, rate in windows if t <= seconds)
    return ProbeStep(asked.pattern, asked.outstanding, seconds, ios, size, mean, coarser(bins), whole)


def _text(parent: ElementTree.Element, name: str) -> str:
    text = parent.findtext(name)
    if text is None:
        raise ValueError(name)
    return text


def _histogram(span: ElementTree.Element, verb: str, ios: int) -> Iterator[tuple[float, int]]:
    """Yield ms and counts from percentiles: one I/O in a hundred lies between the 49th and the 50th."""
    counted = 0
    for bucket in span.findall("Latency/Bucket"):
        upto = round(float(_text(bucket, "Percentile")) / 100 * ios)
        milliseconds = float(_text(bucket, f"{verb}Milliseconds"))
        if upto > counted:  # steps finer than one I/O add none
            yield milliseconds, upto - counted
            counted = upto
