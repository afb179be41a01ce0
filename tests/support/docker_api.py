"""The container engine's side of its HTTP API, in-process on a Unix socket: for the real `docker` package to talk to.

It keeps containers, volumes and images as names and what was asked of them, and runs nothing.
Paths and answers as in Docker Engine API 1.47.
"""

import json
import re
import socketserver
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

VERSION = "1.47"


@dataclass(frozen=True)
class Asked:
    method: str
    path: str  # without the API's version
    query: dict[str, str]
    body: Any

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass
class Container:
    name: str
    body: dict[str, Any]
    status: str = "created"
    log: str = ""
    out_of_memory: bool = False

    def described(self) -> dict[str, Any]:
        return {
            "Id": self.name,
            "Name": f"/{self.name}",
            "State": {"Status": self.status, "OOMKilled": self.out_of_memory},
            "Config": {"Labels": self.body.get("Labels") or {}, "Tty": False, "Image": self.body.get("Image")},
            "HostConfig": self.body.get("HostConfig") or {},
            "Image": self.body.get("Image"),
        }


@dataclass
class Answer(Exception):
    status: int
    body: Any = None


class Stream(list[dict[str, Any]]):
    """An answer that comes in pieces, each a line of JSON."""


@dataclass
class Engine:
    """`refusals`: "METHOD /path" as a pattern, with the status and the message it is answered with."""

    socket: Path
    images: set[str] = field(default_factory=set)
    containers: dict[str, Container] = field(default_factory=dict)
    volumes: dict[str, dict[str, str]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    refusals: dict[str, tuple[int, str]] = field(default_factory=dict)
    pulls: list[dict[str, Any]] = field(default_factory=list)
    on_start: Callable[[Container], None] = lambda container: None
    before: Callable[[Asked], None] = lambda asked: None

    def __enter__(self) -> "Engine":
        self._server = _Server(str(self.socket), _handler(self))
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._server.server_close()

    def requests(self, pattern: str) -> list[Asked]:
        return [asked for asked in self.asked if re.fullmatch(pattern, str(asked))]

    def answer(self, asked: Asked) -> Any:
        self.asked.append(asked)
        self.before(asked)
        for pattern, (status, message) in self.refusals.items():
            if re.fullmatch(pattern, str(asked)):
                raise Answer(status, {"message": message})
        match asked.method, asked.path.strip("/").split("/"):
            case "GET", ["version"]:
                return {"ApiVersion": VERSION, "MinAPIVersion": "1.24"}
            case "GET", ["images", *name, "json"]:
                if "/".join(name) not in self.images:
                    raise Answer(404, {"message": f"No such image: {'/'.join(name)}"})
                return {"Id": "sha256:1", "RepoTags": ["/".join(name)]}
            case "POST", ["images", "create"]:
                if not any("error" in line for line in self.pulls):
                    self.images.add(f"{asked.query['fromImage']}:{asked.query['tag']}")
                raise Answer(200, Stream(self.pulls))
            case "POST", ["containers", "create"]:
                self._refuse_name_in_use(name := asked.query["name"])
                self.containers[name] = Container(name, asked.body)
                raise Answer(201, {"Id": name, "Warnings": []})
            case "GET", ["containers", "json"]:
                [label] = json.loads(asked.query["filters"])["label"]
                return [{"Id": name} for name, each in self.containers.items() if label in (each.body["Labels"] or {})]
            case method, ["containers", name, *what]:
                return self._container(method, self._found(self.containers, name, "container"), what, asked)
            case "POST", ["volumes", "create"]:
                self.volumes[asked.body["Name"]] = asked.body.get("Labels") or {}
                raise Answer(201, {"Name": asked.body["Name"], "Labels": asked.body.get("Labels")})
            case "GET", ["volumes", name]:
                return {"Name": name, "Labels": self._found(self.volumes, name, "volume")}
            case "DELETE", ["volumes", name]:
                self._found(self.volumes, name, "volume")
                del self.volumes[name]
                raise Answer(204)
        raise AssertionError(f"the engine's side knows no {asked}")

    def _refuse_name_in_use(self, name: str) -> None:
        if name in self.containers:
            message = f'Conflict. The container name "/{name}" is already in use by container "1f". You have to remove'
            raise Answer(409, {"message": f"{message} (or rename) that container to be able to reuse that name."})

    def _container(self, method: str, found: Container, what: list[str], asked: Asked) -> Any:
        match method, what:
            case "GET", ["json"]:
                return found.described()
            case "POST", ["start"]:
                found.status = "running"
                self.on_start(found)
                raise Answer(204)
            case "POST", ["stop"]:
                found.status = "exited"
                raise Answer(204)
            case "GET", ["logs"]:
                lines = found.log.encode().splitlines(keepends=True)
                text = b"".join(lines[-int(asked.query["tail"]) :])
                raise Answer(200, struct.pack(">BxxxI", 1, len(text)) + text)  # one frame, of standard output
            case "DELETE", []:
                del self.containers[found.name]
                raise Answer(204)
        raise AssertionError(f"the engine's side knows no {asked}")

    @staticmethod
    def _found(known: dict[str, Any], name: str, kind: str) -> Any:
        if name not in known:
            raise Answer(404, {"message": f"No such {kind}: {name}"})
        return known[name]


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """A client that was interrupted has gone without its answer."""


def _handler(engine: Engine) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def address_string(self) -> str:
            return "unix"

        def log_message(self, *_: Any) -> None: ...

        def _handle(self) -> None:
            url = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            path = re.sub(r"^/v[\d.]+", "", unquote(url.path))
            query = {key: values[-1] for key, values in parse_qs(url.query).items()}
            try:
                status, answer = 200, engine.answer(Asked(self.command, path, query, body))
            except Answer as special:
                status, answer = special.status, special.body
            except AssertionError as error:
                status, answer = 500, {"message": str(error)}
            self._send(status, answer)

        def _send(self, status: int, answer: Any) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            if isinstance(answer, Stream):
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for line in [*(json.dumps(each).encode() + b"\r\n" for each in answer), b""]:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                return
            raw = b"" if answer is None else answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            if status != 204:
                self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        do_GET = do_POST = do_DELETE = _handle

    return Handler
