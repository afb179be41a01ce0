"""A TCP proxy that misbehaves as networks do: it stalls, loses, resets and delays, and can lead to another server."""

import selectors
import socket
import struct
import threading
import time
from collections import deque

_RESET = struct.pack("ii", 1, 0)


class Proxy:
    """A port that leads to `target`. `mode` says how: "pass", "stall" (nothing moves, nothing is lost), "lose" (what
    comes in is thrown away, and new connections hear nothing), or "refuse" new ones. `delay_s` is added each way."""

    def __init__(self, target: int):
        self.target = target
        self.mode = "pass"
        self.delay_s = 0.0
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._door.getsockname()[1]
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._cut: set[tuple[socket.socket, socket.socket]] = set()
        self._closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def reset(self) -> None:
        """Cut every connection, as a firewall that has forgotten them does."""
        cut = set(self._pairs)
        self._cut |= cut
        while cut & self._pairs:
            time.sleep(0.005)

    def close(self) -> None:
        self._closed = True
        self._door.close()
        self.reset()

    def _accept(self) -> None:
        while not self._closed:
            try:
                near = self._door.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        while self.mode in ("stall", "lose") and not self._closed:
            time.sleep(0.02)
        try:
            if self.mode == "refuse":
                raise ConnectionRefusedError
            far = socket.create_connection(("127.0.0.1", self.target))
        except OSError:
            near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            near.close()
            return
        pair = near, far
        self._pairs.add(pair)
        for end in pair:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self._pass_on(near, far)
        except OSError:
            pass
        finally:
            for end in pair:
                if pair in self._cut:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                end.close()
            self._pairs.discard(pair)

    def _pass_on(self, near: socket.socket, far: socket.socket) -> None:
        """Pass on what comes from either side, in order, until one has ended."""
        waiting: deque[tuple[float, socket.socket, bytes]] = deque()
        with selectors.DefaultSelector() as ready:
            ready.register(near, selectors.EVENT_READ, far)
            ready.register(far, selectors.EVENT_READ, near)
            while not self._closed and (near, far) not in self._cut:
                if self.mode == "stall":
                    time.sleep(0.02)
                    continue
                due_s = 0.05 if not waiting else min(0.05, max(0.0, waiting[0][0] - time.monotonic()))
                for key, _ in ready.select(due_s):
                    data = key.fileobj.recv(1 << 16)  # type: ignore[union-attr]
                    if not data:
                        return
                    if self.mode != "lose":
                        waiting.append((time.monotonic() + self.delay_s, key.data, data))
                while waiting and waiting[0][0] <= time.monotonic():
                    _, to, data = waiting.popleft()
                    to.sendall(data)
