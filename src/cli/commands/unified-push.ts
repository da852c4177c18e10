import { isUuid, mustBeOneOf } from '../../foundation/base/index.ts'
import { isJsonObject, type JsonObject } from '../../foundation/json/index.ts'
import { pushUnified, type UnifiedPush, type UnifiedPushResult } from '../client/unified.ts'
import { type Invocation, type RunCommand, UsageError } from './command.ts'
import { FileError, readJsonFile } from './definition-file.ts'
import { printLine, printLines } from './output.ts'
import { readServerAddress } from './server-address.ts'

const SCOPES = ['base', 'environment', 'account']
const STATES = ['created', 'changed', 'unchanged', 'kept', 'failed']

type MappingToPush = UnifiedPush['mappings'][number]
type ReportedMapping = UnifiedPushResult['mappings'][number]

/** Stores a model and the mappings of files on a server. Exits with 1 when one is rejected; the others are stored. */
export const runUnifiedPush: RunCommand = async ({ operands: files, options, flags, environment }) => {
  if (files.length === 0 && options.model === undefined) throw new UsageError('unified push takes files or --model')
  const place = placeOf(options)
  const mappings = files.flatMap(readMappings)
  const models = options.model === undefined ? [] : [readModelFile(options.model, mappings)]
  const validateOnly = flags.has('dryRun')
  const address = readServerAddress('unified push', options, environment)
  const pushed = await pushUnified(address, { ...place, models, mappings, validateOnly })
  for (const { name, state } of pushed.models) printLine(`${state.padEnd(9)} model ${name}`)
  for (const mapping of pushed.mappings) printLines(describe(mapping))
  const states = [...pushed.models, ...pushed.mappings].map(({ state }) => state)
  const totals = STATES.flatMap((state) => {
    const count = states.filter((each) => each === state).length
    return count === 0 ? [] : [`${count} ${state}`]
  })
  printLine(`${totals.join(', ') || 'nothing to store'}${validateOnly ? '; dry run: nothing is stored' : ''}`)
  return states.includes('failed') ? 1 : 0
}

/** What became of a mapping, and below it what was found. */
function describe({ model, resource, method, integrationName, state, findings }: ReportedMapping): readonly string[] {
  const line = `${state.padEnd(9)} ${model}/${resource} ${method} of ${integrationName}`
  const [only, another] = findings
  if (state === 'kept') return [`${line} (not in the file)`]
  if (state !== 'failed')
    return [line, ...findings.map((each) => `  ${each.severity}: ${each.path} ${each.message} [${each.rule}]`)]
  if (only !== undefined && another === undefined) return [`${line}: ${only.path} ${only.message}`]
  return [`${line}:`, ...findings.map(({ path, message }) => `  ${path} ${message}`)]
}

/** The mappings of a file. @throws FileError */
function readMappings(file: string): readonly MappingToPush[] {
  const { model, integration, resources, ...rest } = readJsonFile(file)
  const [unknown] = Object.keys(rest)
  if (typeof model !== 'string' || typeof integration !== 'string' || !isJsonObject(resources) || unknown !== undefined)
    throw new FileError(
      `${file} must be {model, integration, resources}${unknown === undefined ? '' : `, without ${unknown}`}`,
    )
  return Object.entries(resources).flatMap(([resource, methods]) =>
    Object.entries(objectAt(file, `resources.${resource}`, methods)).map(([method, config]) => ({
      model,
      integrationName: integration,
      resource,
      method,
      config: objectAt(file, `resources.${resource}.${method}`, config),
    })),
  )
}

function placeOf({ scope, account }: Invocation['options']): Pick<UnifiedPush, 'scope' | 'integratedAccountId'> {
  const given = scope ?? (account === undefined ? 'environment' : 'account')
  if (!SCOPES.includes(given)) throw new UsageError(`unified push --scope ${mustBeOneOf(given, SCOPES)}`)
  if ((given === 'account') !== (account !== undefined))
    throw new UsageError('unified push takes --account ID with the scope account alone')
  if (account !== undefined && !isUuid(account)) throw new UsageError('unified push --account takes an id')
  return { scope: given, integratedAccountId: account }
}

/** A model file, named by itself or by the mappings. @throws FileError */
function readModelFile(file: string, mappings: readonly MappingToPush[]) {
  const { name: own, ...config } = readJsonFile(file)
  const names = [...new Set([...(typeof own === 'string' ? [own] : []), ...mappings.map(({ model }) => model)])]
  const [name] = names
  if (name === undefined) throw new FileError(`${file} has no name, and no mapping names the model`)
  if (names.length > 1) throw new FileError(`${file} is one model, but these are named: ${names.join(', ')}`)
  return { name, config }
}

function objectAt(file: string, path: string, value: unknown): JsonObject {
  if (isJsonObject(value as JsonObject)) return value as JsonObject
  throw new FileError(`${file}: ${path} must be an object`)
}
