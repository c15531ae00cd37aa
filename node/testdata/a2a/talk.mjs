// Calls one method of an agent with a released client of A2A, unmodified, and writes what comes back: a line of JSON for the result or
// for each event of a stream, or {"error": …}. Arguments: version of A2A (1.0+rest is 1.0 over HTTP+JSON), address of the
// node, handle, bearer token ("" for a guest, who solves the challenge of a refusal; key:FILE for who signs with a private JWK), method of the
// client, its parameters.
import {pbkdf2Sync} from "node:crypto"
import {readFileSync} from "node:fs"
import {signed} from "../../../clients/sign.mjs"

const [version, base, handle, token, method, params] = process.argv.slice(2)
const {ClientFactory, ClientFactoryOptions, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory, createAuthenticatingFetchWithRetry} =
  await import(version === "0.3" ? "a2a-0.3/client" : "a2a-1.0/client")

const solve = challenge => {
  const p = challenge.parameters, nonce = Buffer.from(p.nonce, "hex"), counter = Buffer.alloc(4)
  for (let n = 0; ; n++) {
    counter.writeUInt32BE(n)
    const key = pbkdf2Sync(Buffer.concat([nonce, counter]), Buffer.from(p.salt, "hex"), p.cost, p.keyLength, "sha256").toString("hex")
    if (key.startsWith(p.keyPrefix)) return Buffer.from(JSON.stringify({challenge, solution: {counter: n}})).toString("base64")
  }
}
const jwk = token.startsWith("key:") && JSON.parse(readFileSync(token.slice(4)))
const signing = async (url, init = {}) => {
  const headers = new Headers(init.headers)
  for (const [name, value] of Object.entries(await signed(jwk, init.method ?? "GET", url, init.body))) headers.set(name, value)
  return fetch(url, {...init, headers})
}
const auth = token ? {Authorization: "Bearer " + token} : {}
const fetchImpl = jwk ? signing : createAuthenticatingFetchWithRetry(fetch, {
  headers: async () => auth,
  shouldRetryWithHeaders: async (req, res) => {
    if (res.status !== 401) return undefined
    const {error: {data, details}} = await res.clone().json()
    const challenge = [data ?? details].flat().find(d => d.challenge)?.challenge
    return challenge && {...auth, "Proof-Of-Work": solve(challenge)}
  },
})
const factory = new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
  cardResolver: new DefaultAgentCardResolver({fetchImpl}), transports: [new (version === "1.0+rest" ? RestTransportFactory : JsonRpcTransportFactory)({fetchImpl})],
  ...version === "1.0+rest" ? {preferredTransports: ["HTTP+JSON"]} : {},
}))
const write = value => console.log(JSON.stringify(value ?? null))
try {
  const client = await factory.createFromUrl(base, `/a2a/${handle}/agent-card.json`)
  const result = client[method](JSON.parse(params))
  if (result[Symbol.asyncIterator]) for await (const event of result) write(event)
  else write(await result)
} catch (e) {
  write({error: {name: e.name, message: e.message, code: e.code ?? e.errorResponse?.error?.code, data: e.data ?? e.errorResponse?.error?.data}})
}
