import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { z } from 'zod'
import { FORM_FIELDS_MAX } from '../../../foundation/base/index.ts'
import { getAtPath, isJsonNumber, type Json, parseDotPath } from '../../../foundation/json/index.ts'
import type { TemplateScope } from '../../expressions/placeholder.ts'
import { compileTemplate } from '../../expressions/template.ts'
import { readForm } from '../form.ts'
import { CharsetError } from '../response/charset.ts'
import { findPathProblem, rawText, refineWith, templateText } from '../schema-types.ts'
import { renderSetting } from './secret.ts'
import { invalid, ok, type Result, type WebhookRequest } from './verification.ts'

/**
 * Reads values of a request, at least one. Several only where a header repeats a field (`v1=…,v1=…`), as senders do during
 * a rotation of secrets.
 */
export type ReadValues = (request: WebhookRequest, scope: TemplateScope) => Result<readonly (string | Uint8Array)[]>

/** Tokens without a parameter; `undefined` for a form that cannot be read. */
const FIXED: Readonly<Record<string, (request: WebhookRequest) => string | Uint8Array | undefined>> = {
  $body: ({ body }) => body,
  '$body.sha256': ({ body }) => sha256Hex(body),
  '$body.crc32': ({ body }) => crc32Decimal(body),
  '$form.sorted': (request) => sortedForm(request),
  $method: ({ method }) => method,
  $url: ({ url }) => url,
  '$url.decoded': ({ url }) => decodeUrl(url),
  '$url.with_port': ({ url }) => withPort(url),
  '$url.without_port': ({ url }) => withoutPort(url),
  $path: ({ url }) => pathOf(url),
}

/** `$header.stripe-signature[v1]`: kind, name, field of a header that is a list. */
const HEADER = /^\$header\.([!#%&'*+.^_`|~0-9A-Za-z-]+)(?:\[([^[\]{}=]+)\])?$/
const QUERY = /^\$query\.([^{}]+)$/
const FORM = /^\$form\.([^{}]+)$/
/** A value of the payload, or of one entry of the list that `items` names. */
const PAYLOAD = /^\$(payload|item)(?:\.(.+)|(\[.+))$/

/** Tokens inside of a longer text: `v0:$header.x-timestamp:$body`. A header's name ends at the first "." there. */
const EMBEDDED =
  /\$(?:header\.[0-9A-Za-z_-]+|body(?:\.sha256|\.crc32)?|form\.sorted|method|path|url(?:\.decoded|\.with_port|\.without_port)?)(?![0-9A-Za-z_])/g

/** A text before one token: `v0=$header.x-signature`. */
const PREFIXED = /^([^$]+)(\$.+)$/s

/** Most values of one field; during a rotation of secrets there are two. */
const VALUES_MAX = 8

/** A token that names a part of the request. It is no secret, also where its setting is called token. */
export function tokenText(): z.ZodString {
  return rawText().superRefine(refineWith(findTokenProblem, 'signature.token'))
}

/** A token, or a text before one, which the value has to start with: `v0=$header.x-signature`. */
export function prefixedTokenText(): z.ZodString {
  const findProblem = (text: string) => {
    const { prefix, token } = splitPrefix(text)
    return prefix.includes('{{') ? 'must have no placeholder before the token' : findTokenProblem(token)
  }
  return rawText().superRefine(refineWith(findProblem, 'signature.token'))
}

/** The text before the token of a checked text, and the token. */
export function splitPrefix(text: string): { readonly prefix: string; readonly token: string } {
  const [, prefix = '', token = text] = PREFIXED.exec(text) ?? []
  return { prefix, token }
}

/** A token that names a part of the request, a text with tokens in it, or one with or without placeholders. */
export function sourceText(): z.ZodString {
  return templateText()
    .min(1)
    .superRefine(refineWith((text) => (text.startsWith('$') ? findStartProblem(text) : undefined), 'signature.token'))
}

/** Like `sourceText`, without placeholders: for parts that may be left out, which a secret must not be. */
export function optionalSourceText(): z.ZodString {
  const findProblem = (text: string) =>
    text.includes('{{') ? 'must have no placeholder in a group that may be left out' : undefined
  return sourceText().superRefine(refineWith(findProblem, 'signature.optional'))
}

function findStartProblem(text: string): string | undefined {
  return isConcatenation(text) ? undefined : findTokenProblem(text)
}

function findTokenProblem(text: string): string | undefined {
  if (Object.hasOwn(FIXED, text) || HEADER.test(text) || QUERY.test(text) || FORM.test(text)) return undefined
  const [, , dotted, path = dotted] = PAYLOAD.exec(text) ?? []
  if (path !== undefined) return findPathProblem(path)
  const tokens = [
    ...Object.keys(FIXED),
    '$header.<name>',
    '$header.<name>[<field>]',
    '$query.<name>',
    '$form.<name>',
    '$payload.<path>',
    '$item.<path>',
  ]
  return `must say where in the request: ${tokens.join(', ')}`
}

/** True for a text with tokens and other characters. */
function isConcatenation(text: string): boolean {
  if (isToken(text)) return false
  const rest = text.replace(EMBEDDED, '')
  return rest !== text && !rest.includes('$')
}

function isToken(text: string): boolean {
  return text.startsWith('$') && findTokenProblem(text) === undefined
}

/** Whether a checked text reads the payload. */
export function readsPayload(text: string): boolean {
  return PAYLOAD.test(splitPrefix(text).token)
}

/** Compiles a checked text. */
export function compileSource(text: string): ReadValues {
  if (isConcatenation(text)) return concatenatedSource(text)
  if (!text.startsWith('$')) return templateSource(text)
  const fixed = FIXED[text]
  if (fixed !== undefined) return fixedSource(fixed)
  const [, header, field] = HEADER.exec(text) ?? []
  if (header !== undefined) return headerSource(header.toLowerCase(), field)
  const [, parameter] = QUERY.exec(text) ?? []
  if (parameter !== undefined) return querySource(parameter)
  const [, name] = FORM.exec(text) ?? []
  if (name !== undefined) return formSource(name)
  const [, root, dotted = '', path = dotted] = PAYLOAD.exec(text) ?? []
  return payloadSource(root === 'item' ? 'item' : 'payload', path)
}

/** The tokens in a checked text. */
export function listTokens(text: string): string[] {
  return isConcatenation(text) ? [...text.matchAll(EMBEDDED)].map(([token]) => token) : []
}

/** The parts of `v0:$header.x-timestamp:$body`, joined. */
function concatenatedSource(text: string): ReadValues {
  const tokens = listTokens(text)
  const literals = text.split(EMBEDDED)
  const sources = literals.flatMap((literal, index) => {
    const token = tokens[index]
    return [
      ...(literal === '' ? [] : [templateSource(literal)]),
      ...(token === undefined ? [] : [compileSource(token)]),
    ]
  })
  return (request, scope) => {
    const pieces: Uint8Array[] = []
    for (const source of sources) {
      const read = source(request, scope)
      if (read.kind === 'invalid') return read
      pieces.push(...read.value.map((value) => (typeof value === 'string' ? Buffer.from(value) : value)))
    }
    return ok([Buffer.concat(pieces)])
  }
}

/** The only value of a source, as text. */
export function readText(source: ReadValues, request: WebhookRequest, scope: TemplateScope): Result<string> {
  const read = source(request, scope)
  if (read.kind === 'invalid') return read
  const [value = '', ...more] = read.value
  return more.length > 0 ? invalid('a field of a header is there more than once') : ok(asText(value))
}

/** A value as text. */
export function asText(value: string | Uint8Array): string {
  return typeof value === 'string' ? value : Buffer.from(value).toString()
}

function templateSource(text: string): ReadValues {
  const template = compileTemplate(text)
  return (_delivery, scope) => {
    const rendered = renderSetting(template, scope, 'a setting of the signature')
    return rendered.kind === 'invalid' ? rendered : ok([rendered.value])
  }
}

function headerSource(name: string, field: string | undefined): ReadValues {
  return ({ headers }) => {
    const value = Object.hasOwn(headers, name) ? (headers[name] ?? '') : ''
    if (value === '') return invalid(`the header ${name} is missing`)
    if (field === undefined) return ok([value])
    const values = fieldValues(value, field)
    if (values.length === 0) return invalid(`the header ${name} has no field ${field}`)
    if (values.length > VALUES_MAX) return invalid(`the header ${name} has the field ${field} too often`)
    return ok(values)
  }
}

/** The values of a field in `t=1,v1=a,v1=b` or `ts=1;h1=a`, without empty ones. */
function fieldValues(header: string, field: string): string[] {
  return header
    .split(/[,;]/)
    .map((entry) => entry.trim())
    .filter((entry) => entry.startsWith(`${field}=`))
    .map((entry) => entry.slice(field.length + 1))
    .filter((value) => value !== '')
}

function querySource(name: string): ReadValues {
  return ({ query }) => {
    const value = Object.hasOwn(query, name) ? (query[name] ?? '') : ''
    return value === '' ? invalid(`the query parameter ${name} is missing`) : ok([value])
  }
}

function fixedSource(read: (request: WebhookRequest) => string | Uint8Array | undefined): ReadValues {
  return (request) => {
    const value = read(request)
    return value === undefined ? UNREADABLE_FORM : ok([value])
  }
}

const UNREADABLE_FORM = invalid(
  `the form has more than ${FORM_FIELDS_MAX} fields, is too long, or is not in the charset that it names`,
)

function formSource(name: string): ReadValues {
  return (request) => {
    const form = fieldsOf(request)
    if (form === undefined) return UNREADABLE_FORM
    const values = form.flatMap(([key, value]) => (key === name && value !== '' ? [value] : []))
    if (values.length > VALUES_MAX) return invalid(`the form has the field ${name} too often`)
    return values.length === 0 ? invalid(`the form has no field ${name}`) : ok(values)
  }
}

function payloadSource(root: 'payload' | 'item', path: string): ReadValues {
  const steps = parseDotPath(path)
  return (request) => {
    const text = scalarText(getAtPath(request[root], steps))
    return text === '' ? invalid(`the ${root} has no text at ${path}`) : ok([text])
  }
}

function scalarText(value: Json | undefined): string {
  return typeof value === 'string' || isJsonNumber(value) || typeof value === 'boolean' ? String(value) : ''
}

/** Scheme, host, port and the rest of an address. */
const ADDRESS = /^(https?):\/\/([^/?#:]*|\[[^\]]*\])(:\d+)?(.*)$/s

/** The URL with its port, that of the scheme where it has none (Twilio). */
function withPort(url: string): string {
  return url.replace(
    ADDRESS,
    (_all, scheme: string, host: string, port: string | undefined, rest: string) =>
      `${scheme}://${host}${port ?? (scheme === 'https' ? ':443' : ':80')}${rest}`,
  )
}

/** The URL without a port. */
function withoutPort(url: string): string {
  return url.replace(ADDRESS, '$1://$2$4')
}

/** The path of a URL, as it was received. */
function pathOf(url: string): string {
  const [, , , , rest = ''] = ADDRESS.exec(url) ?? []
  return rest.replace(/[?#].*$/s, '')
}

/** SHA-256 in hexadecimal. */
function sha256Hex(body: Uint8Array): string {
  return hash('sha256', body)
}

/** CRC-32 as a decimal number (PayPal). */
function crc32Decimal(body: Uint8Array): string {
  return String(crc32(body))
}

/**
 * The fields of a URL-encoded form, sorted by name, each name followed by its value, nothing between them (Twilio,
 * Mandrill). A name with several values appears once for each different one, sorted.
 */
function sortedForm(request: WebhookRequest): string | undefined {
  const fields = fieldsOf(request)
  if (fields === undefined) return undefined
  const pairs = new Map(fields.map(([name, value]) => [JSON.stringify([name, value]), { name, value }]))
  return [...pairs.values()]
    .sort((left, right) => compare(left.name, right.name) || compare(left.value, right.value))
    .map(({ name, value }) => name + value)
    .join('')
}

function fieldsOf({ body, headers }: WebhookRequest): ReturnType<typeof readForm> {
  try {
    return readForm(body, headers['content-type'])
  } catch (error) {
    if (error instanceof CharsetError) return undefined
    throw error
  }
}

/** Compares by code units, independent of the locale. */
function compare(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0
}

/** The characters that HubSpot decodes before it signs an address; all others stay encoded. */
const DECODED = /%(?:3A|2F|3F|40|21|24|27|28|29|2A|2C|3B)/gi

/** The URL with the characters decoded that HubSpot's signature v3 decodes. */
export function decodeUrl(url: string): string {
  return url.replace(DECODED, decodeURIComponent)
}
