import { createSuggester, type Violation } from '../../../foundation/base/index.ts'
import { isJsonNumber, type Json, type JsonObject, toDouble } from '../../../foundation/json/index.ts'
import { findValueProblem, parseNumber, VALUE_LENGTH_MAX } from './check-field-value.ts'
import { type Field, isSecretField } from './fields.ts'
import { normalisePasted, readKeyFile } from './normalise-field.ts'

/** Values of a form: secrets are stored encrypted, all others in the account's context. */
export type CollectedFields =
  | { readonly kind: 'collected'; readonly secrets: JsonObject; readonly visible: JsonObject }
  | { readonly kind: 'invalid'; readonly violations: readonly Violation[] }

/** How the values of a form were obtained. */
export interface FieldsSource {
  /** Names of fields whose values are sent in headers unchanged. */
  readonly sentInHeaders?: ReadonlySet<string>
  /** Values that the application supplied; the customer is not asked for them, and they win over given ones. */
  readonly supplied?: JsonObject
  /** The customer filled in the form: given values of hidden fields are ignored. Default: an application gave the values. */
  readonly isFromCustomer?: boolean
}

/** A field, where necessary with the names of fields before it that must have a value first. */
export type DependentField = Field & { readonly dependsOn?: readonly string[] }

/**
 * Normalises and validates the values of a form, with all findings in one result.
 *
 * A field that `visible_when` hides, or that depends on one without a value, is neither required nor collected. Values have the JSON type of their field: `checkbox` a
 * boolean, `number` a number, `multi_select` a list of texts, every other one a text. An unchecked checkbox is `false`.
 *
 * @param given values by name, of that type or as a text of a form: `true` or `on`, `1.50`. An absent, `null` or empty value
 * counts as not given: the default is taken
 * @param path prefix of the reported fields, for example `credentials`
 */
export function collectFields(
  fields: readonly DependentField[],
  given: JsonObject,
  path: string,
  source: FieldsSource = {},
): CollectedFields {
  const violations = [...findUnknownFields(fields, given, path)]
  const fromKeyFile = keyFileOf(fields, given)
  const secrets: Record<string, Json> = {}
  const visible: Record<string, Json> = {}
  /** Of the fields so far; without those that are not asked for or have no value. */
  const values = new Map<string, Json | undefined>()
  for (const field of fields) {
    const { name } = field
    if (!isAsked(field, values)) continue
    const value = normalise(field, givenValue(field, given, source) ?? fromKeyFile.get(name))
    values.set(name, value)
    const problem = findValueProblem(field, value, source.sentInHeaders?.has(name) === true)
    if (problem !== undefined) violations.push({ field: `${path}.${name}`, ...problem })
    else if (value !== undefined) (isSecretField(field) ? secrets : visible)[name] = value
  }
  return violations.length > 0 ? { kind: 'invalid', violations } : { kind: 'collected', secrets, visible }
}

/** What a key file that was given as private key says of other fields, such as the e-mail address of a service account. */
function keyFileOf(fields: readonly Field[], given: JsonObject): ReadonlyMap<string, Json> {
  const files = fields.flatMap(({ name, format }) =>
    format === 'private_key' ? [readKeyFile(Object.hasOwn(given, name) ? given[name] : undefined)] : [],
  )
  return new Map(files.flatMap((file) => Object.entries(file ?? {})))
}

function findUnknownFields(fields: readonly Field[], given: JsonObject, path: string): readonly Violation[] {
  const names = new Set(fields.map((field) => field.name))
  const suggest = createSuggester()
  return Object.keys(given)
    .filter((name) => !names.has(name))
    .map((name) => ({
      field: `${path}.${name}`,
      description: `is not asked for${suggest(name, names)}`,
      rule: 'unknown_field',
    }))
}

function givenValue(
  { name, type }: Field,
  given: JsonObject,
  { supplied = {}, isFromCustomer }: FieldsSource,
): Json | undefined {
  if (Object.hasOwn(supplied, name)) return supplied[name]
  const isIgnored = type === 'hidden' && isFromCustomer === true
  return isIgnored || !Object.hasOwn(given, name) ? undefined : given[name]
}

/** Whether a field is asked for. @param values of the fields before it */
function isAsked(
  { visible_when: condition, dependsOn = [] }: DependentField,
  values: ReadonlyMap<string, Json | undefined>,
): boolean {
  if (dependsOn.some((name) => values.get(name) === undefined)) return false
  if (condition === undefined) return true
  const value = values.get(condition.field)
  const wanted: readonly Json[] = Array.isArray(condition.equals) ? condition.equals : [condition.equals]
  const held: readonly Json[] = Array.isArray(value) ? value : value === undefined ? [] : [value]
  return held.some((item) => wanted.some((one) => toDouble(one) === toDouble(item)))
}

/** The value to store; `undefined` when it is not given and has no default. A value of a wrong type stays what it is. */
function normalise(field: Field, given: Json | undefined): Json | undefined {
  switch (field.type) {
    case 'checkbox':
      return checkboxOf(given ?? null) ?? field.default ?? false
    case 'number':
      return numberOf(given ?? null) ?? field.default
    case 'multi_select':
      return textsOf(given ?? null) ?? field.default
    default:
      return textOf(field, given ?? null) ?? field.default
  }
}

const CHECKBOX_TEXTS: ReadonlyMap<Json, boolean> = new Map([
  ['true', true],
  ['on', true],
  ['false', false],
  ['off', false],
])

function checkboxOf(given: Json): Json | undefined {
  if (given === null || given === '') return undefined
  return CHECKBOX_TEXTS.get(given) ?? given
}

function numberOf(given: Json): Json | undefined {
  if (given === null) return undefined
  if (typeof given !== 'string' || given.length > VALUE_LENGTH_MAX) return given
  const text = normalisePasted({ type: 'text', format: 'number' }, given)
  return text === '' ? undefined : (parseNumber(text) ?? given)
}

function textsOf(given: Json): Json | undefined {
  if (given === null || given === '') return undefined
  const items: readonly Json[] = Array.isArray(given) ? given : [given]
  const texts = items.map((item) => (isJsonNumber(item) ? String(item) : item)).filter((item) => item !== '')
  return texts.length === 0 ? undefined : [...new Set(texts)]
}

function textOf(field: Field, given: Json): Json | undefined {
  if (given === null) return undefined
  const value = isJsonNumber(given) ? String(given) : given
  // Too long for any field: it is rejected as it is.
  if (typeof value !== 'string' || value.length > 2 * VALUE_LENGTH_MAX) return value
  const pasted = normalisePasted(field, value)
  // A choice is not typed: unless it is empty it stays as it is in the definition or at the third party.
  const typed = field.type === 'single_select' && pasted !== '' ? value : pasted
  const text = stripAffixes(field, transform(field, typed))
  return text === '' ? undefined : text
}

function transform(field: Field, text: string): string {
  switch (field.transform) {
    case undefined:
      return text
    case 'lowercase':
      return text.toLowerCase()
    case 'uppercase':
      return text.toUpperCase()
    case 'trim':
      return text.trim()
  }
}

function stripAffixes({ prefix = '', suffix = '' }: Field, text: string): string {
  const tail = prefix !== '' && text.startsWith(prefix) ? text.slice(prefix.length) : text
  return suffix !== '' && tail.endsWith(suffix) ? tail.slice(0, -suffix.length) : tail
}
