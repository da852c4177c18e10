/**
 * `npm run test:vendors`: the golden requests, those for webhooks included, and the schemas of shipped definitions against the
 * documents of their vendors, which npm packages and repositories have. The packages are those of this folder, which the first
 * run installs; repositories are read from `--documents DIR`, where each is checked out as `<owner>/<name>`: `--checkouts` prints
 * the commands for it, with the commits for which the exceptions hold. Names of definitions as arguments run these alone.
 */

import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { SHIPPED_NAMES } from '../../../src/engine/catalog/index.ts'
import type { JsonObject } from '../../../src/foundation/json/index.ts'
import { type GoldenCall, readGoldenFile, readSubscriptionCalls } from '../../unit/engine/catalog/golden-file.ts'
import { shipped } from '../../unit/engine/catalog/shipped.ts'
import { checkMethod } from './check-definition.ts'
import { graphqlCheck } from './check-graphql.ts'
import { checkRequest } from './check-request.ts'
import { documentName, readDocuments, type VendorDocument, type VendorSource } from './documents.ts'
import { findOperation, listOperations, type Operation } from './operations.ts'

/** Findings that are no mistake of the definition: the document is older or stricter than the API, or describes it elsewhere. */
interface Exception {
  /** Texts of findings, `*` for any part of one. */
  readonly findings: readonly string[]
  readonly reason: string
}

/** What one golden call came to; `isMatched` when the document has its operation. */
interface CallResult {
  readonly isMatched: boolean
  readonly findings: readonly string[]
}

/** Statuses with which a golden call shows that the API refuses its values. */
const REFUSALS = [400, 422]

const vendors = readJson<Record<string, VendorSource>>('vendors.json')
const exceptions = readJson<Record<string, readonly Exception[]>>('exceptions.json')
const { values, positionals } = parseArgs({
  options: { documents: { type: 'string' }, checkouts: { type: 'boolean' } },
  allowPositionals: true,
})

if (values.checkouts) printCheckouts(values.documents ?? '.')
else compareAll()

function compareAll(): void {
  const unknown = positionals.filter((name) => !SHIPPED_NAMES.includes(name))
  if (unknown.length > 0) throw new Error(`no shipped definitions: ${unknown.join(', ')}`)
  installPackages()
  const names = positionals.length > 0 ? positionals : SHIPPED_NAMES
  const hasProblems = names.map(compareVendor)
  if (hasProblems.includes(true)) process.exitCode = 1
}

/** Compares one definition, prints its line and what is new; `true` when something is. */
function compareVendor(name: string): boolean {
  const source = vendors[name]
  const documents = source === undefined ? undefined : readDocuments(source, values.documents)
  if (source === undefined || documents === undefined) {
    const reason = source === undefined ? 'no document' : `no document here: ${source.repository}`
    console.log(JSON.stringify({ name, document: null, reason, ok: true }))
    return false
  }
  const calls = [...(readGoldenFile(name)?.calls ?? []), ...readSubscriptionCalls(name)]
  const results = compareCalls(name, source, documents, calls)
  const findings = [...new Set(results.flatMap((result) => result.findings))]
  const argued = exceptions[name] ?? []
  const isArgued = (finding: string) =>
    argued.some((exception) => exception.findings.some((text) => isLike(text, finding)))
  const fresh = findings.filter((finding) => !isArgued(finding))
  const unused = argued.flatMap((exception) =>
    exception.findings.filter((text) => !findings.some((finding) => isLike(text, finding))),
  )
  for (const finding of fresh) console.error(`${name}: ${finding}`)
  for (const text of unused) console.error(`${name}: the exception "${text}" no longer occurs`)
  console.log(
    JSON.stringify({
      name,
      document: documentName(source),
      requests: calls.length,
      matched: results.filter(({ isMatched }) => isMatched).length,
      clean: results.filter((result) => result.findings.length === 0).length,
      argued: findings.length - fresh.length,
      findings: fresh.length,
      ok: fresh.length + unused.length === 0,
    }),
  )
  return fresh.length + unused.length > 0
}

function compareCalls(
  name: string,
  source: VendorSource,
  documents: readonly VendorDocument[],
  calls: readonly GoldenCall[],
): CallResult[] {
  const [graphql] = documents.filter(({ kind }) => kind === 'graphql')
  if (graphql?.kind === 'graphql') {
    const check = graphqlCheck(graphql.text)
    return calls.map(({ call, request }) => ({ isMatched: true, findings: prefixed(call, check(request)) }))
  }
  const operations = documents.flatMap((document) =>
    document.kind === 'openapi' ? listOperations(document.root, source) : [],
  )
  const methods = methodsOf(name)
  const checked = new Set<string>()
  return calls.map((call) => {
    const operation = findOperation(operations, call.request.method, call.request.url)
    const findings =
      operation === undefined
        ? ['operation unknown']
        : findingsOf(operation, call, checked.has(call.call) ? undefined : methods.get(call.call))
    checked.add(call.call)
    return { isMatched: operation !== undefined, findings: prefixed(call.call, findings) }
  })
}

function findingsOf(operation: Operation, call: GoldenCall, method: JsonObject | undefined): string[] {
  const isRefused = REFUSALS.includes(call.answer?.status ?? 0)
  return [
    ...(isRefused ? [] : checkRequest(operation, call.request)),
    ...(method === undefined ? [] : checkMethod(operation, method, call)),
  ]
}

/** The methods of a definition as it is written, by `<resource>.<method>`. */
function methodsOf(name: string): ReadonlyMap<string, JsonObject> {
  const resources = (shipped(name).config.resources ?? {}) as Readonly<
    Record<string, Readonly<Record<string, JsonObject>>>
  >
  return new Map(
    Object.entries(resources).flatMap(([resource, methods]) =>
      Object.entries(methods).map(([method, value]) => [`${resource}.${method}`, value] as const),
    ),
  )
}

function prefixed(call: string, findings: readonly string[]): string[] {
  return findings.map((finding) => `${call} ${finding}`)
}

function isLike(pattern: string, text: string): boolean {
  return new RegExp(`^${pattern.split('*').map(RegExp.escape).join('.*')}$`, 's').test(text)
}

/** The commands that check out all repositories below the folder of `--documents`. */
function printCheckouts(directory: string): void {
  for (const { repository, commit } of Object.values(vendors)) {
    if (repository === undefined) continue
    const folder = join(directory, repository)
    console.log(`git clone --filter=blob:none https://github.com/${repository} '${folder}' &&`)
    console.log(`  git -C '${folder}' checkout ${commit}`)
  }
}

function readJson<Value>(file: string): Value {
  return JSON.parse(readFileSync(join(import.meta.dirname, file), 'utf8')) as Value
}

function installPackages(): void {
  if (existsSync(join(import.meta.dirname, 'node_modules'))) return
  const { status } = spawnSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: import.meta.dirname,
    stdio: 'inherit',
  })
  if (status !== 0) throw new Error('npm ci failed')
}
