import { invalidFields, isUuid } from '../../../foundation/base/index.ts'
import {
  FORBIDDEN_KEYS,
  findUnstorable,
  findUnstorableText,
  isJsonObject,
  type Json,
  type JsonObject,
} from '../../../foundation/json/index.ts'
import { parseRequestJson } from '../messages/json-text.ts'
import { readQuery } from '../messages/query-string.ts'
import { isStorable } from '../messages/storable.ts'
import type { Finding } from '../operation.ts'

/** The query of a call: parameters of this service, and those of the upstream. */
export interface ProxyQuery {
  readonly accountId: string
  readonly limit: number | undefined
  readonly cursor: string | undefined
  readonly isDryRun: boolean
  readonly includeRaw: boolean
  /** `{{args.<name>}}`, from `args[<name>]`, or from `args` as a JSON object. */
  readonly args: JsonObject | undefined
  /** All other parameters, for the upstream. Texts; repeated names and `a[]` are lists, `a[x]` are objects. */
  readonly query: JsonObject
}

/** Parameter of the arguments of an action or a method. */
export const ARGS_PARAMETER = 'args'

/** Parameter of the account that a call uses. */
export const ACCOUNT_PARAMETER = 'integrated_account_id'
/** Parameter of a dry run. */
export const DRY_RUN_PARAMETER = 'dry_run'

/** The parameters of this service in the query of a call. */
export const PROXY_PARAMETERS = [ACCOUNT_PARAMETER, 'limit', 'next_cursor', DRY_RUN_PARAMETER, 'include_raw'] as const

const PARAMETERS_MAX = 1_000
const NESTING_MAX = 5
const PAGE_SIZE_MAX = 10_000
/** Longest part of a name that is repeated to its sender. */
const NAME_LENGTH_MAX = 200

/**
 * Parses the query string of a call.
 *
 * @throws Failure INVALID_FIELD with everything that is wrong
 */
export function parseProxyQuery(text: string): ProxyQuery {
  const findings: Finding[] = []
  const { own, query } = separateParameters(text, PROXY_PARAMETERS, findings)
  const { [ARGS_PARAMETER]: args, ...others } = query
  const read = {
    accountId: accountIdFrom(own.get(ACCOUNT_PARAMETER), findings),
    limit: limitFrom(own.get('limit'), findings),
    cursor: own.get('next_cursor') || undefined,
    isDryRun: flagFrom(own, DRY_RUN_PARAMETER, findings),
    includeRaw: flagFrom(own, 'include_raw', findings),
    args: args === undefined ? undefined : argsFrom(args, findings),
    query: others,
  }
  if (findings.length > 0) throw invalidFields(findings)
  return read
}

/**
 * Separates the parameters of this service, of which the route has rejected repeated ones, from all others: texts; repeated names and `a[]` are lists,
 * `a[x]` are objects. Adds findings about names.
 */
export function separateParameters<Reserved extends string>(
  text: string,
  reserved: readonly Reserved[],
  findings: Finding[],
): { readonly own: ReadonlyMap<Reserved, string>; readonly query: JsonObject } {
  const own = new Map<Reserved, string>()
  const query: QueryValues = {}
  let count = 0
  for (const [name, value] of readQuery(text, findings)) {
    count += 1
    if (count > PARAMETERS_MAX) break
    const ownName = reserved.find((each) => each === name)
    if (ownName === undefined) findings.push(...place(query, name, value))
    else own.set(ownName, value)
  }
  if (count > PARAMETERS_MAX)
    findings.push(finding('query', `has more than ${PARAMETERS_MAX} parameters`, 'too_many_parameters'))
  return { own, query }
}

/** Arguments from bracket parameters, or from one JSON text, which keeps the digits of numbers. */
function argsFrom(given: Json, findings: Finding[]): JsonObject | undefined {
  if (isQueryObject(given)) return given
  const json = typeof given === 'string' ? jsonOf(given) : undefined
  if (isJsonObject(json) && isStorable(json, 0)) return json
  const unstorable = isJsonObject(json) ? findUnstorable(json, ARGS_PARAMETER) : []
  if (unstorable.length > 0) findings.push(...unstorable.map(({ path: field, ...rest }) => ({ field, ...rest })))
  else findings.push(finding(ARGS_PARAMETER, 'must be a JSON object, or args[<name>]=<text> for each', 'type'))
  return undefined
}

function jsonOf(text: string): Json | undefined {
  try {
    return parseRequestJson(Buffer.from(text))
  } catch {
    return undefined
  }
}

/** The account id; adds findings about it. */
export function accountIdFrom(text: string | undefined, findings: Finding[]): string {
  if (text === undefined)
    findings.push(finding(ACCOUNT_PARAMETER, 'is needed: the account to call through', 'required'))
  else if (!isUuid(text)) findings.push(finding(ACCOUNT_PARAMETER, 'must be a valid UUID', 'string.uuid'))
  return text ?? ''
}

function limitFrom(text: string | undefined, findings: Finding[]): number | undefined {
  if (text === undefined) return undefined
  const limit = /^\d{1,6}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= PAGE_SIZE_MAX) return limit
  findings.push(finding('limit', `must be an integer from 1 to ${PAGE_SIZE_MAX}`, 'int32.gte_lte'))
  return undefined
}

/** The value of a flag, false when absent; adds findings about it. */
export function flagFrom<Name extends string>(
  reserved: ReadonlyMap<Name, string>,
  name: Name,
  findings: Finding[],
): boolean {
  const text = reserved.get(name) ?? 'false'
  if (text !== 'true' && text !== 'false') findings.push(finding(name, 'must be true or false', 'type'))
  return text === 'true'
}

/** An object, list or text under construction. */
type QueryValues = Record<string, Json>

/** A name and its brackets: `a`, `a[]`, `a[x][y]`. Anything else is a name as it is. */
const BRACKETS = /^([^[\]]+)((?:\[[^[\]]*\])+)$/

/** Adds a value at the path of its name. */
function place(query: QueryValues, name: string, value: string): readonly Finding[] {
  const [, first = name, brackets = ''] = BRACKETS.exec(name) ?? []
  const inner = brackets === '' ? [] : brackets.slice(1, -1).split('][')
  const isList = inner.at(-1) === ''
  const steps = [first, ...(isList ? inner.slice(0, -1) : inner)]
  const at = name.slice(0, NAME_LENGTH_MAX)
  if (steps.length > NESTING_MAX) return [finding(at, `nests deeper than ${NESTING_MAX} levels`, 'depth')]
  if (steps.includes('')) return [finding(at, 'may have empty brackets only at its end', 'brackets')]
  const reserved = steps.find((step) => FORBIDDEN_KEYS.has(step))
  if (reserved !== undefined) return [finding(at, `uses the reserved key ${reserved}`, 'forbidden_key')]
  const [unstorable] = [...findUnstorableText(name, at), ...findUnstorableText(value, at)]
  if (unstorable !== undefined) return [finding(at, unstorable.description, unstorable.rule)]
  return add(query, steps, value, isList) ? [] : [finding(at, 'is given as an object and as a value', 'brackets')]
}

/** @returns false when the path has a value of another kind */
function add(target: QueryValues, [step = '', ...rest]: readonly string[], value: string, isList: boolean): boolean {
  const there = Object.hasOwn(target, step) ? target[step] : undefined
  if (rest.length > 0) {
    if (there !== undefined && !isQueryObject(there)) return false
    const below = there ?? {}
    target[step] = below
    return add(below, rest, value, isList)
  }
  if (isQueryObject(there)) return false
  if (there === undefined) target[step] = isList ? [value] : value
  else target[step] = Array.isArray(there) ? [...there, value] : [there, value]
  return true
}

/** Objects in the query values were created here, and are therefore mutable. */
function isQueryObject(value: Json | undefined): value is QueryValues {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function finding(field: string, description: string, rule: string): Finding {
  return { field, description, rule }
}
