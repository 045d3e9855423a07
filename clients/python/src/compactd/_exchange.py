"""One call of a transport: what comes after what, for those that block and for those on asyncio.

It is written once, as a coroutine. A transport that blocks gives it functions that wait for nothing, and
runs it to its end.
"""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from compactd._answer import Answer
from compactd._call import Call, History
from compactd._core import Ask, Attempt, Core, Reply


class Body:
    """The body of a response, held back until it is known to be no refusal."""

    chunk: Callable[[], Awaitable[bytes | None]]  # returns the next bytes of the provider, None at the end
    end: Callable[[], Awaitable[None]]  # ends the response of the provider

    def __init__(self, response: Any, status: int):
        self.response = response
        self.answer = Answer(status, response.headers.get)
        self._held: list[bytes] = []  # not read by the caller
        self._error: Exception | None = None  # behind what is held

    async def hold(self) -> None:
        try:
            while self.answer.holds and (chunk := await self.chunk()) is not None:
                self._held.append(chunk)
                self.answer.feed(chunk)
        except Exception as e:  # for the caller, when it has read so far
            self._error = e
        self.answer.end()

    async def next(self) -> bytes | None:
        """Return the next bytes for the caller, None at the end."""
        if self._held:
            return self._held.pop(0)
        if self._error is not None:
            raise self._error
        chunk = await self.chunk()
        if chunk is not None:
            self.answer.feed(chunk)
        return chunk


Post = Callable[[Ask | None], Awaitable[Reply]]  # requests a worker


async def fit(core: Core, history: History, post: Post) -> Attempt:
    """Return what to send of a history."""
    ask, last = core.fit(history)
    reply = await post(ask)
    if ask and (whole := ask.again(reply)):
        reply = await post(whole)
    return core.fitted(history, last, reply)


async def exchange(core: Core, call: Call, post: Post, send: Callable[[bytes], Awaitable[Body]]) -> Any:
    """Return the response to a call. send sends a body to the provider."""
    sent = await fit(core, call, post)
    body = await send(call.with_pieces(sent.pieces))
    try:
        await body.hold()
        ask = core.refused(call, sent, body.answer.refusal, body.answer.status)
        again = core.shorter(call, sent, await post(ask))
        if again is not None:
            await body.end()
            sent = again
            body = await send(call.with_pieces(sent.pieces))
            await body.hold()
    except BaseException:
        await body.end()
        raise
    body.answer.watch(sent.record)
    return body.response


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as e:
        return e.value
    raise AssertionError("it waits")
