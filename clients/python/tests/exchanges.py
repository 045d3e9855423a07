"""Runs the files of clients/conformance/exchanges: it is the worker and the provider of an adapter."""

import asyncio
import contextlib
import json
import sys
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

DIRECTORY = Path(__file__).parents[2] / "conformance"
TOKEN, KEY = "a-token", "Bearer a-provider-key"
MINUTE = 60
DURING = ("sync", "answer", "provider", "responds", "chunk", "cut")
RESULTS = ("response", "fitted", "problems", "compacted")
BEGINNINGS = ("request", "fit", "refused", "used")


@dataclass
class Section:
    name: str
    text: str
    number: int

    def __str__(self) -> str:
        return f"section {self.number}, {self.name}"

    def message(self) -> tuple[str, dict[str, str], str]:
        """Return the first line, the headers, and the body behind an empty line."""
        head, _, body = self.text.partition("\n\n")
        first, *lines = head.removesuffix("\n").split("\n")
        return (
            first,
            {"Content-Type": "application/json", **dict(line.split(": ", 1) for line in lines)},
            body.removesuffix("\n"),
        )


@dataclass
class Step:
    begin: Section
    restart: bool
    events: list[Section] = field(default_factory=list)
    results: dict[str, Section] = field(default_factory=dict)

    def result(self, name: str) -> str:
        return self.results[name].text.removesuffix("\n") if name in self.results else ""


def read(path: Path) -> tuple[dict[str, Any], list[Step]]:
    """Read a file: the options of the adapter, and the requests."""
    options: dict[str, Any] = {}
    steps: list[Step] = []
    restart = False
    for section in sections(path.read_text(encoding="utf-8")):
        if section.name == "options":
            options = json.loads(section.text)
        elif section.name == "restart":
            restart = True
        elif section.name in BEGINNINGS:
            steps.append(Step(section, restart))
            restart = False
        elif section.name in DURING:
            steps[-1].events.append(section)
        elif section.name in RESULTS:
            steps[-1].results[section.name] = section
        else:
            raise ValueError(f"{path}: {section}")
    return options, steps


def sections(text: str) -> list[Section]:
    found: list[Section] = []
    for line in text.splitlines(keepends=True):
        if line.startswith("-- ") and line.rstrip("\n").endswith(" --"):
            found.append(Section(line.strip("-\n "), "", len(found) + 1))
        elif found:
            found[-1].text += line
    return found


@dataclass
class Response:
    """The answer that an agent receives; cut: the body ended with an error."""

    status: int
    body: bytes
    cut: bool = False


class Agent:
    """An agent behind something that is tested."""

    def __init__(self, url: str, session: str | None, **options: Any):
        raise NotImplementedError

    def act(self, player: "Player", provider: str) -> None:
        """Do what a step begins with, and compare what comes of it."""
        raise NotImplementedError

    def abort(self) -> None:
        """Abort the request of the step, from another thread."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class Adapter(Agent):
    """An agent behind a wire adapter."""

    def send(self, method: str, url: str, headers: dict[str, str], body: bytes) -> Response:
        """Send a request of an agent. Raises any exception where it fails."""
        raise NotImplementedError

    def act(self, player: "Player", provider: str) -> None:
        """Send the request of the step, and compare the response."""
        step = player.step
        first, headers, body = step.begin.message()
        method, _, path = first.partition(" ")
        want = step.result("response")
        try:
            got = self.send(method, provider + path, {"Authorization": KEY, **headers}, body.encode())
        except (Exception, KeyboardInterrupt, asyncio.CancelledError) as e:
            if want != "error":
                player.errors.append(f"{step.begin}: {e!r}")
            return
        data = got.body + (b"<cut>" if got.cut else b"")
        if want not in ("", "same"):
            status, _, text = step.results["response"].message()
            if (got.status, data) != (int(status), text.encode()):
                player.errors.append(f"{step.begin}: {got.status}\n{data!r}\nwant {status}\n{text}")
        elif data != player.responded:
            player.errors.append(f"{step.begin}:\n{data!r}\nwant\n{player.responded!r}")


class Player:
    """The worker and the provider of an adapter, for one file."""

    def __init__(self, path: Path, start: Callable[..., Agent]):
        self.options, self.steps = read(path)
        self.start = start
        self.lock = threading.Condition()  # guards the fields below
        self.at = self.busy = 0
        self.step = self.steps[0]
        self.responded = b""
        self.known: dict[str, list[Any]] = {}
        self.problems: list[str] = []
        self.compacted: list[int] = []
        self.errors: list[str] = []

    def run(self) -> list[str]:
        """Run the file, and return what differs from it."""
        with serve(self.serve_worker) as worker, serve(self.serve_provider) as provider:
            self.agent = self.new(worker)
            for step in self.steps:
                if step.restart:
                    self.agent.close()
                    self.agent = self.new(worker)
                with self.lock:
                    self.step, self.at, self.problems, self.compacted = step, 0, [], []
                self.agent.act(self, provider)
                self.finish()
                if self.errors:
                    break
            self.agent.close()
        return self.errors

    def new(self, worker: str) -> Agent:
        wait = self.options.get("wait_ms", MINUTE * 1000) / 1000
        return self.start(
            worker, self.options.get("session"), token=TOKEN, wait=wait, model=self.options.get("model"),
            on_problem=lambda p: self.problems.append(p.code), on_compacted=lambda c: self.compacted.append(c.generation),
        )  # fmt: skip

    def finish(self) -> None:
        with self.lock:
            if not self.lock.wait_for(lambda: not self.busy, MINUTE):
                self.errors.append(f"{self.step.begin}: a request goes on")
            if self.at < len(self.step.events):
                self.errors.append(f"{self.step.events[self.at]} has not come")
        if self.problems != self.step.result("problems").split():
            self.errors.append(f"{self.step.begin}: problems are {self.problems}")
        if " ".join(map(str, self.compacted)) != self.step.result("compacted"):
            self.errors.append(f"{self.step.begin}: compacted are {self.compacted}")

    def next(self, kind: str) -> Section | None:
        if self.at >= len(self.step.events) or self.step.events[self.at].name != kind:
            return None
        self.at += 1
        return self.step.events[self.at - 1]

    @contextlib.contextmanager
    def request_of(self, r: "Handler", kind: str, reply: str) -> Any:
        """Take a request to one side: what is expected of it, and what it is answered with."""
        with self.lock:
            self.busy += 1
            want = self.next(kind)
            answer = self.next(reply) if want else None
        try:
            if want is None or answer is None:
                self.errors.append(f"{self.step.begin}: a request to the {kind} was not expected")
                r.answer(501, {}, [b""])
            else:
                yield want, answer
        finally:
            with self.lock:
                self.busy -= 1
                self.lock.notify_all()

    def serve_worker(self, r: "Handler") -> None:
        with contextlib.suppress(RuntimeError), self.request_of(r, "sync", "answer") as (want, answer):
            self.compare_sync(want, r)
            text = answer.text.removesuffix("\n")
            if text == "abort":
                self.agent.abort()
            if text in ("abort", "hang") and not r.ends():
                self.errors.append(f"{answer}: the request goes on")
            elif text in ("abort", "hang", "away"):
                r.drop()
            elif text[0].isdigit():
                status, _, body = answer.message()
                r.answer(int(status), {}, [body.encode()])
            else:
                self.known[json.loads(text).get("hash", "")] = self.whole(r.body)["messages"]
                r.answer(200, {}, [text.encode()])

    def compare_sync(self, want: Section, r: "Handler") -> None:
        """Compare each member that is expected with that of a request; null is absent."""
        _, _, _, tenant, session, _ = r.path.split("/")
        got = {**self.whole(r.body), "tenant": tenant, "session": unquote(session)}
        if r.headers["Authorization"] != "Bearer " + TOKEN:
            self.errors.append(f"{want}: the token is {r.headers['Authorization']}")
        for member, value in json.loads(want.text).items():
            if got.get(member) != value:
                self.errors.append(f"{want}: {member} is {got.get(member)}")

    def whole(self, body: bytes) -> dict[str, Any]:
        """Return a request with the messages that its prefix stands for."""
        request: dict[str, Any] = json.loads(body)
        if prefix := request.pop("prefix", None):
            request["messages"] = self.known[prefix["hash"]][: prefix["count"]] + request["messages"]
        return request

    def serve_provider(self, r: "Handler") -> None:
        with contextlib.suppress(RuntimeError), self.request_of(r, "provider", "responds") as (want, answer):
            self.compare_call(want, r)
            status, headers, body = answer.message()
            parts = [body.encode()]
            while chunk := self.next("chunk"):
                parts.append(chunk.text.encode())
            if headers.get("Content-Encoding") == "gzip":
                parts = compress(parts)
            cut = self.next("cut") is not None
            self.responded = b"".join(parts) + (b"<cut>" if cut else b"")
            r.answer(int(status), headers, parts, cut=cut)

    def compare_call(self, want: Section, r: "Handler") -> None:
        """Compare a request to the provider: its body by bytes, its headers with those of the agent.

        Of the encodings that the agent accepts it has those that can be read with the standard library.
        """
        first, headers, body = self.step.begin.message()
        if encodings := headers.get("Accept-Encoding"):
            headers["Accept-Encoding"] = "gzip" if "gzip" in encodings else "identity"
        expected = want.text.removesuffix("\n")
        if r.body.decode() != (body if expected == "same" else expected):
            self.errors.append(f"{want}:\n{r.body.decode()}\nwant\n{expected}")
        if f"{r.command} {r.path}" != first:
            self.errors.append(f"{want}: the path is {r.path}, want {first}")
        for name, value in {"Authorization": KEY, **headers}.items():
            if r.headers[name] != value:
                self.errors.append(f"{want}: {name} is {r.headers[name]}")


def compress(parts: list[bytes]) -> list[bytes]:
    """Return the parts of a body in gzip, each of which can be read when it has come."""
    z = zlib.compressobj(wbits=31)
    out = [z.compress(p) + z.flush(zlib.Z_SYNC_FLUSH) for p in parts]
    return [*out[:-1], out[-1] + z.flush()]


class Handler(BaseHTTPRequestHandler):
    """A request to the worker or the provider."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = MINUTE
    serve: Callable[["Handler"], None]

    def do_POST(self) -> None:
        self.body = self.rfile.read(int(self.headers["Content-Length"]))
        type(self).serve(self)

    def answer(self, status: int, headers: dict[str, str], parts: list[bytes], *, cut: bool = False) -> None:
        """Answer with parts that are sent separately."""
        self.send_response(status)
        for name, value in {**headers, "Transfer-Encoding": "chunked"}.items():
            self.send_header(name, value)
        self.end_headers()
        for part in parts:
            if part:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                self.wfile.flush()
        if cut:
            self.drop()
        else:
            self.wfile.write(b"0\r\n\r\n")

    def ends(self) -> bool:
        """Wait until the other side ends the connection."""
        try:
            return not self.connection.recv(1)
        except TimeoutError:
            return False
        except OSError:
            return True

    def drop(self) -> None:
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has ended its connection is no error."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


@contextlib.contextmanager
def serve(answer: Callable[[Handler], None]) -> Any:
    """Run a server, and yield its URL."""
    server = Server(("127.0.0.1", 0), type("_", (Handler,), {"serve": staticmethod(answer)}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
