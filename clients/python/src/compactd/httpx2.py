"""As compactd.httpx, for httpx2, which the SDK of OpenAI requires since version 3."""

import httpx2

from compactd import _httpx


class _Stream(_httpx.Stream, httpx2.SyncByteStream):
    pass


class _AsyncStream(_httpx.AsyncStream, httpx2.AsyncByteStream):
    pass


class Transport(_httpx.Transport, httpx2.BaseTransport):
    __doc__ = _httpx.Transport.__doc__
    _library, _stream = httpx2, _Stream


class AsyncTransport(_httpx.AsyncTransport, httpx2.AsyncBaseTransport):
    __doc__ = _httpx.AsyncTransport.__doc__
    _library, _stream = httpx2, _AsyncStream
