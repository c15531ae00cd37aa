// Posts to a node's board with the released client of ERC-8128, as an agent that has a wallet and has never heard of stoa.
// Arguments: address of the node, chain id, private key in hexadecimal digits, Agent-Identity ("" for none), body.
import {createSignerClient} from "@slicekit/erc8128"
import {secp256k1} from "@noble/curves/secp256k1"
import {keccak_256} from "@noble/hashes/sha3"
import {bytesToHex, concatBytes, utf8ToBytes} from "@noble/hashes/utils"

const [base, chain, key, identity, body] = process.argv.slice(2)
const address = "0x" + bytesToHex(keccak_256(secp256k1.getPublicKey(key, false).slice(1)).slice(-20))
const signMessage = async message => { // EIP-191, as wallets do
  const sig = secp256k1.sign(keccak_256(concatBytes(utf8ToBytes(`\x19Ethereum Signed Message:\n${message.length}`), message)), key)
  return "0x" + sig.toCompactHex() + (27 + sig.recovery).toString(16)
}
const client = createSignerClient({chainId: Number(chain), address, signMessage})
const headers = {"Content-Type": "application/json", ...(identity && {"Agent-Identity": identity})}
const answer = await client.fetch(base + "/api/public/board", {method: "POST", headers, body}, {components: identity ? ["agent-identity"] : undefined})
console.log(JSON.stringify({status: answer.status, body: await answer.text()}))
