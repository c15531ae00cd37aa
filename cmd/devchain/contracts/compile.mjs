// Compiles the contracts of this folder and writes one artifact beside each:
// NAME.json with abi, bytecode, compiler and the SHA-256 of NAME.sol.
// Run: npm install && npm run compile
//
// node compile.mjs DIR [SETTINGS] writes them to DIR, with other settings than
// the usual: JSON, merged over those below; its member "solc" names the package
// of another compiler. `npm run compile:other` is such a run.
import {createHash} from "node:crypto";
import {mkdirSync, readdirSync, readFileSync, writeFileSync} from "node:fs";
import {join} from "node:path";
import {fileURLToPath} from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const [dir = here, other = "{}"] = process.argv.slice(2);
const {solc: compiler = "solc", ...settings} = {
  viaIR: true, // NewFeedback has more arguments than the stack has room for
  evmVersion: "prague",
  optimizer: {enabled: true, runs: 200},
  metadata: {bytecodeHash: "none"},
  outputSelection: {"*": {"*": ["abi", "evm.bytecode.object"]}},
  ...JSON.parse(other),
};
const {default: solc} = await import(compiler);
const names = readdirSync(here).filter((f) => f.endsWith(".sol")).sort();
const sources = Object.fromEntries(names.map((f) => [f, {content: readFileSync(join(here, f), "utf8")}]));
const out = JSON.parse(solc.compile(JSON.stringify({language: "Solidity", sources, settings})));
for (const e of out.errors ?? []) console.error(e.formattedMessage);
if ((out.errors ?? []).some((e) => e.severity === "error")) process.exit(1);

mkdirSync(dir, {recursive: true});
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
  writeFileSync(join(dir, name + ".json"), `${head},\n  "abi": [\n${abi}\n  ]\n}\n`);
  console.error(name, artifact.bytecode.length / 2 - 1, "bytes");
}
