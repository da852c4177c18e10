import { isJsonObject, type Json, type JsonObject, JsonTextError, parseJson } from '../../../foundation/json/index.ts'
import type { FormatChoice } from '../format.ts'
import { BYTE_ENCODINGS } from './secret.ts'
import { decodeUrl, withoutPort, withPort } from './source.ts'
import type { WebhookRequest } from './verification.ts'

/** One common mistake: the config or the request, changed in one way. */
export interface Variation {
  /** Completes "the signature matches …". */
  readonly name: string
  readonly choice: FormatChoice
  /** What differs from the request. */
  readonly request: Partial<Pick<WebhookRequest, 'body' | 'url' | 'headers'>>
  /** The signature is right and only the time of sending is not. */
  readonly isTimestampOnly?: boolean
}

/** Bodies of a request beside the verified one. */
export interface BodyReadings {
  /** The body at the other stage: decompressed where the verified one is raw, raw where it is decompressed. */
  readonly otherStage?: Uint8Array
}

type NamedConfig = readonly [name: string, config: JsonObject]

/** Larger bodies are not varied: each variation costs a copy and a signature. */
const VARIED_BYTES_MAX = 256 * 1024

const SEPARATORS: Readonly<Record<string, string>> = { none: '', dot: '.', colon: ':', 'line break': '\n' }
const SIGNATURE_PREFIXES = ['sha256=', 'sha1=', 'v0=', 'v1=', 'v1,', 'hmac-sha256=']

/**
 * The variations of a checked choice. The timestamp is left out of all of them: a wrong clock must not hide a wrong encoding.
 * Empty for formats that sign no parts.
 */
export function listVariations(choice: FormatChoice, request: WebhookRequest, readings: BodyReadings): Variation[] {
  const base = withoutTimestamp(choice)
  if (base === undefined) return []
  const { format, config } = base
  const configs = [
    ...(choice.format === 'asymmetric' ? [] : keyConfigs(config)),
    ...encodingConfigs(config),
    ...separatorConfigs(config),
    ...prefixConfigs(config),
  ]
  const parts = JSON.stringify(config.parts ?? [])
  const signsBody = /\$(body|form)/.test(parts)
  const signsUrl = /\$(url|path)/.test(parts)
  const isSmall = request.body.byteLength <= VARIED_BYTES_MAX
  const bodies = signsBody && isSmall ? variedBodies(request.body, readings) : []
  const urls = signsUrl ? variedUrls(request.url) : []
  const hasTimestamp = config !== choice.config
  const untimed = { name: 'with any time of sending', choice: base, request: {}, isTimestampOnly: true }
  return [
    ...(hasTimestamp ? [untimed] : []),
    ...configs.map(([name, varied]) => ({ name, choice: { format, config: varied }, request: {} })),
    ...bodies.map(([name, body]) => ({ name, choice: { format, config }, request: { body } })),
    ...urls.map(([name, url]) => ({ name, choice: { format, config }, request: { url } })),
  ]
}

/** The choice without its timestamp; `standard_webhooks` as the HMAC that it is. */
function withoutTimestamp({ format, config = {} }: FormatChoice): { format: string; config: JsonObject } | undefined {
  if (!isJsonObject(config)) return undefined
  if (format === 'standard_webhooks') return { format: 'hmac', config: standardConfig(config) }
  if (format === 'clerk') return { format: 'hmac', config: standardConfig({ ...config, header_prefix: 'svix-' }) }
  if (!['hmac', 'hash', 'asymmetric'].includes(format)) return undefined
  if (config.timestamp === undefined) return { format, config }
  const { timestamp: _timestamp, ...rest } = config
  return { format, config: rest }
}

function standardConfig({ header_prefix = 'webhook-', secret = '' }: JsonObject): JsonObject {
  return {
    secret,
    secret_encoding: 'base64',
    secret_prefix: 'whsec_',
    parts: [`$header.${header_prefix}id`, `$header.${header_prefix}timestamp`, '$body'],
    separator: '.',
    compare_with: `$header.${header_prefix}signature`,
    signature_prefix: 'v1,',
    string_type: 'base64',
  }
}

function keyConfigs(config: JsonObject): NamedConfig[] {
  const { algorithm = 'sha256', secret_encoding: encoding = 'utf8', secret } = config
  const algorithms = ['sha1', 'sha256', 'sha512']
    .filter((name) => name !== algorithm)
    .map((name): NamedConfig => [`with the algorithm ${name}`, { ...config, algorithm: name }])
  if (secret === undefined) return algorithms
  const encodings = ['utf8', 'hex', 'base64']
    .filter((name) => name !== encoding)
    .map((name): NamedConfig => [`with secret_encoding ${name}`, { ...config, secret_encoding: name }])
  const { secret_prefix: prefix, ...without } = config
  const prefixed: NamedConfig[] =
    prefix === undefined
      ? [
          ['with the secret without whsec_', { ...config, secret_prefix: 'whsec_' }],
          [
            'with the secret without whsec_, in base64',
            { ...config, secret_prefix: 'whsec_', secret_encoding: 'base64' },
          ],
        ]
      : [
          ['with the prefix as a part of the secret', without],
          ['with the prefix as a part of the secret, as text', { ...without, secret_encoding: 'utf8' }],
        ]
  return [...algorithms, ...encodings, ...prefixed]
}

function encodingConfigs(config: JsonObject): NamedConfig[] {
  return BYTE_ENCODINGS.filter((name) => name !== config.string_type).map((name) => [
    `with string_type ${name}`,
    { ...config, string_type: name },
  ])
}

function separatorConfigs(config: JsonObject): NamedConfig[] {
  const { separator = '', parts = [] } = config
  if (Array.isArray(parts) && parts.length < 2) return []
  return Object.entries(SEPARATORS)
    .filter(([, text]) => text !== separator)
    .map(([name, text]) => [`with the separator ${name}`, { ...config, separator: text }])
}

function prefixConfigs(config: JsonObject): NamedConfig[] {
  const { signature_prefix: prefix, ...without } = config
  const others = SIGNATURE_PREFIXES.filter((text) => text !== prefix)
  return [
    ...(prefix === undefined ? [] : [['without a signature_prefix', without] as const]),
    ...others.map((text): NamedConfig => [`with the signature_prefix ${text}`, { ...config, signature_prefix: text }]),
  ]
}

function variedBodies(body: Uint8Array, { otherStage }: BodyReadings): [name: string, body: Uint8Array][] {
  const text = Buffer.from(body).toString()
  const trimmed = text.trim()
  const json = tryParseJson(trimmed)
  const candidates: [string, string | Uint8Array][] = [
    ['over the body at the other body_stage', otherStage ?? body],
    ['over the body without the white space around it', trimmed],
    ['over the body with a line break at its end', `${text}\n`],
    ['over the body with \\n line breaks', text.replaceAll('\r\n', '\n')],
    ...(json === undefined ? [] : serialisedBodies(json)),
    ['without the body', ''],
  ]
  return candidates
    .map(([name, varied]): [string, Uint8Array] => [name, Buffer.from(varied)])
    .filter(([, varied]) => !Buffer.from(body).equals(varied))
}

function serialisedBodies(json: Json): [string, string][] {
  const compact = JSON.stringify(json)
  return [
    ['over the JSON written anew, compact', compact],
    ['over the JSON written anew, indented by 2', JSON.stringify(json, null, 2)],
    ['over the JSON written anew, with \\u escapes', compact.replace(/[\u0080-\uffff]/g, escapeUnit)],
    [
      'over the JSON written anew, with \\u escapes and \\/',
      compact.replaceAll('/', '\\/').replace(/[\u0080-\uffff]/g, escapeUnit),
    ],
  ]
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
}

function tryParseJson(text: string): Json | undefined {
  try {
    return parseJson(text)
  } catch (error) {
    if (error instanceof JsonTextError) return undefined
    throw error
  }
}

function variedUrls(text: string): [name: string, url: string][] {
  const isHttps = text.startsWith('https:')
  const [path = text, query] = text.split('?', 2)
  const suffix = query === undefined ? '' : `?${query}`
  const candidates: [string, string][] = [
    ['over the URL with the other scheme', text.replace(/^https?:/, isHttps ? 'http:' : 'https:')],
    ['over the URL with its port', withPort(text)],
    ['over the URL without its port', withoutPort(text)],
    ['over the URL with a slash at the end of its path', `${path}/${suffix}`],
    ['over the URL without the slash at the end of its path', path.replace(/\/$/, '') + suffix],
    ['over the URL without its query', path],
    ['over the decoded URL', decodeUrl(text)],
  ]
  return candidates.filter(([, varied]) => varied !== text)
}
