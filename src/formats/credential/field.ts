import { z } from 'zod'
import { isPlaceholderRoot } from '../../expression/index.ts'
import { listOf, plainText, rawText, refineWith } from '../vocabulary.ts'
import { areTooLargeTogether, findPatternProblem, PATTERN_LENGTH_MAX } from './pattern.ts'

/** Fields that one form asks for. */
const FIELDS_MAX = 100

/** A key that placeholders can name: `{{subdomain}}`, `{{credentials.subdomain}}`. */
const FIELD_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/

const option = z.strictObject({
  value: rawText(),
  label: plainText().optional().describe('Default: the value.'),
})

/** One thing that a customer is asked for when an account is connected. */
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
    required: z.boolean().default(false).describe('An empty value is refused.'),
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
