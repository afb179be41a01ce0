"""How a client introduces itself: PRELOGIN and LOGIN7 (MS-TDS 2.2.6.4, 2.2.6.5)."""

import hmac
import struct
from dataclasses import dataclass, field

from support.tds.packets import Malformed
from support.tds.tokens import VERSION

VERSION_OPTION, ENCRYPTION_OPTION, INSTANCE_OPTION, THREAD_OPTION, MARS_OPTION = range(5)
_FEDERATED_OPTION = 6
_TERMINATOR = 0xFF

ENCRYPT_OFF, ENCRYPT_ON, ENCRYPT_NOT_SUPPORTED, ENCRYPT_REQUIRED = range(4)

UTF8_FEATURE = 0x0A

_PASSWORD, _EXTENSION = 2, 5  # among the fields of LOGIN7


@dataclass(frozen=True)
class Login:
    """The content of LOGIN7. The password can be compared; no `repr` shows it."""

    user: str
    database: str
    application: str
    host: str
    server: str
    library: str
    packet_size: int
    features: dict[int, bytes]
    """Features that the client wishes to use, by FeatureId."""
    _password: str = field(repr=False, compare=False)
    encrypted: bool = False

    def has_password(self, password: str) -> bool:
        return hmac.compare_digest(self._password.encode(), password.encode())


def read_prelogin(body: bytes) -> dict[int, bytes]:
    """Options by number."""
    options = {}
    position = 0
    try:
        while body[position] != _TERMINATOR:
            option, start, size = struct.unpack_from(">BHH", body, position)
            options[option] = body[start : start + size]
            position += 5
    except (IndexError, struct.error) as error:
        raise Malformed("PRELOGIN without an end") from error
    return options


def write_prelogin(options: dict[int, bytes]) -> bytes:
    start = 5 * len(options) + 1
    heads, data = bytearray(), bytearray()
    for option, value in options.items():
        heads += struct.pack(">BHH", option, start + len(data), len(value))
        data += value
    return bytes(heads + bytes([_TERMINATOR]) + data)


def answer_prelogin(asked: dict[int, bytes], encryption: int) -> bytes:
    options = {
        VERSION_OPTION: VERSION + b"\0\0",
        ENCRYPTION_OPTION: bytes([encryption]),
        INSTANCE_OPTION: b"\0",
        THREAD_OPTION: b"",
        MARS_OPTION: b"\0",
    }
    if _FEDERATED_OPTION in asked:
        options[_FEDERATED_OPTION] = b"\0"
    return write_prelogin(options)


def read_login(body: bytes) -> Login:
    try:
        _, _, packet_size = struct.unpack_from("<III", body)
        flags3 = body[27]

        def field_at(place: int) -> bytes:
            start, characters = struct.unpack_from("<HH", body, place)
            return body[start : start + 2 * characters]

        fields = [field_at(36 + 4 * number) for number in range(9)]
        features = {}
        if flags3 & 0x10:
            (place,) = struct.unpack_from("<H", body, 36 + 4 * _EXTENSION)
            features = _read_features(body, struct.unpack_from("<I", body, place)[0])
    except (IndexError, struct.error) as error:
        raise Malformed("LOGIN7 too short") from error
    fields[_PASSWORD] = bytes(unscrambled(byte) for byte in fields[_PASSWORD])
    fields[_EXTENSION] = b""
    host, user, password, application, server, _, library, _, database = (it.decode("utf-16-le") for it in fields)
    return Login(user, database, application, host, server, library, packet_size, features, password)


def unscrambled(byte: int) -> int:
    """Passwords travel with each byte's halves exchanged and some bits turned over."""
    byte ^= 0xA5
    return (byte << 4 | byte >> 4) & 0xFF


def _read_features(body: bytes, place: int) -> dict[int, bytes]:
    features = {}
    while body[place] != _TERMINATOR:
        key, size = struct.unpack_from("<BI", body, place)
        features[key] = body[place + 5 : place + 5 + size]
        place += 5 + size
    return features
