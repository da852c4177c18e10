import { z } from 'zod'
import { suggest } from '../../../foundation/base/index.ts'
import { FORBIDDEN_KEYS, type Json } from '../../../foundation/json/index.ts'
import { isPlaceholderRoot } from '../../expressions/placeholder.ts'
import { listOf, plainText, rawText, refineWith, webAddress } from '../schema-types.ts'
import { areTooLargeTogether, findPatternProblem, PATTERN_LENGTH_MAX } from './field-pattern.ts'

/** Most fields of one form. */
export const FIELDS_MAX = 100

/** A key that placeholders can name: `{{subdomain}}`, `{{credentials.subdomain}}`. */
const FIELD_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/

/** Types of fields; each one says which JSON type its values have. */
const FIELD_TYPES = [
  'text',
  'password',
  'textarea',
  'file',
  'number',
  'checkbox',
  'single_select',
  'multi_select',
  'hidden',
] as const

/** What the text of a field must be. */
export const FIELD_FORMATS = [
  'email',
  'number',
  'uuid',
  'url',
  'hostname',
  'hostname_label',
  'tel',
  'date',
  'private_key',
] as const

const option = z.strictObject({
  value: rawText().describe('What is stored.'),
  label: plainText().optional().describe('What the customer sees. Default: the value.'),
})

const scalar = z.union([rawText(), z.boolean(), z.number()])

/** The keys that fields of every form have. */
export const fieldKeys = {
  name: z
    .string()
    .max(64)
    .regex(FIELD_NAME, { error: 'must start with a letter and hold letters, digits, "_" and "-" only' })
    .superRefine(refineWith(findRootProblem, 'field.name_reserved'))
    .describe('Placeholders find the value under this name.'),
  label: plainText().optional().describe('What the customer sees. Default: the name.'),
  type: z
    .enum(FIELD_TYPES)
    .default('text')
    .describe('How the value is entered, and its JSON type: see the table of types.'),
  order: z
    .int()
    .min(-1_000)
    .max(1_000)
    .optional()
    .describe('Fields are shown by ascending order, those of the same order as they are listed. Default: 0.'),
  required: z.boolean().default(false).describe('An empty value is rejected; a checkbox must be checked.'),
  default: z
    .union([rawText(), z.boolean(), z.number(), listOf(rawText())])
    .optional()
    .describe("Taken when the field is left empty; of the field's JSON type."),
  format: z.enum(FIELD_FORMATS).optional().describe('What the value of a text must be.'),
  pattern: z
    .string()
    .max(PATTERN_LENGTH_MAX, { abort: true })
    .superRefine(refineWith(findPatternProblem, 'field.pattern'))
    .optional()
    .describe(
      'A regular expression that the whole value must match, in RE2 syntax: no back references, no lookaround. Values of more than 512 characters do not match.',
    ),
  pattern_message: plainText().optional().describe('Shown when the value does not match the pattern.'),
  transform: z.enum(['lowercase', 'uppercase', 'trim']).optional().describe('Applied before anything is checked.'),
  prefix: rawText()
    .optional()
    .describe('Shown before the input and taken off a value that was given with it, for example `https://`.'),
  suffix: rawText().optional().describe('Shown behind the input and taken off likewise, for example `.zendesk.com`.'),
  placeholder: plainText().optional().describe('Shown in the empty input.'),
  help_text: plainText().optional().describe('Shown below the input.'),
  documentation_link: webAddress().optional().describe('Where the customer reads how to find the value.'),
  options: listOf(option).min(1).optional().describe('The choices of a `single_select` or `multi_select`.'),
  is_secret: z
    .boolean()
    .optional()
    .describe(
      'Of a `textarea` or `file`: the value is credential material, stored encrypted and never shown. Default: true for a file.',
    ),
  accept: listOf(
    z
      .string()
      .max(16)
      .regex(/^\.[a-z0-9]+$/, { error: 'must be a file name extension such as .pem' }),
  )
    .max(20)
    .optional()
    .describe('Extensions that the file chooser offers, for example `[".pem"]`.'),
  min: z.number().optional().describe('Least value of a `number`.'),
  max: z.number().optional().describe('Largest value of a `number`.'),
  visible_when: z
    .strictObject({
      field: z.string().max(64).describe('Name of a field that is listed before.'),
      equals: z
        .union([rawText(), z.boolean(), z.number(), listOf(scalar).min(1)])
        .describe('The value, or one of the values, that it must have; a `multi_select` must hold one of them.'),
    })
    .optional()
    .describe('When another field has another value, the field is not shown, not required and not stored.'),
} as const

const fieldObject = z.strictObject(fieldKeys)

export type Field = z.output<typeof fieldObject>

/** A field whose options may be described otherwise than by a list. */
type AnyField = Omit<Field, 'options'> & { readonly options?: unknown; readonly data_source?: unknown }

const FIELD_RULES = [
  [findOptionsProblem, 'field.options'],
  [findTypeProblem, 'field.type'],
  [findDefaultProblem, 'field.default'],
] as const

/** Checks the keys of one field against each other. */
export function checkField(field: AnyField, context: z.RefinementCtx): void {
  for (const [find, rule] of FIELD_RULES) {
    const problem = find(field)
    if (problem !== undefined) context.addIssue({ code: 'custom', message: problem, params: { rule } })
  }
}

/** One field of the form with which a customer connects an account. */
const fieldSchema = fieldObject.superRefine(checkField).meta({ id: 'Field' })

/** The `fields` list of a credential format. */
export function fieldList(): z.ZodType<Field[]> {
  return fieldListOf(fieldSchema)
}

/** A list of fields, with the rules between them. */
export function fieldListOf<One extends AnyField>(schema: z.ZodType<One>): z.ZodType<One[]> {
  return z
    .array(schema)
    .max(FIELDS_MAX, { abort: true })
    .superRefine(refineWith(findDuplicateProblem, 'field.duplicate'))
    .superRefine(refineWith(findPatternsProblem, 'field.pattern'))
    .superRefine(refineWith(findVisibilityProblem, 'field.visible_when'))
}

/** Whether values of the field are credential material: stored encrypted, never shown. */
export function isSecretField({ type, is_secret }: Pick<Field, 'type' | 'is_secret'>): boolean {
  switch (type) {
    case 'password':
      return true
    case 'file':
      return is_secret ?? true
    case 'textarea':
      return is_secret ?? false
    default:
      return false
  }
}

function findRootProblem(name: string): string | undefined {
  if (FORBIDDEN_KEYS.has(name)) return 'is not possible as a name'
  return isPlaceholderRoot(name) ? `is reserved: {{${name}}} means something else` : undefined
}

function isSelect({ type }: Pick<Field, 'type'>): boolean {
  return type === 'single_select' || type === 'multi_select'
}

function findOptionsProblem(field: AnyField): string | undefined {
  if (isSelect(field) && field.options === undefined) return `needs options, because its type is ${field.type}`
  if (!isSelect(field) && field.options !== undefined)
    return 'has options, which only a single_select or multi_select has'
  return undefined
}

/** Keys that have no effect for the type of their field, and contradictions between keys. */
function findTypeProblem(field: AnyField): string | undefined {
  const { type, min, max } = field
  const has = (key: keyof AnyField) => field[key] !== undefined
  if ((has('min') || has('max')) && type !== 'number') return 'has min or max, which only a number has'
  if (min !== undefined && max !== undefined && min > max) return 'has a min that is larger than its max'
  if (has('accept') && type !== 'file') return 'has accept, which only a file has'
  if (has('is_secret') && type !== 'file' && type !== 'textarea')
    return 'has is_secret, which only a textarea or file has; a password always is'
  if (has('pattern_message') && !has('pattern')) return 'has a pattern_message without a pattern'
  const textual = (['format', 'pattern', 'transform', 'prefix', 'suffix'] as const).find(has)
  const isTyped = type === 'number' || type === 'checkbox' || type === 'multi_select'
  return textual !== undefined && isTyped ? `has ${textual}, which a ${type} has not` : undefined
}

function findDefaultProblem(field: AnyField): string | undefined {
  const { type, default: given } = field
  if (given === undefined) return undefined
  if (isSecretField(field)) return type === 'password' ? undefined : 'has a default, but its value is a secret'
  const kind = defaultKindOf(type)
  if (kindOf(given) !== kind) return `has a default that is not ${NOUNS[kind]}`
  return isSelect(field) ? findUnknownOption(field, given) : undefined
}

const NOUNS = { string: 'a text', boolean: 'true or false', number: 'a number', list: 'a list of texts' } as const

function defaultKindOf(type: Field['type']): keyof typeof NOUNS {
  switch (type) {
    case 'checkbox':
      return 'boolean'
    case 'number':
      return 'number'
    case 'multi_select':
      return 'list'
    default:
      return 'string'
  }
}

function kindOf(value: NonNullable<Field['default']>): string {
  return Array.isArray(value) ? 'list' : typeof value
}

function findUnknownOption({ options }: AnyField, given: Json): string | undefined {
  if (!Array.isArray(options)) return undefined
  const values: readonly Json[] = Array.isArray(given) ? given : [given]
  const unknown = values.find((value) => !options.some((each) => each.value === value))
  if (unknown === undefined) return undefined
  const near = suggest(
    String(unknown),
    options.map((each) => String(each.value)),
  )
  return `has the default ${JSON.stringify(unknown)}, which is none of its options${near}`
}

/** The problem of the patterns of one form, which are matched one after the other; those that are none are left out. */
export function findPatternsProblem(fields: readonly { readonly pattern?: unknown }[]): string | undefined {
  const patterns = fields.flatMap(({ pattern }) =>
    typeof pattern !== 'string' || findPatternProblem(pattern) !== undefined ? [] : [pattern],
  )
  return areTooLargeTogether(patterns) ? 'has patterns that together repeat too much' : undefined
}

function findDuplicateProblem(fields: readonly { readonly name: string }[]): string | undefined {
  const names = fields.map((field) => field.name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  return twice === undefined ? undefined : `names the field ${twice} twice`
}

/** A condition reads a field that is listed before: there are no cycles, and one pass decides all of them. */
function findVisibilityProblem(fields: readonly AnyField[]): string | undefined {
  for (const [index, { name, visible_when: condition }] of fields.entries()) {
    if (condition === undefined) continue
    const read = fields.findIndex((field) => field.name === condition.field)
    const other = fields[read]
    if (other === undefined || read >= index)
      return `shows ${name} by the field ${condition.field}, which is not listed before it`
    if (isSecretField(other)) return `shows ${name} by the field ${condition.field}, whose value is a secret`
  }
  return undefined
}
