"""Transports for httpx, and so for the SDKs of OpenAI and Anthropic:

client = OpenAI(http_client=httpx.Client(transport=compactd.httpx.Transport(url, token, session)))
client = AsyncOpenAI(http_client=httpx.AsyncClient(transport=compactd.httpx.AsyncTransport(url, token, session)))
"""

import httpx

from compactd import _httpx


class _Stream(_httpx.Stream, httpx.SyncByteStream):
    pass


class _AsyncStream(_httpx.AsyncStream, httpx.AsyncByteStream):
    pass


class Transport(_httpx.Transport, httpx.BaseTransport):
    __doc__ = _httpx.Transport.__doc__
    _library, _stream = httpx, _Stream


class AsyncTransport(_httpx.AsyncTransport, httpx.AsyncBaseTransport):
    __doc__ = _httpx.AsyncTransport.__doc__
    _library, _stream = httpx, _AsyncStream
