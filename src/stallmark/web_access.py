"""Access to the pages of a run: where they listen, whom they answer, and whose word they take to change the run.

A page of another site could have the browser ask, by a name that resolves to this machine (DNS rebinding), by a form or
by a script. So the name that was asked for must be one of this machine, and a page that asks must be ours. To see the
experiment needs no more on this machine, elsewhere the token of the address that was printed. To stop it, or to change
its load, needs that token everywhere: others may be logged in to this machine.
"""

import errno
import hmac
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from stallmark.errors import StallmarkError

if TYPE_CHECKING:
    from flask import Flask
    from werkzeug.wrappers import Response

HERE = ("localhost", "127.0.0.1", "::1")

HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
"""The headers of every answer. Each page adds the Content-Security-Policy that its own scripts allow."""


@dataclass(frozen=True)
class PageAddress:
    """The address that the page is served at."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "PageAddress":
        """Parse PORT or HOST:PORT; raise ValueError."""
        # From the right, as an IPv6 address has colons of its own.
        host, _, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]") or HERE[1]
        if not port.isdecimal() or not 1 <= int(port) <= 65535:
            raise ValueError(f"{text!r} is not a port: write 8089, or an address of this machine too, 0.0.0.0:8089")
        return cls(host, int(port))

    @property
    def is_here(self) -> bool:
        """Return True if only this machine can reach the address."""
        return self.host in HERE

    @property
    def everywhere(self) -> bool:
        return self.host in ("0.0.0.0", "::")

    @property
    def url(self) -> str:
        """Return the URL to open; of all addresses of this machine the one by its name."""
        host = socket.gethostname() if self.everywhere else self.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/"


@dataclass(frozen=True)
class Access:
    address: PageAddress
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)

    @property
    def url(self) -> str:
        """Return the URL to open, with the token, which the browser then keeps in a cookie."""
        return f"{self.address.url}?token={self.token}"

    @property
    def cookie(self) -> str:
        """Return the name of the cookie; pages on several ports of a machine share its name, and so its cookies."""
        return f"stallmark-{self.address.port}"

    def guard(self, app: "Flask") -> None:
        """Have an application answer those alone who may see it."""
        from flask import abort, redirect, request

        @app.before_request
        def admit() -> "Response | None":
            if not self.knows_host(request.host) or not self.is_own(dict(request.headers), request.host):
                abort(403)
            if self.fits(request.args.get("token")):
                # The cookie takes the token's place, and the redirect takes it out of the address bar.
                answer = redirect("/")
                answer.set_cookie(self.cookie, self.token, httponly=True, samesite="Strict")
                return answer
            if not self.may_see(request.cookies.get(self.cookie), request.headers.get("Authorization")):
                abort(401)
            return None

    def knows_host(self, asked: str) -> bool:
        """Return True if the `Host` of a request is this machine, by address or by one of its own names. The port is
        not compared, as a tunnel may have another.
        """
        try:
            name = urlsplit(f"//{asked}").hostname or ""
        except ValueError:
            return False
        if self.address.is_here:
            return name in HERE
        # DNS rebinding needs a name, so that any address is as good as ours.
        return _is_address(name) or name in (*HERE, self.address.host.lower(), *_host_names())

    def may_see(self, cookie: str | None, authorization: str | None) -> bool:
        """Return True if a request may read: from this machine always, from others with the token."""
        bearer = (authorization or "").removeprefix("Bearer ")
        return self.address.is_here or self.fits(cookie) or self.fits(bearer)

    def is_own(self, headers: Mapping[str, str], host: str) -> bool:
        """Return True if the request comes from our own page, a program or a followed link, not from another site's
        page. Browsers report the origin (Origin, Fetch Metadata).
        """
        # A program such as curl sends neither header, and counts as no other site.
        origin, site = headers.get("Origin"), headers.get("Sec-Fetch-Site", "none")
        if origin is not None and origin.partition("://")[2] != host:
            return False
        return site in ("none", "same-origin") or headers.get("Sec-Fetch-Mode") == "navigate"

    def fits(self, token: str | None) -> bool:
        # Takes as long for a wrong token as for the right one, so that no timing shows how much of a guess fits.
        return hmac.compare_digest((token or "").encode(), self.token.encode())


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _host_names() -> tuple[str, ...]:
    return socket.gethostname().lower(), socket.getfqdn().lower()


def refuse_port_in_use(host: str, port: int, purpose: str) -> None:
    """Raise StallmarkError for a port of this machine that is not free, and for an address of another machine."""
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        if error.errno in (errno.EADDRNOTAVAIL, socket.EAI_NONAME, socket.EAI_AGAIN):
            raise StallmarkError(
                f"{host} is not an address of this machine, for {purpose}: name one of its own, or 0.0.0.0 for all."
            ) from None
        raise StallmarkError(f"Port {port} is not free for {purpose} ({error.strerror}): name another.") from None
