"""`http.client` and `urllib.request` over `wasi:http`: hosts that were granted can be asked.

There are no sockets here. A connection collects what `http.client` writes, hands it to the host as one
request, and reads the answer whole, within the host's cap on a body; then nothing of it is left open. The
host checks each request against its grants, also one that follows a redirect, and it checks certificates.
What it refuses is an OSError with its words, and a URLError from `urllib`. Proxies and tunnels are
refused.
"""

import http.client
import io
import re
import sys
from urllib.error import URLError

from componentize_py_types import Err
from wit_world.imports import outgoing_handler
from wit_world.imports import wasi_http_types as wasi
from wit_world.imports.streams import StreamError_Closed

# Bytes that one blocking write takes, by the contract of wasi:io.
_WRITE_BYTES_MAX = 4096
_READ_BYTES_MAX = 64 << 10

_METHODS = {
    "GET": wasi.Method_Get,
    "HEAD": wasi.Method_Head,
    "POST": wasi.Method_Post,
    "PUT": wasi.Method_Put,
    "DELETE": wasi.Method_Delete,
    "CONNECT": wasi.Method_Connect,
    "OPTIONS": wasi.Method_Options,
    "TRACE": wasi.Method_Trace,
    "PATCH": wasi.Method_Patch,
}

# The host writes these itself, and reads them from what comes back.
_OF_THE_CONNECTION = ("connection", "host", "transfer-encoding")

_ERRORS = {
    "ConnectionRefused": ConnectionRefusedError,
    "ConnectionTerminated": ConnectionResetError,
}


class _HTTPSConnection(http.client.HTTPConnection):
    """As where there is a module `ssl`; what it would set up is the host's affair."""

    default_port = http.client.HTTPS_PORT

    def __init__(self, host, port=None, *, context=None, **options):
        if context is not None:
            raise ValueError("the host sets up TLS, and always checks certificates")
        super().__init__(host, port, **options)


def _connect(connection):
    sys.audit("http.client.connect", connection, connection.host, connection.port)
    if connection._tunnel_host:
        raise OSError("there is no way through a proxy; ask the host itself")
    connection.sock = _Wire(connection)


http.client.HTTPConnection.connect = _connect
http.client.HTTPSConnection = _HTTPSConnection
http.client._create_https_context = lambda version: None
# A refusal is raised while a response is made, before it has a file to read from. Its finalizer asks for
# that file, and would print an error of its own beside the refusal.
http.client.HTTPResponse.fp = None

# Only now, since it looks for what was put in place above.
import urllib.request

_do_open = urllib.request.AbstractHTTPHandler.do_open


def _open(handler, connection_class, request, **options):
    try:
        return _do_open(handler, connection_class, request, **options)
    except URLError:
        raise
    except OSError as error:
        raise URLError(error) from None


urllib.request.AbstractHTTPHandler.do_open = _open


class _Wire:
    """What `http.client` takes for a socket: requests go in, and for each one its response comes out."""

    def __init__(self, connection):
        is_secure = isinstance(connection, _HTTPSConnection)
        self._scheme = wasi.Scheme_Https() if is_secure else wasi.Scheme_Http()
        host = connection.host if connection.host.isascii() else connection.host.encode("idna").decode()
        self._authority = f"[{host}]:{connection.port}" if ":" in host else f"{host}:{connection.port}"
        self._timeout = connection.timeout
        self._sent = bytearray()

    def sendall(self, data):
        self._sent += data

    def makefile(self, *_):
        sent, self._sent = bytes(self._sent), bytearray()
        return io.BytesIO(self._exchange(*_read_request(sent)))

    def close(self):
        pass

    def _exchange(self, method, path, headers, body):
        request = wasi.OutgoingRequest(_fields(headers))
        named = _METHODS.get(method)
        try:
            request.set_method(named() if named else wasi.Method_Other(method))
            request.set_scheme(self._scheme)
            request.set_authority(self._authority)
            request.set_path_with_query(path)
        except Err:
            raise http.client.InvalidURL(f"`{method} {self._authority}{path}` cannot be asked") from None
        return _shown(*_send(request, body, _options(self._timeout)))


# What `http.client` writes, and what it reads.


def _read_request(sent):
    head, _, body = sent.partition(b"\r\n\r\n")
    # A value that goes over several lines becomes one line.
    first, *lines = re.sub(r"\r\n[ \t]+", " ", head.decode("latin-1")).split("\r\n")
    method, path, _ = first.split(" ")
    headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    if any(name.lower() == "transfer-encoding" for name, _ in headers):
        body = _without_chunks(body)
    return method, path, headers, body


def _without_chunks(data):
    parts, at = [], 0
    while True:
        end = data.index(b"\r\n", at)
        size = int(data[at:end], 16)
        if size == 0:
            return b"".join(parts)
        parts.append(data[end + 2 : end + 2 + size])
        at = end + 2 + size + 2


def _shown(status, headers, body):
    lines = [f"HTTP/1.1 {status} {http.client.responses.get(status, '')}".encode()]
    kept = [(name, value) for name, value in headers if name.lower() not in _OF_THE_CONNECTION]
    lines += [name.encode() + b": " + value for name, value in kept]
    return b"\r\n".join([*lines, b"Connection: close", b"", body])


# The host's side. A handle that came out of another one must go before it, which `with` sees to: the host
# ends an instance that does not keep to that.


def _fields(headers):
    sent = [(name, value) for name, value in headers if name.lower() not in _OF_THE_CONNECTION]
    try:
        return wasi.Fields.from_list([(name, value.encode("latin-1")) for name, value in sent])
    except Err:
        names = ", ".join(name for name, _ in sent)
        raise ValueError(f"one of the headers {names} cannot be sent") from None


def _options(timeout):
    if not isinstance(timeout, (int, float)):
        return None
    options, ns = wasi.RequestOptions(), max(int(timeout * 1e9), 1)
    options.set_connect_timeout(ns)
    options.set_first_byte_timeout(ns)
    options.set_between_bytes_timeout(ns)
    return options


def _send(request, body, options):
    outgoing = request.body() if body else None
    try:
        future = outgoing_handler.handle(request, options)
    except Err as error:
        raise _error(error.value) from None
    with future:
        if outgoing is not None:
            _write(outgoing, body)
        with future.subscribe() as answered:
            answered.block()
        answer = future.get().value
    if isinstance(answer, Err):
        raise _error(answer.value)
    with answer.value as response:
        with response.headers() as fields:
            headers = fields.entries()
        return response.status(), headers, _read(response)


def _write(outgoing, body):
    try:
        with outgoing.write() as stream:
            for at in range(0, len(body), _WRITE_BYTES_MAX):
                stream.blocking_write_and_flush(body[at : at + _WRITE_BYTES_MAX])
        wasi.OutgoingBody.finish(outgoing, None)
    except Err:
        # The host gave the request up; what it answers says why.
        pass


def _read(response):
    parts, failed = [], None
    with response.consume() as body, body.stream() as stream:
        try:
            while True:
                parts.append(stream.blocking_read(_READ_BYTES_MAX))
        except Err as error:
            if not isinstance(error.value, StreamError_Closed):
                failed = wasi.http_error_code(error.value.value) or wasi.ErrorCode_HttpResponseIncomplete()
    if failed is not None:
        raise _error(failed)
    return b"".join(parts)


def _error(code):
    name = type(code).__name__.removeprefix("ErrorCode_")
    value = getattr(code, "value", None)
    if name == "InternalError" and value:
        # The host's own words, with the grant that would allow it.
        return OSError(value)
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
    text = words if value is None else f"{words}: {value}"
    return _ERRORS.get(name, TimeoutError if "Timeout" in name else OSError)(text)
