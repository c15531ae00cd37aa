#!/usr/bin/env python3
"""Verifies proof documents (docs/PROOF.md): verify_proof.py --node-key JWKS [--block HASH,HASH] FILE...
Prints for each file: verified, refused or undecided, the file, and why. It opens no connection. Sections in comments are those of PROOF.md."""
import argparse, base64, hashlib, json, re, urllib.parse
from datetime import datetime
from decimal import Decimal
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, utils
from cryptography.hazmat.primitives.hashes import SHA256
class Bad(Exception): """What the document says is wrong."""
class Open(Exception): """It cannot be told with what is given."""
def need(true, why, kind=Bad):
    if not true: raise kind(why)
def load(raw): return json.loads(raw, object_pairs_hook=lambda p: need(len(dict(p)) == len(p), "a member is there twice") or dict(p))
def b64(s): return base64.urlsafe_b64decode(s + "=" * (-len(s) % 4))
def to64(b): return base64.urlsafe_b64encode(b).decode().rstrip("=")
unhex, num, word = lambda s: bytes.fromhex(s[2:]), lambda b: int.from_bytes(b, "big"), lambda n: n.to_bytes(32, "big")
sha, rotate = lambda b: hashlib.sha256(b).digest(), lambda v, n: (v << n | v >> 64 - n) % 2**64
def jcs(v): return json.dumps(v, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()  # RFC 8785, for values without fractions
def digest(v): return "sha256:" + sha(jcs(v)).hex()
B58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
def base58(s, size): return sum(B58.index(c) * 58**i for i, c in enumerate(reversed(s))).to_bytes(size, "big")
def keccak(data):  # Keccak-256, as Ethereum has it
    data, s = bytearray(data + b"\x01" + bytes(-(len(data) + 1) % 136)), [0] * 25; data[-1] |= 128
    for at in range(0, len(data), 136):
        for i in range(17): s[i] ^= int.from_bytes(data[at + 8 * i:at + 8 * i + 8], "little")
        r = 1
        for _ in range(24):
            c = [s[x] ^ s[x + 5] ^ s[x + 10] ^ s[x + 15] ^ s[x + 20] for x in range(5)]
            s = [s[i] ^ c[i % 5 - 1] ^ rotate(c[(i + 1) % 5], 1) for i in range(25)]; x, y, v = 1, 0, s[1]
            for t in range(24):
                x, y = y, (2 * x + 3 * y) % 5; v, s[x + 5 * y] = s[x + 5 * y], rotate(v, (t + 1) * (t + 2) // 2 % 64)
            s = [s[i] ^ (~s[i - i % 5 + (i + 1) % 5] & s[i - i % 5 + (i + 2) % 5]) for i in range(25)]
            for j in range(7): s[0], r = s[0] ^ (r & 1) << (1 << j) - 1, r << 1 ^ (0x171 if r & 128 else 0)
    return b"".join(v.to_bytes(8, "little") for v in s[:4])
P, N = 2**256 - 2**32 - 977, 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141  # secp256k1
G = (0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798, 0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8)
def add(a, b):  # points; None is the neutral one
    if a is None or b is None or a[0] == b[0] and a[1] != b[1]: return None if a and b else a or b
    m = 3 * a[0] * a[0] * pow(2 * a[1], -1, P) if a == b else (b[1] - a[1]) * pow(b[0] - a[0], -1, P)
    x = (m * m - a[0] - b[0]) % P; return x, (m * (a[0] - x) - a[1]) % P
def times(p, n): return add(times(add(p, p), n // 2), p if n % 2 else None) if n else None
def account(hash, sig):  # the ordinary account that made a signature of 65 bytes; None for none
    r, s, v = num(sig[:32]), num(sig[32:64]), sig[64] % 27 if len(sig) == 65 else 9; y = pow(r**3 + 7, (P + 1) // 4, P)
    if v > 1 or not 0 < r < N or not 0 < s <= N // 2 or (y * y - r**3 - 7) % P: return None
    q = times(add(times((r, y if y & 1 == v else P - y), s), times(G, -num(hash) % N)), pow(r, -1, N))
    return q and "0x" + keccak(word(q[0]) + word(q[1]))[12:].hex()
class Key:
    def __init__(self, kind, *raw):
        if kind == "Ed25519": self.key = ed25519.Ed25519PublicKey.from_public_bytes(raw[0])
        else: self.key = ec.EllipticCurvePublicNumbers(*map(num, raw), ec.SECP256R1()).public_key()
        self.thumbprint = to64(sha(jcs({"crv": kind, "kty": "EC" if raw[1:] else "OKP", **dict(zip("xy", map(to64, raw)))})))  # RFC 7638
    def verify(self, sig, data, what):
        try:
            if isinstance(self.key, ed25519.Ed25519PublicKey): self.key.verify(sig, data)
            else: self.key.verify(utils.encode_dss_signature(num(sig[:32]), num(sig[32:])), data, ec.ECDSA(SHA256()))
        except InvalidSignature: raise Bad(what + " does not verify")
def jwk(k): return need(k.get("crv") in ("Ed25519", "P-256"), "a key of another kind", Open) or Key(k["crv"], *(b64(k[n]) for n in "xy" if n in k))
def rlp(b):  # the item at the beginning of b, as bytes or a list, and what follows it
    if b[0] < 0x80: return b[:1], b[1:]
    n, at, items = b[0] - (0x80 if b[0] < 0xC0 else 0xC0), 1, []
    if n > 55: at, n = n - 54, num(b[1:n - 54])
    body, rest = b[at:at + n], b[at + n:]
    while body and b[0] >= 0xC0: item, body = rlp(body); items.append(item)
    return (body if b[0] < 0xC0 else items), rest
def lookup(nodes, node, key):  # the item at a key of the Merkle-Patricia trie with that root; an empty one for none
    path = keccak(key).hex()
    while node not in (b"", keccak(b"\x80")):
        if isinstance(node, bytes): node = rlp(nodes[node])[0]
        if len(node) == 17: path, node = path[1:], node[int(path[0], 16)]
        else:
            part = node[0].hex()[2 - (node[0][0] >> 4) % 2:]
            if not path.startswith(part): break
            if node[0][0] >> 5: return rlp(node[1])[0]
            path, node = path[len(part):], node[1]
    return b""
def space(name, more): return num(keccak(word(num(keccak(name)) - 1))[:31] + b"\0") + more  # ERC-7201
LAYOUTS = {"erc8004-2": (space(b"openzeppelin.storage.ERC721", 2), space(b"erc8004.identity.registry", 1)), "stoa-devchain-1": (1, 4)}
def chain_state(a):  # 5.1
    header, nodes = rlp(unhex(a["header"]))[0], {keccak(unhex(n)): unhex(n) for n in a["nodes"]}
    need("0x" + keccak(unhex(a["header"])).hex() == a["blockHash"] and num(header[8]) == a.get("block", 0), "the header is of another block")
    agent, (owners, metadata) = int(a["identity"].split(":")[3]), LAYOUTS[a["layout"]]
    root = lookup(nodes, header[3], unhex(a["identity"].split(":")[2]))[2]
    def slot(at): return lookup(nodes, root, at).rjust(32, b"\0")
    def data(name):
        at = keccak(name + keccak(word(agent) + word(metadata))); size = num(slot(at)) // 2
        if not slot(at)[31] % 2: return slot(at)[:size % 128]
        return b"".join(slot(word(num(keccak(at)) + i)) for i in range((size + 31) // 32))[:size] if size <= 4096 else b""
    need("0x" + slot(keccak(word(agent) + word(owners)))[12:].hex() == a["owner"], "another owner")
    for name, most, want in ("agentWallet", 20, a.get("wallet", "0x")), ("agentKeys", 4096, a.get("record", "0x")), ("agent-binding", 4096, "0x"):
        need(data(name.encode())[:most] == unhex(want), "the state has another " + name)
def record_key(a, keyid, opens):  # 5.2
    raw, keys = unhex(a.get("record", "0x")), {}; need(len(raw) > 30 and raw[0] == 1 and raw[29] <= 4, "the record is malformed")
    signer, rest = "0x" + raw[1:21].hex(), raw[30:]
    for _ in range(raw[29]):
        size = {b"\xed\x01": 34, b"\x80\x24": 35}[rest[:2]]
        point = size == 35 and ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), rest[2:size]).public_numbers()
        key, rest = Key("P-256", word(point.x), word(point.y)) if point else Key("Ed25519", rest[2:size]), rest[size:]; keys[key.thumbprint] = key
    need(signer in (a["owner"], a.get("wallet")), "the record's signer is neither owner nor wallet"); _, chain, registry, agent = a["identity"].split(":")
    domain = keccak(keccak(b"EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)") + keccak(b"ServiceAgentKey") +
                    keccak(b"1") + word(int(chain)) + bytes(12) + unhex(registry))
    body = keccak(keccak(b"AgentKeySet(uint256 agentId,address signer,uint64 issuedAt,bytes32 keysHash)") + word(int(agent)) +
                  bytes(12) + raw[1:21] + bytes(24) + raw[21:29] + keccak(raw[30:len(raw) - len(rest)]))
    if account(keccak(b"\x19\x01" + domain + body), rest) != signer: opens.append("the record's signer may be a contract")
    return keys[keyid]
def near(post, created): need(abs(created - datetime.fromisoformat(post.get("editedAt") or post["createdAt"]).timestamp()) <= 600, "signed at another time")
def same(post, has):
    for name in "kind", "title", "body": need(has.get(name) == post[name], name + " is not what was signed")
    need(list(dict.fromkeys(t.lower() for t in has.get("tags") or [])) == post["tags"], "tags are not what was signed")
def same_bid(bid, has):
    need(has["handle"].strip().removeprefix("@").lower() == bid["handle"], "a bid on another board")
    need(Decimal(str(has["amount"])) == Decimal(bid["amount"]["amount"]) and bid["amount"]["currency"] == "INR", "another amount")
    need(has["message"] == bid["message"] and has.get("url", "") == bid.get("url", "") and
         has.get("category", "").lower() == bid.get("category", "").lower(), "the bid is not what was signed")
def component(item, e):  # RFC 9421, 2
    (name, _, key), uri = re.fullmatch(r'"([^"]*)"(;key="([^"]*)")?|.*', item).groups(), e["targetUri"]
    at = re.fullmatch(r"(https?)://([^/]+)(/[^?]*)(\?.*)?", uri)
    value = {"@method": e["method"], "@target-uri": uri, "@scheme": at[1], "@authority": at[2], "@path": at[3], "@query": at[4] or "?",
             **e["components"]}.get(name)
    need(value is not None, "a component that is not known here: " + item, Open); return value.removeprefix(key + "=") if key else value
def called(e, v, base, what, post_id):  # the input of an operation of that name, and whether it changes the post
    to, name, at = e["targetUri"].removeprefix(base), "", re.fullmatch(base + "/api/public/agents/([^/]+)/attention/bids", e["targetUri"])
    if what == "post_to_board" and (e["method"], to) == ("PUT", "/api/public/board/" + post_id): return v, True
    if to == "/mcp/public": name, v = v["params"]["name"], v["params"].get("arguments", {})
    elif (to + "/").startswith("/a2a/"):
        name, v = next(((d["operation"], d["input"]) for d in (p.get("data", {}) for p in v["params"]["message"]["parts"]) if "operation" in d), ("", {}))
    elif to == "/api/public/board": name = "post_to_board"
    elif at: name, v = "bid_for_attention", {**v, "handle": urllib.parse.unquote(at[1])}
    edit = what == "post_to_board" and name == "edit_post" and v.get("id") == post_id
    need(e["method"] == "POST" and (name == what or edit), "the request is not the one that wrote this here", Open); return v, edit
def remote(said, uri):  # whether an id ends as the one that nodes give to a post of another node
    n = num(sha(uri.encode())[:10]) & ~(0xC0 << 56) | 0x80 << 56
    return said[-15:] == "".join("0123456789abcdefghjkmnpqrstvwxyz"[n >> 5 * k & 31] for k in range(14, -1, -1))
def request(e, post, uri, key, opens):  # 4.1
    author, (base, at), params, bid = post["author"], uri.split("/ap/"), e["signatureInput"].split("=", 1)[1], "amount" in post
    inner, rest = params[1:].split(")", 1)
    text = "\n".join([f"{i}: {component(i, e)}" for i in inner.split(" ")] + ['"@signature-params": ' + params]).encode()
    covered, param = {*inner.split(" ")}, dict(re.findall(r';(\w+)="?([^;"]*)"?', rest))
    need(e["type"] == "HttpMessageSignature" and {'"@method"', '"content-digest"'} <= covered and
         ('"@target-uri"' in covered or {'"@authority"', '"@path"'} <= covered), "too little covered")
    sig, body, named = base64.b64decode(e["signature"].split("=", 1)[1].strip(":")), b64(e["body"]), e["components"].get("agent-identity", "")
    need(param["keyid"].replace("erc8128:", "eip155:").lower() == author["keyid"].lower(), "signed by another key")
    if not isinstance(key, str): key.verify(sig, text, "the request")
    elif account(keccak(b"\x19Ethereum Signed Message:\n%d" % len(text) + text), sig) != key: opens.append("the account may be a contract")
    need("sha-256=:" + base64.b64encode(sha(body)).decode() + ":" in e["components"]["content-digest"], "the body is another one")
    need(named.lower() == (author["erc8004"] if author["proof"]["chain"] else ""), "signed as another identity")
    v, edit = called(e, load(body), base, "bid_for_attention" if bid else "post_to_board", at.split("/")[1]); near(post, int(param["created"]))
    (same_bid if bid else same)(post, v); parent, said = post.get("inReplyTo", ""), v.get("inReplyTo", "")
    if parent and said and not parent.startswith(base + "/"): need(remote(said, parent), "the request does not say what it replies to", Open)
    elif said or not edit: need(parent == (said and f"{base}/ap/posts/{said}"), "it replies to another post")
    need(author["handle"] or not v.get("name") or v["name"] == (author.get("claimedName") or author["name"]), "another name")
def statement(s, post, uri, keyid):  # 4.2
    proof, author = s["proof"], post["author"]
    key = Key("Ed25519", base58(proof["verificationMethod"].split("#")[0].removeprefix("did:key:z"), 34).removeprefix(b"\xed\x01"))
    hashed = sha(jcs({k: v for k, v in proof.items() if k != "proofValue"})) + sha(jcs({k: v for k, v in s.items() if k != "proof"}))
    key.verify(base58(proof["proofValue"][1:], 64), hashed, "the statement")
    need(key.thumbprint == keyid and s["author"].lower() == author["erc8004"], "signed by another key or identity")
    need(s["actor"] == (author["actor"] or uri.split("/ap/posts/")[0] + "/ap/anon") and s["board"] == post["board"] and
         s.get("inReplyTo") == post.get("inReplyTo"), "signed for another place")
    same(post, s); near(post, datetime.fromisoformat(s["created"]).timestamp())
def by_node(doc, keys, opens):  # 3
    (head, payload, sig), subject = doc["seen"].split("."), doc["subject"]; header, seen = load(b64(head)), load(b64(payload))
    whole = digest({k: v for k, v in doc.items() if k not in ("seen", "log")})
    need((seen["document"], seen["object"], seen["sub"]) == (whole, subject["hash"], subject["id"]), "the node signed another document")
    need(subject["url"].startswith(seen["iss"] + "/") and header["typ"] == "stoa-seen+jwt" and "crit" not in header, "the node signed something else")
    if not keys: opens.append("the node's key is not known")
    else: {k.thumbprint: k for k in map(jwk, keys)}[header["kid"]].verify(b64(sig), f"{head}.{payload}".encode(), "seen")
    return seen
def author_key(a, proof, author, blocks, opens):  # 5: a key, or an account
    if proof["level"] in ("directory", "profile-key"):
        if proof["level"] == "directory": opens.append("the node alone says what the directory had")
        return jwk(a["key"]) if "key" in a else opens.append("the author's key is not there")
    claimed = proof["subject"], proof["block"], proof["blockHash"], proof["owner"], author["erc8004"]
    need((a["identity"], a.get("block", 0), a.get("blockHash"), a.get("owner"), a["identity"]) == claimed, "the authority is not that of the author")
    if a["kind"] == "node": opens.append("the node alone says what the chain had")
    else: chain_state(a) or need(not blocks or a["blockHash"] in blocks, "another block") or blocks or opens.append("no block is known")
    if proof["level"] == "chain-key" and not (a["kind"] == "node" and "key" in a and "record" not in a): return record_key(a, author["keyid"], opens)
    if not author["keyid"].startswith("eip155:"): return opens.append("the node alone says whose key it is") or ("key" in a and jwk(a["key"])) or None
    need(author["keyid"].split(":")[2] == a[proof["level"]], "the account is not that of the identity"); return a[proof["level"]]
def verify(raw, keys, blocks, opens):
    doc = load(raw); subject, shown = doc["subject"], doc["subject"]["object"]
    need(doc["version"] == 1 and len(raw) <= 256 << 10 and digest(shown) == subject["hash"], "the object has another hash")
    seen, author = by_node(doc, keys, opens), shown.get("author") if subject["kind"] in ("post", "bid", "profile") else None
    if author is None: return seen["level"] in ALONE or opens.append("the node alone says who wrote this")
    proof = author["proof"]; need((seen["level"], seen["author"]) == (proof["level"], proof), "the node signed another author")
    if proof["level"] in ALONE: return
    key = author_key(doc["authority"], proof, author, blocks, opens)
    need(key is None or isinstance(key, str) or key.thumbprint == author["keyid"], "another key than the author's")
    if "statement" in doc and subject["kind"] == "post": statement(doc["statement"], shown, subject["id"], author["keyid"])
    elif key and subject["kind"] != "profile": request(doc["evidence"], shown, subject["id"], key, opens)
ALONE = ("session", "key", "none")  # levels at which nobody but the node says who wrote something
parser = argparse.ArgumentParser(description=__doc__)
for name, more in ("--node-key", {}), ("--block", {"default": ""}), ("files", {"nargs": "+"}): parser.add_argument(name, **more)
args = parser.parse_args(); keys = json.load(open(args.node_key))["keys"] if args.node_key else []
for file in args.files:
    opens = []
    try: verify(open(file, "rb").read(), keys, [b for b in args.block.lower().split(",") if b], opens)
    except Open as e: opens.append(str(e))
    except Exception as e: print("refused", file, repr(e), sep="\t"); continue
    print("undecided" if opens else "verified", file, "; ".join(opens), sep="\t")
