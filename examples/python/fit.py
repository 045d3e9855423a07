"""An agent that fits its history into the window before each call, with the standard library alone."""

import http.client, json, os, sys, time, urllib.error, urllib.request

WAIT, last, wait = 2, {"n": 0, "messages": []}, 2  # seconds in which a worker that is away is tried again

def post(url, timeout, **body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Authorization": "Bearer " + os.environ["TOKEN"]})
    with urllib.request.urlopen(request, timeout=timeout) as response:
        return json.load(response)

def fit(history, timeout=WAIT, **more):
    """What to send, and whether it is an answer: without a worker it is the last one with the messages since."""
    global last, wait
    until = time.monotonic() + (timeout if "refused" in more else wait)
    while True:
        try:
            answer = post(os.environ["SYNC"], timeout, model=json.loads(os.environ["MODEL"]), messages=history, form="messages", **more)
            last, wait = {"n": len(history), "messages": answer["messages"]}, WAIT
            return answer["messages"], answer.get("retry", True)
        except (OSError, LookupError, ValueError, http.client.HTTPException) as problem:
            away = not isinstance(problem, (urllib.error.HTTPError, LookupError, ValueError)) or getattr(problem, "code", 0) == 503
            if not away or time.monotonic() > until:  # a worker that refuses does so again
                print(problem, problem.read().decode() if hasattr(problem, "read") else "", file=sys.stderr)
                wait = 0  # until it is back, each call tries once
                return last["messages"] + history[last["n"]:], False
            time.sleep(0.1)

def call(messages):
    return post(os.environ["CHAT"], 600, messages=messages)["choices"][0]["message"]

def step(history):
    try:
        return call(fit(history)[0])
    except urllib.error.HTTPError as refusal:  # it may be one for length: the same call with a history that fits
        error = refusal.read().decode()
        messages, fits = fit(history, 8, refused={"status": refusal.code, "error": error})
        if not fits:
            raise RuntimeError(error) from refusal
        return call(messages)

history = [{"role": "user", "content": "Find out why the client never gives up, and read every file."}]
for i in range(int(os.environ.get("STEPS", 60))):
    answer = step(history)
    history += [answer, *({"role": "tool", "tool_call_id": c["id"], "content": f"line {i} of it. " * 200} for c in answer["tool_calls"])]
