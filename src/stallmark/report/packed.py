"""Pack text into a page: deflated, and written so that HTML leaves it as it is. `report.js` unpacks it.

Plotly is 4.8 MB. Base64 of it deflated would alone fill 2 MB; seven bits in a character of UTF-8 take an eighth less.
"""

import zlib

import numpy as np

_CHANGED_BY_HTML = {code: code | 0x100 for code in map(ord, "\0\r<")}
"""Characters that HTML does not keep: others stand for them, whose lowest seven bits are the same."""


def packed(text: str) -> str:
    """Return `text` deflated, seven bits in each character."""
    press = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS, 9)
    found = press.compress(text.encode()) + press.flush()
    bits = np.unpackbits(np.frombuffer(found, np.uint8))
    sevens = np.packbits(np.pad(bits, (0, -len(bits) % 7)).reshape(-1, 7), axis=1) >> 1
    return sevens.tobytes().decode("ascii").translate(_CHANGED_BY_HTML)


def unpacked(text: str) -> str:
    """Return what was packed: the inverse of `packed`, as `report.js` has it."""
    sevens = np.frombuffer(bytes(ord(character) & 0x7F for character in text), np.uint8)
    bits = np.unpackbits(sevens.reshape(-1, 1), axis=1)[:, 1:].ravel()
    return zlib.decompress(np.packbits(bits[: len(bits) // 8 * 8]).tobytes(), -zlib.MAX_WBITS).decode()
