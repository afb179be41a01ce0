"""TLS under TDS: the handshake travels inside PRELOGIN packets, then TDS travels inside TLS."""

import functools
import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa


@functools.cache
def server_context() -> ssl.SSLContext:
    """With a certificate nobody knows: clients must say TrustServerCertificate. Made once in a process."""
    with tempfile.TemporaryDirectory(prefix="stallmark-tds-") as folder:
        path = Path(folder) / "both.pem"
        path.write_bytes(_make_certificate())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
    context.maximum_version = ssl.TLSVersion.TLSv1_2  # newer ones are for TDS 8
    context.options |= ssl.OP_NO_TICKET
    return context


def _make_certificate() -> bytes:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private + certificate.public_bytes(serialization.Encoding.PEM)


class Tunnel:
    """The server's side of TLS, without a socket."""

    def __init__(self) -> None:
        self._arriving, self._leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = server_context().wrap_bio(self._arriving, self._leaving, server_side=True)
        self.ready = False

    def handshake(self, data: bytes) -> bytes:
        """Takes the client's part and gives the server's; `ready` when it is over. Raises ssl.SSLError."""
        self._arriving.write(data)
        try:
            self._tls.do_handshake()
            self.ready = True
        except ssl.SSLWantReadError:
            pass
        return self._leaving.read()

    def decrypt(self, data: bytes) -> bytes:
        self._arriving.write(data)
        plain = bytearray()
        try:
            while part := self._tls.read(1 << 16):
                plain += part
        except (ssl.SSLWantReadError, ssl.SSLZeroReturnError):
            pass
        return bytes(plain)

    def encrypt(self, data: bytes) -> bytes:
        self._tls.write(data)
        return self._leaving.read()
