import { Failure, trimEnd } from '../../foundation/base/index.ts'
import type { Placeholder, PlaceholderPath, TemplateScope } from './placeholder.ts'
import {
  type Encode,
  findTemplateProblem,
  renderText,
  type TextTemplate,
  templateParts,
  unresolvedPlaceholder,
} from './template.ts'

/** Base URL and path of a method, compiled once; each placeholder knows its position in the URL. */
export interface UrlTemplate {
  readonly pieces: readonly UrlPiece[]
  /** The finished URL when nothing in it varies. */
  readonly constant: string | undefined
}

type UrlPiece =
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'placeholder'; readonly template: TextTemplate; readonly position: UrlPosition }

/**
 * Position of a placeholder in a URL, which decides what its value may be.
 *
 * `origin`: at the start, a whole `http(s)://host[:port][/path]`; `scheme`; `label`: one label of the host; `host`: the
 * whole host, one or more labels; `port`; `path`: everything after the host, percent-encoded.
 */
type UrlPosition = 'origin' | 'scheme' | 'label' | 'host' | 'port' | 'path'

const LABEL = /^[a-z0-9-]{1,63}$/
const PORT = /^\d{1,5}$/
const DOT_SEGMENT = /(?:^|[/\\])\.{1,2}(?=[/\\]|$)/
/** Times that a path is decoded to find what is hidden in it: third parties decode once, some of their gateways once more. */
const DECODINGS_MAX = 3
const STARTS_LIKE_URL = /^(?:https?:\/\/[^/]|\{\{)/i
const ORIGIN_WITHOUT_SLASH = /^\{\{[^}]*\}\}(?!$|\/|:\/\/)/

/** The problem of a text as a base URL, `undefined` when it is valid. Which hosts are allowed is decided by `foundation/egress/`. */
export function findBaseUrlProblem(text: string): string | undefined {
  if (!STARTS_LIKE_URL.test(text)) return 'must start with https://, http:// or a placeholder'
  if (ORIGIN_WITHOUT_SLASH.test(text))
    return 'starts with a placeholder for https://host, so that only "/" may follow it'
  const literal = withoutPlaceholders(text)
  if (/[?#\s\\]/.test(literal)) return 'must not hold a query, a fragment, a backslash or blanks'
  if (/^https?:\/\/[^/]*@/i.test(literal)) return 'must not hold a user name or password'
  return undefined
}

/** The text without its `{{…}}`; an unclosed one stays. */
function withoutPlaceholders(text: string): string {
  let literal = ''
  let position = 0
  for (let open = text.indexOf('{{'); open !== -1; open = text.indexOf('{{', position)) {
    const close = text.indexOf('}}', open + 2)
    if (close === -1) break
    literal += text.slice(position, open)
    position = close + 2
  }
  return literal + text.slice(position)
}

/**
 * Joins base URL and path into one template with exactly one slash between them, so that no path can change the host.
 *
 * @throws Failure DEFINITION_INVALID when one of them is not a template
 */
export function compileUrl(baseUrl: string, path: string): UrlTemplate {
  const joint = path === '' || path.startsWith('/') ? path : `/${path}`
  const pieces = [...basePieces(trimEnd(baseUrl, '/')), ...pathPieces(joint)]
  const isConstant = pieces.every((piece) => piece.kind === 'literal')
  return { pieces, constant: isConstant ? pieces.map((piece) => piece.text).join('') : undefined }
}

/**
 * The URL of a call, without its query parameters.
 *
 * @throws Failure PLACEHOLDER_UNRESOLVED when a value is missing, or not allowed at its position
 */
export function renderUrl(template: UrlTemplate, scope: TemplateScope): string {
  if (template.constant !== undefined) return template.constant
  let url = ''
  for (const piece of template.pieces)
    url += piece.kind === 'literal' ? piece.text : renderText(piece.template, scope, ENCODERS[piece.position])
  assertNoDotSegments(url)
  return url
}

/** The template as it is written, for messages about a call whose address could not be rendered. */
export function urlTemplateText({ pieces }: UrlTemplate): string {
  return pieces
    .map((piece) => {
      if (piece.kind === 'literal') return piece.text
      return piece.template.kind === 'value' ? `{{${piece.template.placeholder.source}}}` : ''
    })
    .join('')
}

/**
 * Rejects `.` and `..` segments between slashes and backslashes, encoded or not: URL parsers resolve them, and third parties that
 * decode a path before they route it, which would change the path.
 */
export function assertNoDotSegments(url: string): void {
  const [bare = ''] = url.replace(/^[a-z]+:\/\//i, '').split(/[?#]/, 1)
  if (decodedForms(bare).some((form) => DOT_SEGMENT.test(form)))
    throw new Failure(
      'PLACEHOLDER_UNRESOLVED',
      'the path would hold a segment "." or "..", which leads to another path',
    )
}

/** A text, and what percent-decoding makes of it until nothing changes, at most `DECODINGS_MAX` times. */
export function decodedForms(text: string): readonly string[] {
  const forms = [text]
  for (let form = text; forms.length <= DECODINGS_MAX && form.includes('%'); forms.push(form)) {
    const decoded = percentDecode(form)
    if (decoded === form) break
    form = decoded
  }
  return forms
}

/** Decodes each group of escapes that is UTF-8; others stay. */
function percentDecode(text: string): string {
  return text.replace(/(?:%[\da-f]{2})+/gi, (escapes) => {
    try {
      return decodeURIComponent(escapes)
    } catch {
      return escapes.replace(/%(2[ef]|5c)/gi, (separator) => decodeURIComponent(separator))
    }
  })
}

/** A value that occurs before the path of an address. */
export interface HostPlaceholder {
  readonly path: PlaceholderPath
  /** The value can only be a part of one label below a literal domain, as in `https://{{shop}}.example.com`. */
  readonly isBelowDomain: boolean
}

/** The end of a host that leaves no choice of the domain: after the label a domain and a top-level domain follow. */
const DOMAIN = /^[a-z0-9-]*\.[a-z0-9-]+\.[a-z0-9.-]+$/i

/** The values that occur before the path of an address; none when it is not a template. */
export function listHostPlaceholders(address: string): readonly HostPlaceholder[] {
  if (findTemplateProblem(address) !== undefined) return []
  const pieces = basePieces(trimEnd(address, '/'))
  const last = pieces.findLastIndex((piece) => piece.kind === 'placeholder' && isInHost(piece.position))
  const next = pieces[last + 1]
  const [tail = ''] = next?.kind === 'literal' ? next.text.split(/[/:]/, 1) : []
  return pieces.flatMap((piece) => {
    if (piece.kind === 'literal' || !isInHost(piece.position) || piece.template.kind !== 'value') return []
    const isBelowDomain = piece.position === 'label' && DOMAIN.test(tail)
    return piece.template.placeholder.paths.map((path) => ({ path, isBelowDomain }))
  })
}

function isInHost(position: UrlPosition): boolean {
  return position === 'origin' || position === 'label' || position === 'host'
}

function pathPieces(text: string): UrlPiece[] {
  return templateParts(text).map((part) =>
    typeof part === 'string' ? { kind: 'literal', text: part } : placeholderPiece(part, 'path'),
  )
}

/** Splits the base URL from left to right; `before` is the text so far with a blank for each placeholder. */
function basePieces(text: string): UrlPiece[] {
  const parts = templateParts(text)
  let before = ''
  return parts.map((part, index) => {
    if (typeof part === 'string') {
      before += part
      return { kind: 'literal', text: part }
    }
    const next = parts[index + 1]
    const position = positionInBase(before, typeof next === 'string' ? next : '')
    before += ' '
    return placeholderPiece(part, position)
  })
}

function positionInBase(before: string, after: string): UrlPosition {
  if (before === '') return after.startsWith('://') ? 'scheme' : 'origin'
  const authority = /^[a-z ]+:\/\/([^/]*)$/i.exec(before)?.[1]
  if (authority === undefined) return 'path'
  if (/:\d*$/.test(authority)) return 'port'
  return authority === '' && /^(?:$|[/:])/.test(after) ? 'host' : 'label'
}

function placeholderPiece(placeholder: Placeholder, position: UrlPosition): UrlPiece {
  return { kind: 'placeholder', template: { kind: 'value', placeholder }, position }
}

const ENCODERS: Readonly<Record<UrlPosition, Encode>> = {
  origin: encodeOrigin,
  scheme: (text, placeholder) => assertAllowed(/^https?$/.test(text), text, placeholder, 'must be http or https'),
  label: (text, placeholder) => {
    const label = text.toLowerCase()
    return assertAllowed(
      LABEL.test(label),
      label,
      placeholder,
      'may only hold a-z, 0-9 and "-" (at most 63) inside a host name',
    )
  },
  host: (text, placeholder) => {
    const host = text.toLowerCase()
    const isHost = host.length <= 253 && host.split('.').every((label) => LABEL.test(label))
    return assertAllowed(isHost, host, placeholder, 'must be a host name: labels of a-z, 0-9 and "-" between dots')
  },
  port: (text, placeholder) =>
    assertAllowed(PORT.test(text) && Number(text) < 65_536, text, placeholder, 'must be a port number'),
  path: (text, placeholder) => {
    if (placeholder.cast === 'path') return encodeSegments(text, placeholder)
    const isUsable = text !== '' && text.isWellFormed()
    return encodeURIComponent(
      assertAllowed(isUsable, text, placeholder, 'must not be empty or malformed text in a path'),
    )
  },
}

/** Each segment of a name such as `accounts/1/locations/2`; `.` and `..` are rejected in the whole URL. */
function encodeSegments(text: string, placeholder: Placeholder): string {
  const segments = text.replace(/^\//, '').split('/')
  const isUsable = text.isWellFormed() && !segments.includes('')
  assertAllowed(isUsable, text, placeholder, 'must not be empty, malformed or with an empty part in a path')
  return segments.map(encodeURIComponent).join('/')
}

function encodeOrigin(text: string, placeholder: Placeholder): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isPlain = url !== undefined && /^https?:$/.test(url.protocol) && !/[@?#\\]/.test(text)
  if (!isPlain)
    throw unresolvedPlaceholder(
      placeholder,
      'must be an address such as https://host, without user name, query or fragment',
    )
  return url.origin + trimEnd(url.pathname, '/')
}

function assertAllowed(isAllowed: boolean, text: string, placeholder: Placeholder, problem: string): string {
  if (!isAllowed) throw unresolvedPlaceholder(placeholder, problem)
  return text
}
