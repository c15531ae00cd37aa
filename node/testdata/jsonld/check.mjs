// Reads documents of schema.org in JSON-LD from standard input, one a line, with the names of their types as
// the arguments. It fails when an expansion loses a member or value, or when a document does not fit the
// types of schema-dts. Nothing is fetched: the context of schema.org is the vocabulary, without the
// types of its members.
import {execFileSync} from "node:child_process"
import {mkdtempSync, readFileSync, rmSync, writeFileSync} from "node:fs"
import {dirname, join} from "node:path"
import {fileURLToPath} from "node:url"
import jsonld from "jsonld"

const here = dirname(fileURLToPath(import.meta.url))
const types = process.argv.slice(2)
const docs = readFileSync(0, "utf8").trim().split("\n").map(line => JSON.parse(line))
if (docs.length !== types.length) throw new Error(`${docs.length} documents of ${types.length} types`)
const context = {"@context": {"@vocab": "https://schema.org/", id: "@id", type: "@type", url: {"@type": "@id"}, sameAs: {"@type": "@id"}, image: {"@type": "@id"},
  availability: {"@type": "@id"}, dayOfWeek: {"@type": "@id"}, returnPolicyCategory: {"@type": "@id"}}}
const documentLoader = async url => {
  if (!/^https?:\/\/schema\.org\/?$/.test(url)) throw new Error("the document names the context " + url)
  return {contextUrl: null, documentUrl: url, document: context}
}

// leaves counts the values of a document that are neither objects nor lists.
const leaves = v => Array.isArray(v) ? v.reduce((n, x) => n + leaves(x), 0)
  : v && typeof v === "object" ? Object.entries(v).reduce((n, [k, x]) => n + (k === "@context" || k === "@language" ? 0 : leaves(x)), 0) : 1

for (const doc of docs) {
  const expanded = await jsonld.expand(doc, {documentLoader, safe: true}) // safe: an error where something would be dropped
  if (leaves(expanded) !== leaves(doc)) throw new Error(`${leaves(doc)} values became ${leaves(expanded)}:\n` + JSON.stringify(expanded, null, 1))
  const compacted = await jsonld.compact(expanded, context, {documentLoader})
  if (leaves(compacted) !== leaves(doc)) throw new Error("values were lost on the way back")
}

const dir = mkdtempSync(join(here, "check-"))
try {
  writeFileSync(join(dir, "doc.ts"), `import type {WithContext, ${[...new Set(types)]}} from "schema-dts";\n` +
    docs.map((doc, n) => `export const doc${n}: WithContext<${types[n]}> = ${JSON.stringify(doc)};\n`).join(""))
  execFileSync(process.execPath, [join(here, "node_modules/typescript/bin/tsc"), "--noEmit", "--strict", "--module", "nodenext", "--target", "es2022", join(dir, "doc.ts")], {stdio: "pipe"})
} catch (e) {
  throw new Error("a document does not fit the types:\n" + (e.stdout ?? e))
} finally {
  rmSync(dir, {recursive: true})
}
