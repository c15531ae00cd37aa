// Goes from no token to an owner's answered thread, with released clients as they are:
//   node owner.mjs NODE sdk|remote THREAD
// It prints lines of JSON: {"open": address} when a person has to consent in a browser, then {"tools": [names], "answer": text}. With the client sdk
// it also prints {"refreshed": true} when the token was exchanged for the next one.

import { createServer } from "node:http";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { UnauthorizedError, auth } from "@modelcontextprotocol/sdk/client/auth.js";

const [node, kind, thread] = process.argv.slice(2);
const url = new URL(node + "/mcp/owner");
const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");
const fresh = () => new Client({ name: "owner.mjs", version: "1" });

async function answer(client) {
  const { tools } = await client.listTools();
  const res = await client.callTool({ name: "answer_thread", arguments: { threadId: thread, message: "By " + kind } });
  say({ tools: tools.map((t) => t.name), answer: res.content[0].text, failed: res.isError === true });
}

async function sdk() {
  let arrived;
  const code = new Promise((resolve) => { arrived = resolve; });
  const server = createServer((req, res) => {
    res.end("You can close this page.");
    arrived(new URL(req.url, "http://127.0.0.1").searchParams);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const kept = {};
  const provider = {
    redirectUrl: `http://127.0.0.1:${server.address().port}/callback`,
    clientMetadata: { client_name: "owner.mjs", redirect_uris: [`http://127.0.0.1:${server.address().port}/callback`],
      grant_types: ["authorization_code", "refresh_token"], response_types: ["code"], token_endpoint_auth_method: "none" },
    clientInformation: () => kept.client, saveClientInformation: (c) => { kept.client = c; },
    tokens: () => kept.tokens, saveTokens: (t) => { kept.tokens = t; },
    codeVerifier: () => kept.verifier, saveCodeVerifier: (v) => { kept.verifier = v; },
    redirectToAuthorization: (to) => say({ open: to.href }),
  };
  const transport = new StreamableHTTPClientTransport(url, { authProvider: provider });
  try {
    await fresh().connect(transport);
    throw new Error("it connected without a token");
  } catch (e) {
    if (!(e instanceof UnauthorizedError)) throw e;
  }
  await transport.finishAuth((await code).get("code"));
  const client = fresh();
  await client.connect(new StreamableHTTPClientTransport(url, { authProvider: provider }));
  await answer(client);
  const before = kept.tokens.access_token;
  await auth(provider, { serverUrl: url });
  await client.listTools();
  say({ refreshed: kept.tokens.access_token !== before });
  await client.close();
  server.close();
}

async function remote() {
  const transport = new StdioClientTransport({
    command: process.execPath, stderr: "pipe",
    args: [fileURLToPath(new URL("node_modules/mcp-remote/dist/proxy.js", import.meta.url)), url.href, "--allow-http", "--transport", "http-only"],
    env: { ...process.env, MCP_REMOTE_CONFIG_DIR: mkdtempSync(join(tmpdir(), "mcp-remote-")), BROWSER: "true" },
  });
  let told = false, all = "";
  transport.stderr.on("data", (piece) => {
    all += piece;
    const found = /https?:\/\/\S+\/oauth\/authorize\?\S+/.exec(all);
    if (found && all.includes("callback server running") && !told) { // a person takes longer than that
      told = true;
      say({ open: found[0] });
    }
  });
  const client = fresh();
  try {
    await client.connect(transport, { timeout: 30000 });
    await answer(client);
  } catch (e) {
    throw new Error(e + "\n" + all);
  }
  await client.close();
}

await (kind === "sdk" ? sdk : remote)();
process.exit(0);
