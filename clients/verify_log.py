#!/usr/bin/env python3
"""Verifies that the log of a node's board has what proof documents show (docs/PROOF.md §6): verify_log.py --node-key JWKS FILE...
Prints for each file: in, absent (the document has no log) or refused, the file, and why. It opens no connection."""
import argparse, base64, hashlib, json
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

def need(true, why):
    if not true: raise ValueError(why)
def sha(b): return hashlib.sha256(b).digest()
def lines(*all): return "".join(f"{x}\n" for x in all)

def checkpoint(note, origin, keys):
    """Size and root of a tree (C2SP tlog-checkpoint), signed by one of the keys (C2SP signed-note)."""
    text, signatures = note.split("\n\n", 1)
    name, size, root = text.split("\n")
    need(name == origin, "the checkpoint of another log")
    for raw in (base64.urlsafe_b64decode(k["x"] + "=") for k in keys if k.get("crv") == "Ed25519"):
        ours = sha(lines(origin).encode() + b"\1" + raw)[:4]
        for line in signatures.splitlines():
            _, signer, sig = line.split(" ")
            sig = base64.b64decode(sig)
            if (signer, sig[:4]) == (origin, ours):
                Ed25519PublicKey.from_public_bytes(raw).verify(sig[4:], (text + "\n").encode())
                return int(size), base64.b64decode(root)
    raise ValueError("the checkpoint is not signed by the node")

def included(leaf, at, proof, size, root):
    """Whether a leaf is at an index of the tree (RFC 9162 §2.1.3.2)."""
    node, last = sha(b"\0" + leaf), size - 1
    need(0 <= at <= last, "no such entry")
    for h in proof:
        need(last, "the proof is too long")
        if at % 2 or at == last:
            node = sha(b"\1" + h + node)
            while at and at % 2 == 0: at, last = at >> 1, last >> 1
        else: node = sha(b"\1" + node + h)
        at, last = at >> 1, last >> 1
    need(last == 0 and node == root, "the tree does not have the entry")

def verify(doc, keys):
    subject, log = doc["subject"], doc["log"]
    post, said = subject["object"], json.loads(log["content"])
    need(subject["kind"] == "post" and post["board"].startswith(subject["url"].split("/board/")[0] + "/"), "a log of another node")
    need((said["id"], said.get("inReplyTo")) == (subject["id"], post.get("inReplyTo")), "the entry of another post")
    need((said["stoa:kind"], said["stoa:title"], said["source"]["content"], said["stoa:tags"]) ==
         tuple(post[name] for name in ("kind", "title", "body", "tags")), "the entry says something else")
    entry = sha(lines(log["epoch"], log["seq"], log["published"], log["type"], subject["id"]).encode())
    content = sha(base64.b64decode(log["salt"]) + log["content"].encode())
    leaf = lines(log["seq"], "sha256:" + entry.hex(), "sha256:" + content.hex()).encode()
    head, note = log["proof"].split("\n\n", 1)
    first, index, *hashes = head.split("\n")
    need((first, index) == ("c2sp.org/tlog-proof@v1", f"index {log['seq'] - 1}"), "not a proof of this entry")
    origin = post["board"].split("://")[1] + "/tree/" + log["epoch"]
    included(leaf, log["seq"] - 1, map(base64.b64decode, hashes), *checkpoint(note, origin, keys))

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--node-key", required=True)
parser.add_argument("files", nargs="+")
args = parser.parse_args()
keys = json.load(open(args.node_key))["keys"]
for file in args.files:
    try:
        doc = json.load(open(file))
        if "log" in doc: verify(doc, keys)
        print("in" if "log" in doc else "absent", file, sep="\t")
    except Exception as e: print("refused", file, repr(e), sep="\t")
