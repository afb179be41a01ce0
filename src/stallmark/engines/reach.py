"""A plain TCP connect to a server: it fails at once, with the reason, where a login would only time out."""

import socket

CONNECT_WITHIN_S = 5  # the SYN is sent three times in it
BROWSER_PORT = 1434
BROWSER_ANSWERS_WITHIN_S = 1
BROWSER_ASKED = 3  # UDP may be lost

_ASK_FOR_INSTANCE, _ANSWER = 4, 5  # MC-SQLR, CLNT_UCAST_INST and SVR_RESP


def why_unreachable(host: str, port: int) -> str | None:
    """Return why a port takes no connection, as a clause without a full stop; None if it does."""
    try:
        socket.create_connection((host, port), CONNECT_WITHIN_S).close()
    except (socket.gaierror, UnicodeError) as error:
        return _unknown(host, error)
    except ConnectionRefusedError:
        return f"port {port} refuses connections"
    except TimeoutError:
        return f"nothing answers on port {port} within {CONNECT_WITHIN_S} s (is a firewall between, or the host off?)"
    except OSError as error:
        return f"port {port} cannot be reached ({error.strerror or error})"
    return None


def why_instance_unreachable(host: str, instance: str) -> str | None:
    """Return why a named instance of SQL Server takes no connection, as `why_unreachable` does. SQL Server Browser
    is asked for its port."""
    try:
        port = _instance_port(host, instance)
    except (socket.gaierror, UnicodeError) as error:
        return _unknown(host, error)
    if port is None:
        return (
            f"SQL Server Browser (UDP port {BROWSER_PORT}) does not tell the TCP port of {instance}: start it there, "
            f"or write {host}:1433 with the instance's port"
        )
    return why_unreachable(host, port)


def _unknown(host: str, error: Exception) -> str:
    why = error.strerror if isinstance(error, OSError) else error
    return f"the host name {host} is unknown here ({why})"


def _instance_port(host: str, instance: str) -> int | None:
    """Return the TCP port that SQL Server Browser gives for an instance; None without an answer that has one."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, BROWSER_PORT, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind, protocol) as browser:
        browser.settimeout(BROWSER_ANSWERS_WITHIN_S)
        for _ in range(BROWSER_ASKED):
            try:
                browser.connect(address)  # so that a refusal is heard
                browser.send(bytes([_ASK_FOR_INSTANCE]) + instance.encode(errors="replace") + b"\0")
                answer = browser.recv(1 << 16)
            except OSError:
                continue
            return _port_in(answer)
    return None


def _port_in(answer: bytes) -> int | None:
    """Return the TCP port in an answer of SQL Server Browser: names and values, each ended by a semicolon."""
    if answer[:1] != bytes([_ANSWER]):
        return None
    words = answer[3:].decode(errors="replace").split(";")
    values = dict(zip(words[::2], words[1::2], strict=False))
    port = values.get("tcp", "")
    return int(port) if port.isdecimal() and 0 < int(port) < 1 << 16 else None
