import { Failure, invalidFields, suggest, type Violation } from '../../foundation/base/index.ts'
import {
  checkJsonSchema,
  exceedsJsonSize,
  isJsonNumber,
  isJsonObject,
  JSON_DEPTH_MAX,
  type Json,
  type JsonObject,
  propertiesOf,
  typesOf,
} from '../../foundation/json/index.ts'

/** The rules of a job for its arguments. */
export interface ArgsRules {
  readonly argsSchema: JsonObject
  /** JSONata; empty: no check. */
  readonly argsValidation: string
}

/** Evaluates JSONata with the given object as `$`. @throws Failure EXPRESSION_FAILED */
export type ArgsEvaluator = (expression: string, input: JsonObject) => Promise<Json | undefined>

/**
 * The arguments of a run: defaults of the schema filled in, validated by the schema and then by the job's own check, which
 * sees `{args}` and returns nothing when they are fine, else `{message}`.
 *
 * @throws Failure ARGS_INVALID with every violation, EXPRESSION_FAILED when the check itself does not work
 */
export async function resolveArgs(evaluate: ArgsEvaluator, rules: ArgsRules, given: JsonObject): Promise<JsonObject> {
  const result = applyArgsSchema(rules.argsSchema, given)
  if (result.kind === 'invalid') throw invalidFields(result.violations, 'ARGS_INVALID')
  if (rules.argsValidation === '') return result.args
  const objection = await evaluate(rules.argsValidation, { args: result.args })
  if (!objection) return result.args
  throw new Failure('ARGS_INVALID', `the job rejects the arguments: ${objectionMessage(objection)}`, {
    violations: [{ field: 'args', description: objectionMessage(objection), rule: 'args.validation' }],
  })
}

function objectionMessage(objection: Json): string {
  const message = isJsonObject(objection) ? objection.message : objection
  return typeof message === 'string' ? message : 'they do not pass args_validation'
}

/**
 * The keywords of JSON Schema that argument schemas may use, with the check of their values. Any other keyword is rejected when
 * the job is written, because a rule that is accepted and not enforced would be misleading.
 *
 * `required` is a list of names as in JSON Schema, or a boolean on the property itself, as many tools write it.
 */
const KEYWORDS: Readonly<Record<string, (value: Json) => boolean>> = {
  type: (value) => (Array.isArray(value) ? value : [value]).every(isTypeName),
  enum: Array.isArray,
  properties: isJsonObject,
  required: (value) => typeof value === 'boolean' || isTextList(value),
  additionalProperties: (value) => typeof value === 'boolean',
  items: isJsonObject,
  minimum: isJsonNumber,
  maximum: isJsonNumber,
  default: () => true,
  // Annotations.
  $schema: () => true,
  title: () => true,
  description: () => true,
  format: () => true,
  examples: () => true,
}
/** Violations reported of one schema, or of the arguments of one run. */
const FINDINGS_MAX = 100
const TYPES = ['string', 'number', 'integer', 'boolean', 'array', 'object', 'null'] as const

/** Arguments with defaults filled in, or their violations. */
type ArgsResult =
  | { readonly kind: 'valid'; readonly args: JsonObject }
  | { readonly kind: 'invalid'; readonly violations: readonly Violation[] }

/** Longest schema of arguments, characters as JSON; a trigger applies it to every run. */
const SCHEMA_LENGTH_MAX = 64 * 1024

/** The violations of a schema: what it uses and is not enforced. An empty schema accepts anything. */
export function checkArgsSchema(schema: JsonObject): Violation[] {
  const path = 'args_schema'
  if (!exceedsJsonSize(schema, SCHEMA_LENGTH_MAX, JSON_DEPTH_MAX))
    return checkLevel(schema, path).slice(0, FINDINGS_MAX)
  return [
    { field: path, description: `must have at most ${SCHEMA_LENGTH_MAX} characters as JSON`, rule: 'args_schema.max' },
  ]
}

function checkLevel(schema: JsonObject, path: string): Violation[] {
  const own = Object.entries(schema).flatMap(([keyword, value]) => checkKeyword(keyword, value, `${path}.${keyword}`))
  if (own.length > 0) return own
  const inner = Object.entries(propertiesOf(schema)).map(
    ([name, value]) => [`${path}.properties.${name}`, value] as const,
  )
  const nested = schema.items === undefined ? inner : [...inner, [`${path}.items`, schema.items] as const]
  return [
    ...nested.flatMap(([at, value]) =>
      isJsonObject(value) ? checkLevel(value, at) : [unsupportedKeyword(at, 'must be an object')],
    ),
    ...(schema.default === undefined ? [] : findMismatches(schema, schema.default, `${path}.default`)),
  ]
}

function checkKeyword(keyword: string, value: Json, at: string): Violation[] {
  const accepts = Object.hasOwn(KEYWORDS, keyword) ? KEYWORDS[keyword] : undefined
  if (accepts === undefined)
    return [
      unsupportedKeyword(
        at,
        `is a keyword that argument schemas do not support${suggest(keyword, Object.keys(KEYWORDS))}`,
      ),
    ]
  return accepts(value) ? [] : [unsupportedKeyword(at, 'has a value of the wrong type')]
}

/** Fills in the defaults of a checked schema and validates the result. */
function applyArgsSchema(schema: JsonObject, args: JsonObject): ArgsResult {
  const filled = withDefaults(schema, args)
  const violations = findMismatches(schema, filled, 'args')
  return violations.length === 0 && isJsonObject(filled)
    ? { kind: 'valid', args: filled }
    : { kind: 'invalid', violations }
}

/** Whether the schema allows an argument of that name to be a list. */
export function mayBeList(schema: JsonObject, name: string): boolean {
  const properties = propertiesOf(schema)
  if (Object.keys(properties).length === 0) return true
  const property = Object.hasOwn(properties, name) ? properties[name] : undefined
  if (property === undefined) return schema.additionalProperties === true
  return !isJsonObject(property) || property.type === undefined || typesOf(property).includes('array')
}

/** The names of the arguments that a schema declares. */
export function listArguments(schema: JsonObject): readonly string[] {
  return Object.keys(propertiesOf(schema))
}

function withDefaults(schema: JsonObject, value: Json): Json {
  if (Array.isArray(value)) {
    const { items } = schema
    return isJsonObject(items) ? value.map((item) => withDefaults(items, item)) : value
  }
  if (!isJsonObject(value)) return value
  const filled: Record<string, Json> = { ...value }
  for (const [name, property] of Object.entries(propertiesOf(schema))) {
    if (!isJsonObject(property)) continue
    const given = Object.hasOwn(filled, name) ? filled[name] : property.default
    if (given !== undefined) filled[name] = withDefaults(property, given)
  }
  return filled
}

/** What is wrong with a value, with the rules that triggers and runs have always reported. */
function findMismatches(schema: JsonObject, value: Json, path: string): readonly Violation[] {
  return checkJsonSchema(schema, value, { path, findingsMax: FINDINGS_MAX }).map(({ rule, ...violation }) => ({
    ...violation,
    rule: rule === 'unknown_field' ? 'args.unknown' : `args.${rule}`,
  }))
}

function isTypeName(type: Json): boolean {
  return TYPES.some((name) => name === type)
}

function isTextList(value: Json): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}

function unsupportedKeyword(field: string, description: string): Violation {
  return { field, description, rule: 'args_schema.unsupported' }
}
