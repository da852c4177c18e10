import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { BODY_FORMATS } from '../formats/body/registry.ts'
import type { Field } from '../formats/credential/fields.ts'
import { DEFINITION_LIMITS } from '../formats/schema-types.ts'
import { integrationConfigSchema, overrideKeysSchema } from './config-schema.ts'

/**
 * The reference page of definitions in Markdown, made of the JSON Schema that validates them: `engine/reference/definition-keys.md` is
 * this text, and a test fails when it is not.
 */
export function renderReference(): string {
  const schema = integrationConfigSchema()
  const types = objectAt(schema, '$defs')
  const rowsOf = (name: string) => keyRows(objectAt(types, name), '')
  const request = rowsOf('Request')
  const field = rowsOf('Field')
  // Their `config` has a table below each format.
  const credentialRows = rowsOf('NamedCredential').filter(([path]) => !path.includes('.'))
  const credentials = renderSection('Credentials', CREDENTIALS, credentialRows)
  const sections = [
    INTRO,
    renderSection('Definition', DEFINITION, keyRows(schema, '')),
    renderSection('Override', OVERRIDE, keyRows(overrideKeysSchema(), '')),
    renderSection('Method', METHOD, without(rowsOf('Method'), request)),
    renderSection('Request', REQUEST, request),
    renderSection('RateLimit', '`rate_limit`: what is read of the answers of the third party.', rowsOf('RateLimit')),
    renderSection('Retry', '`retry`: when a request is sent again. Times are in seconds.', rowsOf('Retry')),
    renderSection('Budget', '`budget`: a list of at most ten entries.', rowsOf('Budget')),
    renderSection('Action', ACTION, rowsOf('Action')),
    renderSection('PostConnectField', FORM_FIELD, without(rowsOf('PostConnectField'), field)),
    renderSection('Webhook', WEBHOOK, rowsOf('Webhook')),
    renderSection('WebhookSubscription', SUBSCRIPTION, rowsOf('WebhookSubscription')),
    ['## Authorization', renderFormats(objectAt(types, 'Authorization'))].join('\n\n'),
    [credentials, renderFormats(objectAt(types, 'Credential'))].join('\n\n'),
    renderField(field),
    renderPagination(objectAt(types, 'Pagination')),
    ['## SignatureVerification', SIGNATURE, renderFormats(objectAt(types, 'SignatureVerification'))].join('\n\n'),
    renderNames('body_format', BODY_FORMATS),
    ['## ResponseFormat', RESPONSE, renderFormats(objectAt(types, 'ResponseFormat'))].join('\n\n'),
  ]
  return `${sections.join('\n\n')}\n`
}

const { entries, jsonLength, nameLength, textLength, urlLength } = DEFINITION_LIMITS

const INTRO = `<!-- Generated from the schemas by \`npm run docs\`. -->

# Keys of a definition

Every key of a definition, generated from the schemas that validate. Keys without a default may be left out unless they are
required. In a path, \`[]\` is an entry of a list and \`<name>\` a name of your own. [Formats](../formats/README.md) explains the rules that
the keys share: placeholders, paths, expressions, precedence. Wherever APIs differ in kind,
\`{"format": …, "config": …}\` names a format, and the table below its name has the keys of \`config\`.

## Editors

\`GET /schemas/integration-config.json\` is the JSON Schema (draft 2020-12) of a definition; it needs no token. With its address in
\`$schema\`, editors such as Visual Studio Code complete and check the keys of a file, and show what is written here:

\`\`\`json
{
  "$schema": "http://localhost:8080/schemas/integration-config.json",
  "label": "Tracker",
  "base_url": "https://api.example.com",
  "resources": { "projects": { "list": { "path": "/projects" } } }
}
\`\`\`

Such a file is the \`config\` of an integration alone, which \`patchbay install\` names after the file. \`patchbay check FILE\` also says what
no JSON Schema can: wrong placeholders and expressions, and keys that contradict each other. An override may have \`$schema\` too; an
editor then marks \`environment_variables\`, and keys that are required in a definition only.

## Limits

Every part of a definition or override has a limit, in characters or entries; the JSON Schema names each of them. Unless a key says
otherwise: texts ${textLength}, base URLs ${urlLength}, names ${nameLength}, lists and maps ${entries} entries, free-form JSON (bodies, schemas,
examples) ${jsonLength} as JSON. One text holds at most 500 placeholders, an expression 16384 bytes, a form 100 fields.
A definition or override as a whole has at most 262144 characters as JSON. A check reports the first 100 findings.`

const DEFINITION =
  'The top level: the `config` of `POST /integration`, and of a file `{"name": …, "category": …, "config": {…}}`, or a file by itself.'

const OVERRIDE = `All keys of a definition, at every depth, and one more. An override is merged over the definition: objects merge, lists and scalars
replace, \`null\` removes. \`format\` may be left out where the definition has it.`

const METHOD = 'An entry of `resources.<resource>`. It has the keys of a [Request](#request), and these:'

const REQUEST =
  'One HTTP request: a method, the verification of a credential, a step of an action or of a token exchange.'

const ACTION = `An entry of \`actions\`: one step, or several in \`steps\`. [Actions](../formats/README.md#actions) has what a step reads, and the names that run in the
life cycle of an account.`

const FORM_FIELD = 'A field of a `form` step. It has the keys of a [Field](#field), and these:'

const WEBHOOK =
  '`webhook`. [Receive webhooks of third parties](../../../guides/webhooks.md#receive-webhooks-of-third-parties) is the guide.'

const SUBSCRIPTION =
  '`webhook.subscription`. [Webhook subscriptions](../../platform/README.md#subscriptions-at-third-parties) says when each request is made.'

const SIGNATURE =
  '[Signatures](../formats/README.md#signatures) lists the tokens that `parts`, `compare_with` and `timestamp` are made of.'

const RESPONSE =
  '`response_format`: the name of a format, or `{"format": …, "config": …}` with the settings of one that has some.'

const CREDENTIALS = `One \`{"format": …, "config": …}\`, or a map of \`{"label": …, "config": …}\` from which the customer chooses. A key of the
map that is the name of a format says the format. Under any other key (lower-case letters, digits, underscores) \`format\` stands beside
\`config\`, so that one format can be there several times, with another client or other fields:

\`\`\`json
{
  "oauth2": { "label": "Production", "config": { "client": { "id": "…", "secret": "…" } } },
  "sandbox": { "format": "oauth2", "label": "Sandbox", "config": { "client": { "id": "…", "secret": "…" } } }
}
\`\`\`

The key is the \`credential\` of accounts, links and the catalogue, where \`authentication_method\` has four values only.`

const FIELD = `An entry of \`fields\`. Pasted values are normalised before they are checked: blanks and invisible characters around them are taken
off, inside too unless the field is a password; a PEM block with written \`\\n\` gets line breaks; of a format, quotation marks around the
value; of \`hostname\` and \`hostname_label\` everything of an address but its host, of \`hostname_label\` the \`suffix\` as well
(\`https://acme.zendesk.com/agent\` becomes \`acme\`); of \`url\` a missing \`https://\` is added; of \`tel\` blanks and dashes are removed.`

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

/** A key: its dotted path, its type, its default or `required`, its meaning. */
type KeyRow = readonly [path: string, type: string, standard: string, meaning: string]

function renderSection(name: string, intro: string, rows: readonly KeyRow[]): string {
  return `## ${name}\n\n${intro}\n\n${keyTable(rows)}`
}

function renderField(rows: readonly KeyRow[]): string {
  const types = FIELD_TYPE_ROWS.map(([type, stored, given]) => [`\`${type}\``, stored, given])
  return `${renderSection('Field', FIELD, rows)}\n\n${table(['type', 'value', 'accepted'], types)}`
}

/** One section per format of a union `{format, config}`, with the keys of `config`. @param shared rows that all formats have */
function renderFormats(union: JsonObject, shared: readonly KeyRow[] = []): string {
  return optionsOf(union)
    .map((option) => {
      const rows = without(keyRows(objectAt(option, 'properties', 'config'), ''), shared)
      const summary = `### \`${objectAt(option, 'properties', 'format').const}\`\n\n${option.description}`
      return rows.length === 0 ? summary : `${summary}\n\n${keyTable(rows)}`
    })
    .join('\n\n')
}

function renderPagination(union: JsonObject): string {
  const [first = [], ...others] = optionsOf(union).map((option) =>
    keyRows(objectAt(option, 'properties', 'config'), ''),
  )
  const shared = first.filter((row) => others.every((rows) => hasRow(rows, row)))
  const common = `### Keys of every pagination format\n\n${keyTable(shared)}`
  return ['## Pagination', renderFormats(union, shared), common].join('\n\n')
}

function renderNames(name: string, formats: readonly { readonly format: string; readonly summary: string }[]): string {
  const rows = formats.map(({ format, summary }) => [`\`${format}\``, summary])
  return `## ${name}\n\n${table(['name', 'what it is'], rows)}`
}

/** One row per key; the keys of an object, of the entries of a list or map, or of an option follow under their paths. */
function keyRows(schema: JsonObject, at: string): readonly KeyRow[] {
  const options = optionsOf(schema)
  const { items, additionalProperties } = schema
  return [
    ...propertyRows(schema, at),
    ...(isJsonObject(items) ? keyRows(items, at === '' ? '' : `${at}[]`) : []),
    ...(isJsonObject(additionalProperties) ? keyRows(additionalProperties, join(at, '<name>')) : []),
    ...optionRows(options.map((option) => keyRows(option, at).map((row) => named(row, option)))),
  ]
}

function propertyRows(schema: JsonObject, at: string): readonly KeyRow[] {
  const required: readonly Json[] = Array.isArray(schema.required) ? schema.required : []
  return Object.entries(objectAt(schema, 'properties')).flatMap(([key, value]) => {
    const property = isJsonObject(value) ? value : {}
    const standard = property.default === undefined ? '' : `\`${JSON.stringify(property.default)}\``
    const meaning = typeof property.description === 'string' ? property.description : ''
    const path = join(at, key)
    const row: KeyRow = [path, typeOf(property), required.includes(key) ? 'required' : standard, meaning]
    return [row, ...keyRows(property, path)]
  })
}

/** Rows of several options, each of them once; those that differ in their type alone are one row with all types. */
function optionRows(options: readonly (readonly KeyRow[])[]): readonly KeyRow[] {
  const merged: KeyRow[] = []
  for (const row of options.flat()) {
    const index = merged.findIndex((other) => [0, 2, 3].every((column) => other[column] === row[column]))
    const known = merged[index]
    if (known === undefined) merged.push(row)
    else merged[index] = [known[0], joinTypes([known[1], row[1]]), known[2], known[3]]
  }
  return merged
}

/** The row of a key that only the options of one `type` have says so in its meaning. */
function named(row: KeyRow, option: JsonObject): KeyRow {
  const { type } = objectAt(option, 'properties')
  if (!isJsonObject(type) || type.const === undefined || !isChosenByType(row[0])) return row
  return [row[0], row[1], row[2], `Of \`${type.const}\`: ${row[3]}`]
}

function isChosenByType(path: string): boolean {
  return /(?:^|\.)config(?:$|\.)/.test(path)
}

function optionsOf(schema: JsonObject): readonly JsonObject[] {
  return [schema.anyOf, schema.oneOf].flatMap((options) => (Array.isArray(options) ? options.filter(isJsonObject) : []))
}

function without(rows: readonly KeyRow[], omitted: readonly KeyRow[]): readonly KeyRow[] {
  return rows.filter((row) => !hasRow(omitted, row))
}

function hasRow(rows: readonly KeyRow[], row: KeyRow): boolean {
  return rows.some((other) => other.every((cell, column) => cell === row[column]))
}

function join(at: string, key: string): string {
  return at === '' ? key : `${at}.${key}`
}

function objectAt(schema: JsonObject, ...path: readonly string[]): JsonObject {
  return path.reduce<JsonObject>((value, key) => (isJsonObject(value[key]) ? value[key] : {}), schema)
}

function keyTable(rows: readonly KeyRow[]): string {
  return table(
    ['key', 'type', 'default', 'meaning'],
    rows.map(([path, ...cells]) => [`\`${path}\``, ...cells]),
  )
}

/** A Markdown table; all columns but the last, which holds sentences, are aligned. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const escaped = [head, ...rows].map((row) => row.map((cell) => cell.replaceAll('|', '\\|')))
  const last = head.length - 1
  const widths = head.map((_, column) =>
    column === last ? 3 : Math.max(3, ...escaped.map((row) => [...(row[column] ?? '')].length)),
  )
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`
  const [first = [], ...others] = escaped
  return [line(first), line(widths.map((width) => '-'.repeat(width))), ...others.map(line)].join('\n')
}

/** Types that have no section of their own. */
const SECTIONS: Readonly<Record<string, string>> = {
  Credential: 'Credentials',
  NamedCredential: 'Credentials',
  InnerPagination: 'Pagination',
  SingleSignature: 'SignatureVerification',
}

function typeOf(schema: JsonObject): string {
  if (schema.const !== undefined) return schema.const === false ? 'false' : `\`${schema.const}\``
  if (Array.isArray(schema.enum)) return joinTypes(schema.enum.map((value: Json) => `\`${value}\``))
  if (typeof schema.$ref === 'string') return linkTo(schema.$ref.split('/').at(-1) ?? '')
  const options = optionsOf(schema)
  if (options.length > 0) return joinTypes(options.map(typeOf))
  if (schema.type === 'array') return `list of ${isJsonObject(schema.items) ? typeOf(schema.items) : 'any'}`
  if (schema.type === 'object') return mapType(schema)
  return typeof schema.type === 'string' ? `${schema.type}${rangeOf(schema)}` : 'any'
}

function mapType({ additionalProperties: value }: JsonObject): string {
  const type = isJsonObject(value) ? typeOf(value) : 'any'
  return type === 'any' ? 'object' : `map of ${type}`
}

/** The bounds of a number, where a definition has both. */
function rangeOf({ minimum, maximum }: JsonObject): string {
  return typeof minimum === 'number' && typeof maximum === 'number' && maximum < Number.MAX_SAFE_INTEGER
    ? `, ${minimum} to ${maximum}`
    : ''
}

function linkTo(type: string): string {
  const section = SECTIONS[type] ?? type
  return `[${section}](#${section.toLowerCase()})`
}

/** Alternatives, each of them once: names of an enumeration beside each other, other types with `or`. */
function joinTypes(types: readonly string[]): string {
  const distinct = [...new Set(types.flatMap((type) => type.split(' or ')))]
  const isName = (type: string) => type.startsWith('`')
  const names = [...new Set(distinct.filter(isName).flatMap((type) => type.split(' ')))].join(' ')
  return [names, ...distinct.filter((type) => !isName(type))].filter((type) => type !== '').join(' or ')
}
