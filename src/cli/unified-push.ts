import { isDeepStrictEqual } from 'node:util'
import { type Failure, isJsonObject, isUuid, type JsonObject, mustBeOneOf, toDoubles } from '../base/index.ts'
import {
  createUnifiedClient,
  hasReason,
  type PushPlace,
  type RemoteMapping,
  type UnifiedClient,
} from '../client/index.ts'
import { type Invocation, type RunCommand, UsageError } from './command.ts'
import { FileError, readJsonFile } from './definition-file.ts'
import { printLine, printLines } from './output.ts'
import { readServerAddress } from './server-address.ts'

const SCOPES = ['base', 'environment', 'account']
const STATES = ['created', 'changed', 'unchanged', 'kept', 'failed'] as const
type PushState = (typeof STATES)[number]

/** A mapping of a file. */
interface MappingToPush {
  readonly place: PushPlace
  readonly resource: string
  readonly method: string
  readonly config: JsonObject
}

/** What pushing works with; `report` prints a line. */
interface Push {
  readonly client: UnifiedClient
  readonly isDryRun: boolean
  report(state: PushState, name: string): void
}

/** Stores a model and the mappings of files on a server. Exits with 1 when one is rejected; the others are stored. */
export const runUnifiedPush: RunCommand = async ({ operands: files, options, flags, environment }) => {
  if (files.length === 0 && options.model === undefined) throw new UsageError('unified push takes files or --model')
  const mappings = files.flatMap((file) => readMappings(file, options))
  const model = options.model === undefined ? undefined : readModelFile(options.model, mappings)
  const client = createUnifiedClient(readServerAddress('unified push', options, environment))
  const counts = new Map<PushState, number>()
  const push: Push = {
    client,
    isDryRun: flags.has('dryRun'),
    report(state, name) {
      counts.set(state, (counts.get(state) ?? 0) + 1)
      printLines(`${state.padEnd(9)} ${name}`.split('\n'))
    },
  }
  if (model !== undefined) await pushModel(push, model)
  for (const place of placesOf(mappings)) await pushMappings(push, place, mappings)
  const totals = STATES.flatMap((state) => (counts.has(state) ? [`${counts.get(state)} ${state}`] : []))
  printLine(`${totals.join(', ') || 'nothing to store'}${push.isDryRun ? '; dry run: nothing is stored' : ''}`)
  return counts.has('failed') ? 1 : 0
}

async function pushModel(
  { client, isDryRun, report }: Push,
  { name, config }: { readonly name: string; readonly config: JsonObject },
): Promise<void> {
  const before = await client.findModel(name)
  const state = before === undefined ? 'created' : isSame(before.config, config) ? 'unchanged' : 'changed'
  if (state !== 'unchanged' && !isDryRun) await client.saveModel(name, config, before)
  report(state, `model ${name}`)
}

/**
 * Stores the mappings of one place. One that is rejected is tried again after the others, which it may need, until no
 * further one is stored. Warnings are asked for when all are stored: on the way there, others that belong to it are missing.
 */
async function pushMappings(push: Push, place: PushPlace, all: readonly MappingToPush[]): Promise<void> {
  const stored = new Map((await push.client.listMappings(place)).map((each) => [nameOf(place, each), each]))
  let waiting = all.filter((each) => each.place === place)
  const kept = new Set(stored.keys())
  for (const each of waiting) kept.delete(nameOf(place, each))
  let rejected: { readonly mapping: MappingToPush; readonly failure: Failure }[] = []
  const written: (readonly [state: PushState, mapping: MappingToPush])[] = []
  for (let before = Number.POSITIVE_INFINITY; waiting.length > 0 && waiting.length < before; ) {
    before = waiting.length
    rejected = []
    for (const mapping of waiting) {
      const result = await pushMapping(push, mapping, stored.get(nameOf(place, mapping)))
      if (typeof result === 'string') written.push([result, mapping])
      else rejected.push({ mapping, failure: result })
    }
    waiting = rejected.map(({ mapping }) => mapping)
  }
  for (const [state, mapping] of written) {
    push.report(state, nameOf(place, mapping))
    if (state !== 'unchanged' && !push.isDryRun) await printWarnings(push, mapping)
  }
  for (const { mapping, failure } of rejected) push.report('failed', `${nameOf(place, mapping)}: ${reasonsOf(failure)}`)
  for (const name of kept) push.report('kept', `${name} (not in the file)`)
}

/** @returns what became of it, or why the server rejects its config */
async function pushMapping(
  { client, isDryRun }: Push,
  { place, resource, method, config }: MappingToPush,
  before: RemoteMapping | undefined,
): Promise<PushState | Failure> {
  if (before !== undefined && isSame(before.config ?? {}, config)) return 'unchanged'
  const state = before === undefined ? 'created' : 'changed'
  if (isDryRun) return state
  try {
    if (before === undefined) await client.createMapping(place, { resource, method, config })
    else await client.replaceMapping(before, config)
    return state
  } catch (error) {
    if (hasReason(error, 'DEFINITION_INVALID')) return error
    throw error
  }
}

async function printWarnings({ client }: Push, { place, resource, method, config }: MappingToPush): Promise<void> {
  for (const { severity, path, message, rule } of await client.checkMapping(place, { resource, method, config }))
    printLine(`  ${severity}: ${path} ${message} [${rule}]`)
}

/** The mappings of a file, those that all methods of a resource share first. @throws FileError */
function readMappings(file: string, options: Invocation['options']): readonly MappingToPush[] {
  const { model, integration, resources, ...rest } = readJsonFile(file)
  const [unknown] = Object.keys(rest)
  if (typeof model !== 'string' || typeof integration !== 'string' || !isJsonObject(resources) || unknown !== undefined)
    throw new FileError(
      `${file} must be {model, integration, resources}${unknown === undefined ? '' : `, without ${unknown}`}`,
    )
  const place = placeOf(model, integration, options)
  return Object.entries(resources).flatMap(([resource, methods]) =>
    Object.entries(objectAt(file, `resources.${resource}`, methods))
      .map(([method, config]) => ({
        place,
        resource,
        method,
        config: objectAt(file, `resources.${resource}.${method}`, config),
      }))
      .sort((a, b) => Number(b.method === '*') - Number(a.method === '*')),
  )
}

function placeOf(model: string, integrationName: string, { scope, account }: Invocation['options']): PushPlace {
  const given = scope ?? (account === undefined ? 'environment' : 'account')
  if (!SCOPES.includes(given)) throw new UsageError(`unified push --scope ${mustBeOneOf(given, SCOPES)}`)
  if ((given === 'account') !== (account !== undefined))
    throw new UsageError('unified push takes --account ID with the scope account alone')
  if (account !== undefined && !isUuid(account)) throw new UsageError('unified push --account takes an id')
  return { scope: given, integratedAccountId: account, model, integrationName }
}

/** A model file, named by itself or by the mappings. @throws FileError */
function readModelFile(file: string, mappings: readonly MappingToPush[]) {
  const { name: own, ...config } = readJsonFile(file)
  const names = [...new Set([...(typeof own === 'string' ? [own] : []), ...mappings.map(({ place }) => place.model)])]
  const [name] = names
  if (name === undefined) throw new FileError(`${file} has no name, and no mapping names the model`)
  if (names.length > 1) throw new FileError(`${file} is one model, but these are named: ${names.join(', ')}`)
  return { name, config }
}

function objectAt(file: string, path: string, value: unknown): JsonObject {
  if (isJsonObject(value as JsonObject)) return value as JsonObject
  throw new FileError(`${file}: ${path} must be an object`)
}

function placesOf(mappings: readonly MappingToPush[]): readonly PushPlace[] {
  return [...new Set(mappings.map(({ place }) => place))]
}

function nameOf(
  { model, integrationName }: PushPlace,
  { resource, method }: { resource: string; method: string },
): string {
  return `${model}/${resource} ${method} of ${integrationName}`
}

function reasonsOf({ publicMessage, violations }: Failure): string {
  return violations.length < 2
    ? publicMessage
    : violations.map((each) => `\n  ${each.field} ${each.description}`).join('')
}

function isSame(a: JsonObject, b: JsonObject): boolean {
  return isDeepStrictEqual(toDoubles(a), toDoubles(b))
}
