import { z } from 'zod'
import { createSuggester, isJsonNumber, isUuid, type Json, type JsonObject, type Violation } from '../../base/index.ts'
import { isPlaceholderRoot } from '../../expressions/index.ts'
import { listOf, plainText, rawText, refineWith } from '../schema-types.ts'
import { areTooLargeTogether, findPatternProblem, matchesPattern, PATTERN_LENGTH_MAX } from './field-pattern.ts'

/** Most fields of one form. */
const FIELDS_MAX = 100

/** A key that placeholders can name: `{{subdomain}}`, `{{credentials.subdomain}}`. */
const FIELD_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/

const option = z.strictObject({
  value: rawText(),
  label: plainText().optional().describe('Default: the value.'),
})

/** One field of the form with which a customer connects an account. */
const fieldSchema = z
  .strictObject({
    name: z
      .string()
      .max(64)
      .regex(FIELD_NAME, { error: 'must start with a letter and hold letters, digits, "_" and "-" only' })
      .superRefine(refineWith(findRootProblem, 'field.name_reserved'))
      .describe('Placeholders find the value under this name.'),
    label: plainText().optional().describe('Default: the name.'),
    type: z
      .enum(['text', 'password', 'single_select'])
      .default('text')
      .describe('`password` values are credential material: stored encrypted, never shown.'),
    required: z.boolean().default(false).describe('An empty value is rejected.'),
    default: rawText().optional().describe('Taken when the field is left empty.'),
    format: z.enum(['email', 'number', 'uuid', 'url', 'hostname_label']).optional().describe('What the value must be.'),
    pattern: z
      .string()
      .max(PATTERN_LENGTH_MAX, { abort: true })
      .superRefine(refineWith(findPatternProblem, 'field.pattern'))
      .optional()
      .describe(
        'A regular expression that the whole value must match, in RE2 syntax: no back references, no lookaround. Values of more than 512 characters do not match.',
      ),
    transform: z.enum(['lowercase', 'uppercase', 'trim']).optional().describe('Applied before anything is checked.'),
    prefix: rawText()
      .optional()
      .describe('Shown before the input and taken off a value that was given with it, for example `https://`.'),
    suffix: rawText().optional().describe('Shown behind the input and taken off likewise, for example `.zendesk.com`.'),
    placeholder: plainText().optional().describe('Shown in the empty input.'),
    help_text: plainText().optional().describe('Shown below the input.'),
    options: listOf(option).min(1).optional().describe('The choices of a `single_select`.'),
  })
  .superRefine(refineWith(findOptionsProblem, 'field.options'))
  .meta({ id: 'Field' })

export type Field = z.output<typeof fieldSchema>

/** The `fields` list of a credential format. */
export function fieldList(): z.ZodType<Field[]> {
  return z
    .array(fieldSchema)
    .max(FIELDS_MAX, { abort: true })
    .superRefine(refineWith(findDuplicateProblem, 'field.duplicate'))
    .superRefine(refineWith(findPatternsProblem, 'field.pattern'))
}

function findRootProblem(name: string): string | undefined {
  return isPlaceholderRoot(name) ? `is reserved: {{${name}}} means something else` : undefined
}

function findOptionsProblem(field: { readonly type: string; readonly options?: unknown }): string | undefined {
  if (field.type === 'single_select' && field.options === undefined)
    return 'needs options, because its type is single_select'
  if (field.type !== 'single_select' && field.options !== undefined)
    return 'has options, which only a single_select has'
  return undefined
}

function findPatternsProblem(fields: readonly { readonly pattern?: string | undefined }[]): string | undefined {
  const patterns = fields.flatMap(({ pattern }) =>
    pattern === undefined || findPatternProblem(pattern) !== undefined ? [] : [pattern],
  )
  return areTooLargeTogether(patterns) ? 'has patterns that together repeat too much' : undefined
}

function findDuplicateProblem(fields: readonly { readonly name: string }[]): string | undefined {
  const names = fields.map((field) => field.name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  return twice === undefined ? undefined : `names the field ${twice} twice`
}

/** Values of a form: secrets are stored encrypted, all others in the account's context. */
export type CollectedFields =
  | { readonly kind: 'collected'; readonly secrets: JsonObject; readonly visible: JsonObject }
  | { readonly kind: 'invalid'; readonly violations: readonly Violation[] }

/** Longest value of a field; private keys and service account files fit. */
const VALUE_LENGTH_MAX = 16_384

/** The mask that responses show instead of a secret; never accepted as a value. */
const MASK = '***'

/**
 * Validates and transforms the values of a form, with all findings in one result.
 *
 * @param given values by field name; an absent, `null` or empty value counts as not given
 * @param path prefix of the reported fields, for example `credentials`
 * @param sentInHeaders names of fields whose values are sent in headers unchanged
 */
export function collectFields(
  fields: readonly Field[],
  given: JsonObject,
  path: string,
  sentInHeaders: ReadonlySet<string> = new Set(),
): CollectedFields {
  const violations: Violation[] = []
  const secrets: Record<string, Json> = {}
  const visible: Record<string, Json> = {}
  const names = new Set(fields.map((field) => field.name))
  const suggest = createSuggester()
  for (const name of Object.keys(given))
    if (!names.has(name))
      violations.push({
        field: `${path}.${name}`,
        description: `is not asked for${suggest(name, names)}`,
        rule: 'unknown_field',
      })
  for (const field of fields) {
    const text = normalise(field, given[field.name])
    const problem = findValueProblem(field, text) ?? findCharacterProblem(text, sentInHeaders.has(field.name))
    if (problem !== undefined) violations.push({ field: `${path}.${field.name}`, ...problem })
    else if (typeof text === 'string') (field.type === 'password' ? secrets : visible)[field.name] = text
  }
  return violations.length > 0 ? { kind: 'invalid', violations } : { kind: 'collected', secrets, visible }
}

/** The value to store; `undefined` when it is not given and has no default. */
function normalise(field: Field, given: Json | undefined): Json | undefined {
  const value = isJsonNumber(given) ? String(given) : (given ?? undefined)
  if (value !== undefined && typeof value !== 'string') return value
  const text = stripAffixes(field, transform(field, value ?? ''))
  return text === '' ? field.default : text
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

function findValueProblem(field: Field, value: Json | undefined): Omit<Violation, 'field'> | undefined {
  if (value === undefined) return field.required ? { description: 'is required', rule: 'required' } : undefined
  if (typeof value !== 'string') return { description: 'must be a text', rule: 'type' }
  if (field.type === 'password' && value === MASK)
    return { description: 'is the mask of a secret, not the secret', rule: 'secret_masked' }
  if (value.length > VALUE_LENGTH_MAX)
    return { description: `must not be longer than ${VALUE_LENGTH_MAX} characters`, rule: 'string.max_len' }
  if (field.options !== undefined && !field.options.some((option) => option.value === value))
    return { description: `must be one of ${field.options.map((option) => option.value).join(', ')}`, rule: 'enum' }
  return findFormatProblem(field, value) ?? findPatternMismatch(field, value)
}

/** Control characters but line breaks and tabs, which occur in PEM keys. */
const CONTROL = /[^\P{Cc}\t\n\r]/u
/** Visible characters of Latin-1, blank and tab (RFC 9110 §5.5). */
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

function findCharacterProblem(value: Json | undefined, isSentInHeader: boolean): Omit<Violation, 'field'> | undefined {
  if (typeof value !== 'string') return undefined
  if (CONTROL.test(value)) return { description: 'must not hold control characters', rule: 'string.control' }
  if (!isSentInHeader || HEADER_VALUE.test(value)) return undefined
  const description = /[\r\n]/.test(value)
    ? 'must not hold a line break, because it is sent in a header'
    : 'holds characters that no header can carry'
  return { description, rule: 'string.header' }
}

const FORMATS: Readonly<Record<NonNullable<Field['format']>, { test: (text: string) => boolean; noun: string }>> = {
  email: { test: (text) => /^[^\s@]{1,64}@[^\s@]{1,255}$/.test(text), noun: 'an e-mail address' },
  number: { test: (text) => /^[+-]?\d{1,300}(?:\.\d{1,300})?$/.test(text), noun: 'a number' },
  uuid: { test: isUuid, noun: 'a UUID' },
  url: { test: (text) => /^https?:\/\//i.test(text) && URL.canParse(text), noun: 'an http or https URL' },
  hostname_label: {
    test: (text) => /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i.test(text),
    noun: 'one label of a host name: letters, digits and "-"',
  },
}

function findFormatProblem({ format }: Field, value: string): Omit<Violation, 'field'> | undefined {
  if (format === undefined || FORMATS[format].test(value)) return undefined
  return { description: `must be ${FORMATS[format].noun}`, rule: `string.${format}` }
}

function findPatternMismatch({ pattern }: Field, value: string): Omit<Violation, 'field'> | undefined {
  if (pattern === undefined || matchesPattern(pattern, value)) return undefined
  return { description: `must match ${pattern}`, rule: 'string.pattern' }
}
