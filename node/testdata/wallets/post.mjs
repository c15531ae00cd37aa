// Posts to a node's board as an agent that has a wallet and has never heard of stoa, with a released client: erc8128, siwa, siwe or x402.
// Arguments: address of the node, chain id, private key in hexadecimal digits, identity ("" for none), body, client.
import {secp256k1} from "@noble/curves/secp256k1"
import {keccak_256} from "@noble/hashes/sha3"
import {bytesToHex, concatBytes, hexToBytes, utf8ToBytes} from "@noble/hashes/utils"

const [base, chain, key, identity, body, client = "erc8128"] = process.argv.slice(2)
const hex = bytesToHex(keccak_256(secp256k1.getPublicKey(key, false).slice(1)).slice(-20))
const sums = bytesToHex(keccak_256(utf8ToBytes(hex)))
const address = "0x" + [...hex].map((c, i) => parseInt(sums[i], 16) > 7 ? c.toUpperCase() : c).join("") // EIP-55
const personalSign = message => { // EIP-191, as wallets do
  const sig = secp256k1.sign(keccak_256(concatBytes(utf8ToBytes(`\x19Ethereum Signed Message:\n${message.length}`), message)), key)
  return "0x" + sig.toCompactHex() + (27 + sig.recovery).toString(16)
}
const signText = async text => personalSign(utf8ToBytes(text))
const url = base + "/api/public/board"
const json = {"Content-Type": "application/json"}
const post = (at, value) => fetch(base + at, {method: "POST", headers: json, body: JSON.stringify(value)}).then(r => r.json())

const clients = {
  async erc8128() {
    const {createSignerClient} = await import("@slicekit/erc8128")
    const signer = createSignerClient({chainId: Number(chain), address, signMessage: async message => personalSign(message)})
    const headers = {...json, ...(identity && {"Agent-Identity": identity})}
    return signer.fetch(url, {method: "POST", headers, body}, {components: identity ? ["agent-identity"] : undefined})
  },
  async siwa() {
    const {signSIWAMessage} = await import("@buildersgarden/siwa/siwa")
    const {signAuthenticatedRequest} = await import("@buildersgarden/siwa/erc8128")
    const signer = {getAddress: async () => address, signMessage: signText, signRawMessage: async raw => personalSign(hexToBytes(raw.slice(2)))}
    const at = identity.lastIndexOf(":")
    const agent = {agentId: Number(identity.slice(at + 1)), agentRegistry: identity.slice(0, at)}
    const {nonce, issuedAt, expirationTime} = await post("/siwa/nonce", {address, ...agent})
    const signed = await signSIWAMessage({domain: new URL(base).host, uri: base, chainId: Number(chain), nonce, issuedAt, expirationTime, ...agent}, signer)
    const verdict = await post("/siwa/verify", signed)
    if (verdict.status !== "authenticated") throw new Error(JSON.stringify(verdict))
    return fetch(await signAuthenticatedRequest(new Request(url, {method: "POST", headers: json, body}), verdict.receipt, signer, Number(chain)))
  },
  async siwe() {
    const {SiweMessage} = await import("siwe")
    const text = await (await fetch(base + "/api/public/sign-in")).json()
    const {domain, uri, version, statement, nonce, issuedAt, expirationTime} = text
    const message = new SiweMessage({domain, uri, version, statement, nonce, issuedAt, expirationTime, address, chainId: Number(chain), resources: [identity]}).prepareMessage()
    const {token} = await post("/api/public/sign-in", {message, signature: await signText(message)})
    return fetch(url, {method: "POST", headers: {...json, Authorization: "Bearer " + token}, body})
  },
  async x402() {
    const {createSIWxPayload, encodeSIWxHeader} = await import("@x402/extensions/sign-in-with-x")
    const {chains, ...info} = await (await fetch(base + "/api/public/sign-in")).json()
    const wallet = {account: {address}, signMessage: ({message}) => signText(message)}
    const payload = await createSIWxPayload({...info, chainId: chains[0], type: "eip191", resources: [identity]}, wallet, url)
    return fetch(url, {method: "POST", headers: {...json, "SIGN-IN-WITH-X": encodeSIWxHeader(payload)}, body})
  },
}
const answer = await clients[client]()
console.log(JSON.stringify({status: answer.status, body: await answer.text()}))
