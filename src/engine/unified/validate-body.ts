import { invalidFields, suggestOneOf, type Violation } from '../../foundation/base/index.ts'
import {
  checkJsonSchema,
  formatDotPath,
  isJsonObject,
  type Json,
  type JsonObject,
  type SchemaProblem,
} from '../../foundation/json/index.ts'
import { toCountry } from './countries.ts'
import { type CompiledEnums, toProviderValue } from './enums.ts'
import { balanceProblem } from './equal-sums.ts'
import { REQUIRED_BY_INTEGRATION } from './filters.ts'
import { idPartsProblem } from './id-parts.ts'
import type { UnifiedRequestPlan } from './mapping-plan.ts'
import { LIST_MAX, type UnifiedResource } from './model.ts'
import { toDateOnly, toDateTime, toDecimal, toEmail, toUri } from './scalar-values.ts'
import { isScalarNode, type ObjectNode, type SchemaNode } from './schema-node.ts'

/** A body of a write, checked. */
export interface ValidatedBody {
  /** As the caller gave it. */
  readonly unified: JsonObject
  /** With the provider's values of enumerations. */
  readonly outgoing: JsonObject
}

/** Most problems of one body. */
const PROBLEMS_MAX = 50

type Path = readonly (string | number)[]

interface BodyCheck {
  readonly enums: CompiledEnums
  readonly problems: Violation[]
  /** The fields of the problems: each has one. */
  readonly reported: Set<string>
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
  const unified = body ?? {}
  const problems = [
    ...checkJsonSchema(resource.writeSchema, unified, {
      path: 'body',
      findingsMax: PROBLEMS_MAX,
      isNullAbsent: true,
      isPartial: method !== 'create',
      describeUnknown: (suggestion) =>
        `is not a field of this resource${suggestion}; use remote_fields for what the model lacks`,
      findFurther,
    }),
  ]
  if (!isJsonObject(unified)) throw invalidFields(problems)
  const check: BodyCheck = { enums: plan.enums, problems, reported: new Set(problems.map(({ field }) => field)) }
  const outgoing = convertObject(check, resource.node, unified, [], '')
  for (const name of plan.required)
    if (entriesOf(unified[name]).length === 0) report(check, [name], REQUIRED_BY_INTEGRATION, 'required')
  for (const [name, count] of plan.idParts) checkReferences(check, unified, name, count)
  if (problems.length > 0) throw invalidFields(problems)
  return { unified, outgoing }
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

/** The body with the provider's values of enumerations; what the schema does not allow is reported already. */
function convertObject(check: BodyCheck, node: ObjectNode, value: JsonObject, path: Path, field: string): JsonObject {
  if (node.isOpen) return value
  const converted: Record<string, Json> = {}
  for (const [name, item] of Object.entries(value)) {
    const child = node.properties.get(name)
    const at = field === '' ? name : `${field}.${name}`
    if (child !== undefined)
      converted[name] = item === null ? clearedValue(child) : convertField(check, child, item, [...path, name], at)
  }
  return converted
}

/** What expressions read of a field that is `null`: a list is empty. */
function clearedValue({ kind }: SchemaNode): Json {
  return kind === 'array' ? [] : null
}

function convertField(check: BodyCheck, node: SchemaNode, value: Json, path: Path, field: string): Json {
  if (isScalarNode(node)) return convertScalar(check, value, path, field)
  if (node.kind === 'object') return isJsonObject(value) ? convertObject(check, node, value, path, field) : value
  if (!Array.isArray(value) || value.length > LIST_MAX) return value
  const items: readonly Json[] = value
  const unbalanced = node.balanced && balanceProblem(items, node.balanced)
  if (unbalanced !== undefined) report(check, path, unbalanced, 'balanced')
  return items.map((item, index) => convertField(check, node.items, item, [...path, index], field))
}

function convertScalar(check: BodyCheck, value: Json, path: Path, field: string): Json {
  const rule = check.enums.get(field)
  if (rule === undefined) return value
  const provider = toProviderValue(rule, String(value))
  if (provider !== undefined) return provider
  const description = `has no counterpart at the integration${suggestOneOf(String(value), rule.byUnified.keys())}`
  report(check, path, description, 'enum')
  return null
}

/** What the keywords of models beyond the subset of JSON Schema say: read-only fields and formats. */
function findFurther(schema: JsonObject, value: Json): SchemaProblem | undefined {
  if (schema.readOnly === true) return { description: 'cannot be written', rule: 'read_only' }
  return typeof value === 'string' ? formatProblem(schema, value) : undefined
}

const ALPHA_2 = /^[A-Z]{2}$/

function formatProblem({ format }: JsonObject, value: string): SchemaProblem | undefined {
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
    default:
      return undefined
  }
}

function wrongFormat(noun: string): SchemaProblem {
  return { description: `must be ${noun}`, rule: 'format' }
}

/** Reports a problem of a field that has none yet. */
function report({ problems, reported }: BodyCheck, path: Path, description: string, rule: string): void {
  const field = formatDotPath(path, 'body')
  if (problems.length >= PROBLEMS_MAX || reported.has(field)) return
  reported.add(field)
  problems.push({ field, description, rule })
}
