import { z } from 'zod'
import { isJsonObject, type Json, type JsonObject } from '../base/index.ts'
import { AUTHORIZATION_FORMATS } from './authorization/index.ts'
import { BODY_FORMATS } from './body/index.ts'
import { type Field, fieldKeys } from './credential/fields.ts'
import { CREDENTIAL_FORMATS } from './credential/index.ts'
import type { Format } from './format.ts'
import { PAGINATION_FORMATS } from './pagination/index.ts'
import { commonKeys } from './pagination/rules.ts'
import { RESPONSE_FORMATS } from './response/index.ts'
import { DEFINITION_LIMITS } from './schema-types.ts'
import { SIGNATURE_FORMATS } from './signature/index.ts'

/**
 * The reference page of all formats in Markdown, from the registries: `REFERENCE.md` is this text, and a test fails when it
 * is not.
 */
export function renderFormatReference(): string {
  const sections = [
    '# Reference of formats\n\nGenerated from the schemas that validate. Written as `{"format": …, "config": …}`; keys without a default may be left out unless they are required.',
    LIMITS,
    renderKind('authorization', AUTHORIZATION_FORMATS),
    renderKind('credentials', CREDENTIAL_FORMATS, [], CREDENTIAL_SHAPES),
    renderFields(),
    `${renderKind('pagination', PAGINATION_FORMATS, Object.keys(commonKeys))}\n\n### Keys of every pagination format\n\n${keyTable(schemaOf(z.strictObject(commonKeys)), [])}`,
    renderKind('signature_verification', SIGNATURE_FORMATS),
    renderNames('body_format', BODY_FORMATS),
    renderNames('response_format', RESPONSE_FORMATS),
  ]
  return `${sections.join('\n\n')}\n`
}

const { entries, jsonLength, nameLength, textLength, urlLength } = DEFINITION_LIMITS

const LIMITS = `## Limits

Every part of a definition or override has a limit, in characters or entries; the JSON Schema names each of them. Unless a key says
otherwise: texts ${textLength}, base URLs ${urlLength}, names ${nameLength}, lists and maps ${entries} entries, free-form JSON (bodies, schemas,
examples) ${jsonLength} as JSON. One text holds at most 500 placeholders, an expression 16384 bytes, a form 100 fields.
A definition or override as a whole has at most 262144 characters as JSON. A check reports the first 100 findings.`

const CREDENTIAL_SHAPES = `One \`{"format": …, "config": …}\`, or a map of \`{"label": …, "config": …}\` from which the customer chooses. A key of the
map that is the name of a format says the format. Under any other key (lower-case letters, digits, underscores) \`format\` stands beside
\`config\`, so that one format can be there several times, with another client or other fields:

\`\`\`json
{
  "oauth2": { "label": "Production", "config": { "client": { "id": "…", "secret": "…" } } },
  "sandbox": { "format": "oauth2", "label": "Sandbox", "config": { "client": { "id": "…", "secret": "…" } } }
}
\`\`\`

The key is the \`credential\` of accounts, links and the catalogue, where \`authentication_method\` has four values only.`

function renderKind(name: string, formats: readonly Format[], shared: readonly string[] = [], intro?: string): string {
  const entries = formats.map(({ format, summary, config }) => {
    const keys = keyTable(schemaOf(config), shared)
    return `### \`${format}\`\n\n${summary}${keys === '' ? '' : `\n\n${keys}`}`
  })
  return [`## ${name}`, ...(intro === undefined ? [] : [intro]), ...entries].join('\n\n')
}

/** Types of fields: the JSON type of their values, where these are stored, and which texts are accepted for them. */
const FIELD_TYPE_ROWS: readonly (readonly [Field['type'], string, string])[] = [
  ['text', 'text', 'One line.'],
  ['password', 'text, stored encrypted', 'One line that is not shown.'],
  ['textarea', 'text, stored encrypted with `is_secret`', 'Several lines.'],
  ['file', 'text, stored encrypted unless `is_secret` is false', 'Content of a text file: a private key, a JSON key.'],
  ['number', 'number, all digits kept', 'Decimal text such as `1.50`; leading zeros and a plus sign are dropped.'],
  ['checkbox', 'boolean', '`true` or `on`, `false` or `off`; not given is `false`, unless the default is true.'],
  ['single_select', 'text', 'One of the options.'],
  ['multi_select', 'list of texts', 'Some of the options.'],
  ['hidden', 'text', 'Not shown: an application supplies it, else it is the default.'],
]

function renderFields(): string {
  const types = FIELD_TYPE_ROWS.map(([type, stored, given]) => [`\`${type}\``, stored, given])
  return `## Field

An entry of \`fields\`. Pasted values are normalised before they are checked: blanks and invisible characters around them are taken
off, inside too unless the field is a password; a PEM block with written \`\\n\` gets line breaks; of a format, quotation marks around the
value; of \`hostname\` and \`hostname_label\` everything of an address but its host, of \`hostname_label\` the \`suffix\` as well
(\`https://acme.zendesk.com/agent\` becomes \`acme\`); of \`url\` a missing \`https://\` is added; of \`tel\` blanks and dashes are removed.

${keyTable(schemaOf(z.strictObject(fieldKeys)), [])}

${table(['type', 'value', 'accepted'], types)}`
}

function renderNames(name: string, formats: readonly Pick<Format, 'format' | 'summary'>[]): string {
  const rows = formats.map(({ format, summary }) => [`\`${format}\``, summary])
  return `## ${name}\n\n${table(['name', 'what it is'], rows)}`
}

function schemaOf(schema: z.ZodType): JsonObject {
  const json = JSON.parse(JSON.stringify(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }))) as Json
  return isJsonObject(json) ? json : {}
}

function keyTable(schema: JsonObject, omitted: readonly string[]): string {
  const rows = keyRows(schema, '').filter(([key = '']) => !omitted.includes(key.slice(1, -1)))
  return rows.length === 0 ? '' : table(['key', 'type', 'default', 'meaning'], rows)
}

/** One row per key; the keys of an object follow it under their dotted names. */
function keyRows(schema: JsonObject, prefix: string): string[][] {
  const properties = isJsonObject(schema.properties) ? schema.properties : {}
  const required: readonly Json[] = Array.isArray(schema.required) ? schema.required : []
  return Object.entries(properties).flatMap(([key, value]) => {
    const property = isJsonObject(value) ? value : {}
    const standard = property.default === undefined ? '' : `\`${JSON.stringify(property.default)}\``
    const meaning = typeof property.description === 'string' ? property.description : ''
    const row = [`\`${prefix}${key}\``, typeOf(property), required.includes(key) ? 'required' : standard, meaning]
    return [row, ...keyRows(property, `${prefix}${key}.`)]
  })
}

/** A Markdown table with its columns aligned, as the formatter of the repository writes it. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const escaped = [head, ...rows].map((row) => row.map((cell) => cell.replaceAll('|', '\\|')))
  const widths = head.map((_, column) => Math.max(3, ...escaped.map((row) => [...(row[column] ?? '')].length)))
  const lines = escaped.map(
    (row) => `| ${widths.map((width, column) => (row[column] ?? '').padEnd(width)).join(' | ')} |`,
  )
  const rule = `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`
  return [lines[0], rule, ...lines.slice(1)].join('\n')
}

function typeOf(property: JsonObject): string {
  if (Array.isArray(property.enum)) return property.enum.map((value: Json) => `\`${value}\``).join(' ')
  if (typeof property.$ref === 'string') return property.$ref.split('/').at(-1) ?? ''
  if (Array.isArray(property.anyOf))
    return property.anyOf.map((option: Json) => (isJsonObject(option) ? typeOf(option) : '')).join(' or ')
  if (property.type === 'array' && isJsonObject(property.items)) return `list of ${typeOf(property.items)}`
  return typeof property.type === 'string' ? property.type : 'any'
}
