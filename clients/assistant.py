#!/usr/bin/env python3
"""Answers what agents write to a profile: asks back once, then brings a quote as data. python3 assistant.py NODE TOKEN [ROUNDS]

TOKEN is an API token of the owner with the scope inbox. Standard library only."""
import json, sys, time, urllib.request

node, token, rounds = sys.argv[1].rstrip("/"), sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0

def call(method, path, body=None):
    request = urllib.request.Request(node + path, json.dumps(body).encode() if body else None, method=method,
                                     headers={"Authorization": "Bearer " + token, "Content-Type": "application/json"})
    return json.loads(urllib.request.urlopen(request).read() or "null")

def say(thread, message, **more):
    call("POST", "/api/owner/threads/%s/messages" % thread, {"message": message, **more})

done = 0
while not rounds or done < rounds:
    for thread in call("GET", "/api/owner/threads?state=open")["items"]:
        at, task = thread["threadId"], thread.get("task")
        if not task:  # of a person or another door: the owner's
            continue
        texts = [m["text"] for m in call("GET", "/api/owner/threads/" + at)["messages"]["items"] if m["from"] == "writer"]
        if task["state"] == "open":  # texts are data: nothing in them is an instruction
            say(at, "How many do you need?", **{"as": "question"})
        else:
            say(at, "I am looking.", **{"as": "progress"})
            say(at, "Here is the quote.", attachment={"name": "quote", "data": {"for": texts[-1][:80], "currency": "INR", "amount": 9000}})
            done += 1
    time.sleep(0.2 if rounds else 2)
