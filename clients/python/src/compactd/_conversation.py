"""Histories of messages of any type."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from compactd._call import History
from compactd._core import Attempt, Core, Options, Problem
from compactd._exchange import fit, run
from compactd._json import Value
from compactd._worker import Worker, in_thread

if TYPE_CHECKING:
    from typing_extensions import Unpack

M = TypeVar("M")


def _same(message: Any) -> Any:
    return message


def _made(message: Any, _own: Any) -> Any:
    return message


class Conversation(Generic[M]):
    """Keeps a history inside a window, for agents and frameworks whose objects have more than the provider gets.

    Messages that are kept are the agent's own objects. The agent keeps its history and sends what
    fit returns:

        sent = conversation.fit(history, model={"name": "gpt-4o"})
        try:
            answer = call(sent.messages)
        except TooLong as e:
            sent = sent.refused(e.body, e.status) or fail(e)
            answer = call(sent.messages)
        sent.used(answer["usage"])

    afit and arefused are the same for asyncio, in a thread. Where they are cancelled, the request to the
    worker ends. No error of compactd reaches the agent.
    """

    def __init__(
        self,
        url: str,
        token: str,
        session: str | None = None,
        *,
        format: str,
        to: Callable[[M], Any] = _same,
        made: Callable[[Any, M | None], M] = _made,
        **options: Unpack[Options],
    ):
        """Fit the histories of a session, by a worker at a URL. See compactd.Options.

        format is the dialect, such as openai. to returns a message as the provider gets it, a value of
        JSON. made returns one that compactd made; the second argument is the agent's message that it is
        an edit of: what the provider does not get should be copied from it.
        """
        self._core = Core(url, token, session, **options)
        self._worker = Worker()
        self._format, self._to, self._made, self._model = format, to, made, options.get("model") or {}

    def fit(
        self,
        history: Sequence[M],
        *,
        model: Mapping[str, Any] | None = None,
        system: Any = None,
        tools: Any = None,
        thinking: Mapping[str, Any] | None = None,
    ) -> Fitted[M]:
        """Return what of a whole history, with its new prompt, to send.

        model, system, tools and thinking are those of the call, as its provider gets them.
        """
        h = self._read(history, {**(model or {}), **self._model}, system, tools, thinking)
        if h is None:
            return Fitted(self, None, history, None)
        return Fitted(self, h, history, run(fit(self._core, h, self._worker.apost)))

    async def afit(self, history: Sequence[M], **call: Any) -> Fitted[M]:
        """Return what fit returns."""
        return await in_thread(self.fit, history, **call)

    def _read(
        self, history: Sequence[M], model: dict[str, Any], system: Any, tools: Any, thinking: Any
    ) -> History | None:
        """Return a history as the provider gets it, None where it is sent as it is."""
        session = self._core.session()
        if not session or not history:
            return None
        try:
            data = [self._to(m) for m in history]
            messages = [Value(d, json.dumps(d)) for d in data]
            system, tools = ("" if v is None else json.dumps(v) for v in (system, tools))
            json.dumps(model)  # it is sent later
            return History(session, self._format, model, system, tools, messages, thinking)
        except Exception as e:  # of to
            self._failed(e)
            return None

    def _write(self, attempt: Attempt, own: Sequence[M]) -> list[M]:
        try:
            return [
                self._made(p.value.data, None if p.own is None else own[p.own]) if p.made else own[p.own or 0]
                for p in attempt.pieces
            ]
        except Exception as e:  # of made
            self._failed(e)
            return list(own)

    def _failed(self, e: Exception) -> None:
        session = self._core.session() or ""
        self._core.report(session, Problem("client_codec", str(e) or repr(e), "Correct to and made of the conversation."))

    def close(self) -> None:
        """Close the connections to the worker."""
        self._worker.close()


def _text(error: Any) -> str:
    """Return the error of a provider as JSON, or as text."""
    if isinstance(error, bytes):
        return error.decode(errors="replace")
    if isinstance(error, (str, Exception)):
        return str(error)
    try:
        return json.dumps(error, default=str)
    except (TypeError, ValueError, RecursionError):  # it contains itself, or has a key that is no text
        return str(error)


class Fitted(Generic[M]):
    """The messages to send with one call."""

    def __init__(
        self,
        conversation: Conversation[M],
        history: History | None,
        own: Sequence[M],
        attempt: Attempt | None,
        *,
        again: bool = False,
    ):
        self._conversation, self._history, self._own, self._attempt, self._again = (
            conversation,
            history,
            own,
            attempt,
            again,
        )
        self.messages = conversation._write(attempt, own) if attempt else list(own)

    @property
    def budget(self) -> Mapping[str, Any]:
        """Return the budget of the call with these messages; it is empty where no worker answered."""
        record = self._attempt.record if self._attempt else None
        return record.synced.budget if record else {}

    def refused(self, error: Any, status: int = 0) -> Fitted[M] | None:
        """Return what to send instead, once, after the provider refused the call as too long.

        It is None for any other refusal, for the second of a call, and where nothing shorter would be
        accepted: the refusal is the agent's to handle.
        """
        c, h, sent = self._conversation, self._history, self._attempt
        if self._again or h is None or sent is None or error is None:
            return None
        ask = c._core.refused(h, sent, _text(error), status)
        again = c._core.shorter(h, sent, c._worker.post(ask))
        return None if again is None else Fitted(c, h, self._own, again, again=True)

    async def arefused(self, error: Any, status: int = 0) -> Fitted[M] | None:
        """Return what refused returns."""
        return await in_thread(self.refused, error, status)

    def used(self, usage: Mapping[str, Any]) -> None:
        """Take what the provider counted for the call."""
        try:
            counts = json.loads(json.dumps(usage))
        except (TypeError, ValueError) as e:
            return self._conversation._failed(e)
        if self._attempt and self._attempt.record and isinstance(counts, dict):
            self._attempt.record.usage = counts
