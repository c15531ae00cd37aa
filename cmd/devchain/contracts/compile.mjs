// Compiles the contracts of this folder and writes one artifact beside each:
// NAME.json with abi, bytecode, compiler and the SHA-256 of NAME.sol.
// Run: npm install && npm run compile
import {createHash} from "node:crypto";
import {readdirSync, readFileSync, writeFileSync} from "node:fs";
import solc from "solc";

const here = new URL(".", import.meta.url);
const names = readdirSync(here).filter((f) => f.endsWith(".sol")).sort();
const sources = Object.fromEntries(names.map((f) => [f, {content: readFileSync(new URL(f, here), "utf8")}]));
const settings = {
  viaIR: true, // NewFeedback has more arguments than the stack has room for
  evmVersion: "prague",
  optimizer: {enabled: true, runs: 200},
  metadata: {bytecodeHash: "none"},
  outputSelection: {"*": {"*": ["abi", "evm.bytecode.object"]}},
};
const out = JSON.parse(solc.compile(JSON.stringify({language: "Solidity", sources, settings})));
for (const e of out.errors ?? []) console.error(e.formattedMessage);
if ((out.errors ?? []).some((e) => e.severity === "error")) process.exit(1);

for (const file of names) {
  const name = file.replace(".sol", "");
  const c = out.contracts[file][name];
  const artifact = {
    contract: name,
    compiler: solc.version(),
    sourceSHA256: createHash("sha256").update(sources[file].content).digest("hex"),
    bytecode: "0x" + c.evm.bytecode.object,
  };
  const abi = c.abi.map((x) => "    " + JSON.stringify(x)).join(",\n");
  const head = JSON.stringify(artifact, null, 2).replace(/\n}$/, "");
  writeFileSync(new URL(name + ".json", here), `${head},\n  "abi": [\n${abi}\n  ]\n}\n`);
  console.error(name, artifact.bytecode.length / 2 - 1, "bytes");
}
