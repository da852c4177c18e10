import {
  formatDotPath,
  invalidFields,
  isJsonNumber,
  isJsonObject,
  type Json,
  type JsonObject,
  mustBeOneOf,
  suggest,
  suggestOneOf,
  type Violation,
} from '../base/index.ts'
import { balanceProblem } from './balance.ts'
import { toCountry } from './countries.ts'
import { type CompiledEnums, toProviderValue } from './enums.ts'
import { REQUIRED_BY_INTEGRATION } from './filters.ts'
import { idPartsProblem } from './id-parts.ts'
import type { UnifiedResource } from './model.ts'
import type { UnifiedRequestPlan } from './request-plan.ts'
import { toDateOnly, toDateTime, toDecimal, toEmail, toInteger, toUri } from './scalar-values.ts'
import { isScalarNode, type ObjectNode, type ScalarNode, type SchemaNode } from './schema-node.ts'

/** A body of a write, checked. */
export interface ValidatedBody {
  /** As the caller gave it. */
  readonly unified: JsonObject
  /** With the provider's values of enumerations. */
  readonly outgoing: JsonObject
}

/** Most problems of one body. */
const PROBLEMS_MAX = 50
/** Most entries of a list. */
const LIST_MAX = 1_000

type Path = readonly (string | number)[]

interface BodyCheck {
  readonly enums: CompiledEnums
  readonly problems: Violation[]
}

/**
 * Checks the body of a write against the schema: known fields, read-only fields, required fields (of a create, and of the
 * integration), types, formats, enumerations, ids of references.
 *
 * @throws Failure INVALID_FIELD naming every field that is wrong
 */
export function validateBody(
  resource: UnifiedResource,
  method: string,
  body: Json | undefined,
  plan: Pick<UnifiedRequestPlan, 'enums' | 'required' | 'idParts'>,
): ValidatedBody {
  if (body !== undefined && !isJsonObject(body))
    throw invalidFields([{ field: 'body', description: 'must be an object', rule: 'type' }])
  const unified = body ?? {}
  const check: BodyCheck = { enums: plan.enums, problems: [] }
  const outgoing = convertObject(check, resource.node, unified, [], '', method === 'create')
  for (const name of plan.required) checkRequired(check, unified, name)
  for (const [name, count] of plan.idParts) checkReferences(check, unified, name, count)
  if (check.problems.length > 0) throw invalidFields(check.problems)
  return { unified, outgoing }
}

/** A field that the integration requires. */
function checkRequired(check: BodyCheck, body: JsonObject, name: string): void {
  const isReported = check.problems.some(({ field }) => field === formatDotPath([name], 'body'))
  if (!isReported && entriesOf(body[name]).length === 0) report(check, [name], REQUIRED_BY_INTEGRATION, 'required')
}

/** The composite ids of references. */
function checkReferences(check: BodyCheck, body: JsonObject, name: string, count: number): void {
  const ids = entriesOf(body[name]).map((entry) => (isJsonObject(entry) ? entry.id : undefined))
  const problem = ids.map((id) => idPartsProblem(count, id)).find((each) => each !== undefined)
  if (problem !== undefined) report(check, [name], problem, 'id_parts')
}

/** The entries of a list, or the one value; none of `null`. */
function entriesOf(value: Json | undefined): readonly Json[] {
  if (value === undefined || value === null) return []
  return Array.isArray(value) ? value : [value]
}

function convertObject(
  check: BodyCheck,
  node: ObjectNode,
  value: JsonObject,
  path: Path,
  field: string,
  isWhole: boolean,
): JsonObject {
  if (node.isOpen) return value
  const converted: Record<string, Json> = {}
  for (const name of node.required)
    if ((value[name] ?? null) === null && (isWhole || Object.hasOwn(value, name)))
      report(check, [...path, name], 'is required', 'required')
  for (const [name, item] of Object.entries(value)) {
    const child = node.properties.get(name)
    const at = [...path, name]
    if (child === undefined) {
      const near = suggest(name, node.properties.keys())
      report(
        check,
        at,
        `is not a field of this resource${near}; use remote_fields for what the model lacks`,
        'unknown_field',
      )
    } else if (child.isReadOnly) report(check, at, 'cannot be written', 'read_only')
    else if (item === null) converted[name] = null
    else converted[name] = convertField(check, child, item, at, field === '' ? name : `${field}.${name}`)
  }
  return converted
}

function convertField(check: BodyCheck, node: SchemaNode, value: Json, path: Path, field: string): Json {
  if (isScalarNode(node)) return convertScalar(check, node, value, path, field)
  if (node.kind === 'object') {
    if (isJsonObject(value)) return convertObject(check, node, value, path, field, true)
    report(check, path, 'must be an object', 'type')
    return null
  }
  if (!Array.isArray(value)) {
    report(check, path, 'must be a list', 'type')
    return null
  }
  const items: readonly Json[] = value
  if (items.length > LIST_MAX) report(check, path, `must have at most ${LIST_MAX} entries`, 'max')
  const unbalanced = node.balanced && items.length <= LIST_MAX ? balanceProblem(items, node.balanced) : undefined
  if (unbalanced !== undefined) report(check, path, unbalanced, 'balanced')
  return items.slice(0, LIST_MAX).map((item, index) => convertField(check, node.items, item, [...path, index], field))
}

function convertScalar(check: BodyCheck, node: ScalarNode, value: Json, path: Path, field: string): Json {
  const problem = scalarProblem(node, value)
  if (problem !== undefined) {
    report(check, path, problem.description, problem.rule)
    return null
  }
  const rule = check.enums.get(field)
  if (rule === undefined) return value
  const provider = toProviderValue(rule, String(value))
  if (provider !== undefined) return provider
  report(
    check,
    path,
    `has no counterpart at the integration${suggestOneOf(String(value), rule.byUnified.keys())}`,
    'enum',
  )
  return null
}

type Problem = Omit<Violation, 'field'>

function scalarProblem(node: ScalarNode, value: Json): Problem | undefined {
  switch (node.kind) {
    case 'boolean':
      return typeof value === 'boolean' ? undefined : typeProblem('true or false')
    case 'number':
      return isJsonNumber(value) ? undefined : typeProblem('a number')
    case 'integer':
      return isJsonNumber(value) && toInteger(value) !== undefined ? undefined : typeProblem('a whole number')
    case 'string':
      return textProblem(node, value)
  }
}

function textProblem(node: ScalarNode, value: Json): Problem | undefined {
  if (typeof value !== 'string') {
    const isAmount = node.format === 'decimal' && isJsonNumber(value)
    return isAmount ? undefined : typeProblem('a text')
  }
  if (node.enum !== undefined && !node.enum.includes(value))
    return { description: mustBeOneOf(value, node.enum), rule: 'enum' }
  const isShort = node.lengthMin !== undefined && value.length < node.lengthMin
  const isLong = node.lengthMax !== undefined && value.length > node.lengthMax
  if (isShort) return { description: `must have at least ${node.lengthMin} characters`, rule: 'min' }
  if (isLong) return { description: `must have at most ${node.lengthMax} characters`, rule: 'max' }
  return formatProblem(node, value)
}

const ALPHA_2 = /^[A-Z]{2}$/

function formatProblem({ format }: ScalarNode, value: string): Problem | undefined {
  switch (format) {
    case 'date':
      return /^\d{4}-\d\d-\d\d$/.test(value) && toDateOnly(value) !== undefined
        ? undefined
        : wrongFormat('a date (YYYY-MM-DD)')
    case 'date-time':
      return value.length > 10 && toDateTime(value) !== undefined ? undefined : wrongFormat('a time (RFC 3339)')
    case 'decimal':
      return toDecimal(value) === undefined ? wrongFormat('a decimal number, such as 12.50') : undefined
    case 'email':
      return toEmail(value) === undefined ? wrongFormat('an email address') : undefined
    case 'uri':
      return toUri(value) === undefined ? wrongFormat('an absolute URL') : undefined
    case 'country':
      return ALPHA_2.test(value) && toCountry(value) !== undefined
        ? undefined
        : wrongFormat('a country as ISO 3166-1 alpha-2, such as DE')
    case undefined:
      return undefined
  }
}

function typeProblem(noun: string): Problem {
  return { description: `must be ${noun}`, rule: 'type' }
}

function wrongFormat(noun: string): Problem {
  return { description: `must be ${noun}`, rule: 'format' }
}

function report({ problems }: BodyCheck, path: Path, description: string, rule: string): void {
  if (problems.length < PROBLEMS_MAX) problems.push({ field: formatDotPath(path, 'body'), description, rule })
}
