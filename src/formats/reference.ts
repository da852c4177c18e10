import { z } from 'zod'
import { isJsonObject, type Json, type JsonObject } from '../base/index.ts'
import { AUTHORIZATION_FORMATS } from './authorization/index.ts'
import { BODY_FORMATS } from './body/index.ts'
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
    renderKind('credentials', CREDENTIAL_FORMATS),
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

function renderKind(name: string, formats: readonly Format[], shared: readonly string[] = []): string {
  const entries = formats.map(({ format, summary, config }) => {
    const keys = keyTable(schemaOf(config), shared)
    return `### \`${format}\`\n\n${summary}${keys === '' ? '' : `\n\n${keys}`}`
  })
  return `## ${name}\n\n${entries.join('\n\n')}`
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
