"""An agent that fits its history into the window before each call, with the standard library alone."""

import json, os, time, urllib.request

def post(url, **body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Authorization": "Bearer " + os.environ["TOKEN"]})
    for _ in range(600):
        try:
            return json.load(urllib.request.urlopen(request))
        except OSError:  # it is away for a moment: to send the same again is safe
            time.sleep(0.1)

history = [{"role": "user", "content": "Find out why the client never gives up, and read every file."}]
for step in range(int(os.environ.get("STEPS", 60))):
    fitted = post(os.environ["SYNC"], model=json.loads(os.environ["MODEL"]), messages=history, form="messages", wait_ms=8000)
    answer = post(os.environ["CHAT"], messages=fitted["messages"])["choices"][0]["message"]
    history += [answer, *({"role": "tool", "tool_call_id": c["id"], "content": f"line {step} of it. " * 200} for c in answer["tool_calls"])]
