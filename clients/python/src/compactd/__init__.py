"""Keeps the requests of an SDK inside its model's context window.

The history of each request goes to a worker of compactd, and the messages of its answer to the
provider. The agent keeps its SDK, its loop and its whole history:

    import httpx, compactd.httpx
    from openai import OpenAI

    client = OpenAI(http_client=httpx.Client(transport=compactd.httpx.Transport(url, token, session)))

compactd.httpx has AsyncTransport for asyncio too; compactd.urllib is for agents without packages, and
Conversation for frameworks with messages of their own type.

The path of a request and the array of messages in its body name it: chat completions and Responses
of OpenAI, and Anthropic's messages. Any other request passes unchanged: also one without a session,
one with its history at the provider (previous_response_id), and one with a signature over its body
(AWS4-HMAC).

Guarantees:

- Only the array of messages changes. Messages that are kept have the caller's own bytes, and so has
  the rest of the body. A history that compactd does not change is sent as it came.
- Bytes of a response are never changed. A stream is held back until its first event with content, at
  most 64 KiB, because a provider may refuse a call inside a stream.
- A call that the provider refused as too long is sent once more, with a shorter history. Where there
  is none, or after a second refusal, the caller gets the provider's answer.
- A worker that does not answer costs a call the wait at most, and a refused call six seconds. After
  three failures of a session no worker is requested for five seconds.
- Without a worker the last answer is sent with the messages since, where instructions, tools and
  model are the same; else the caller's own history. If it exceeds nine tenths of the window of the
  last answer, the oldest turns are left out until half of the room is free, so that the calls that
  follow append to the same messages: instructions and the first prompt stay, and calls stay with
  their results. An image counts as a thousand tokens.
- No error of compactd reaches the caller. on_problem gets each code of a session once, until an
  answer for the session is without it.

A transport may be used by many threads, tasks and sessions. It remembers the last answers of 256
conversations; one that is not remembered costs its prefix and usage alone.
"""

from compactd._conversation import Conversation, Fitted
from compactd._core import CUT, Compaction, Options, Problem, session

__all__ = ["CUT", "Compaction", "Conversation", "Fitted", "Options", "Problem", "session"]
__version__ = "0.1.0"
