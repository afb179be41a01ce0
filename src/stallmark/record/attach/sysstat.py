"""The JSON that iostat and sadf share: one host, and an array of samples.

It is read sample by sample, because the whole may be invalid JSON. Older versions begin the array with a comma when the
first report is left out (sysstat issues 163 and 222). A file ends anywhere when its writer was killed (issue 253).
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from stallmark.errors import StallmarkError
from stallmark.record.attach.measurements import Wanted

HEAD = re.compile(r'\s*\{\s*"sysstat"')
_ARRAY = re.compile(r'"statistics"\s*:\s*\[')
_NODE = re.compile(r'"nodename"\s*:\s*"([^"]*)"')
_GAP = re.compile(r"[\s,]*")


def host(text: str) -> str:
    found = _NODE.search(text, 0, 4096)
    return found[1] if found else ""


def samples(text: str, wanted: Wanted) -> Iterator[dict[str, Any]]:
    """Yield the complete objects of "statistics"; raise StallmarkError when there is no such array."""
    array = _ARRAY.search(text)
    if array is None:
        raise StallmarkError(f"{wanted.file} cannot be read as sysstat's JSON: it has no statistics.")
    decoder = json.JSONDecoder()
    place = array.end()
    while True:
        place = _GAP.match(text, place).end()  # type: ignore[union-attr]
        try:
            sample, place = decoder.raw_decode(text, place)
        except json.JSONDecodeError:
            return  # the bracket that ends the array, or the end of a file that was cut
        if isinstance(sample, dict):
            yield sample
