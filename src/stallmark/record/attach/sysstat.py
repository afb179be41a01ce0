"""The JSON that iostat and sadf share: one host, and an array of samples.

It is read sample by sample, because the whole may be invalid JSON. Older versions begin the array with a comma when the
first report is left out (sysstat issues 163 and 222). A file ends anywhere when its writer was killed (issue 253).
"""

import re
from collections.abc import Iterator
from typing import Any

from stallmark.record.attach.measurements import Wanted
from stallmark.record.text_stream import JsonArray, head_of

HEAD = re.compile(r'\s*\{\s*"sysstat"')
_ARRAY = re.compile(r'"statistics"\s*:\s*\[')
_NODE = re.compile(r'"nodename"\s*:\s*"([^"]*)"')


def host(wanted: Wanted) -> str:
    found = _NODE.search(head_of(wanted.file, 4096))
    return found[1] if found else ""


def samples(wanted: Wanted) -> Iterator[dict[str, Any]]:
    """Yield the complete objects of "statistics"; raise StallmarkError when there is no such array."""
    return iter(JsonArray(wanted.file, _ARRAY))
