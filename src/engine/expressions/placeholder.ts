import { assertNever, suggest } from '../../foundation/base/index.ts'
import {
  type DotPath,
  getAtPath,
  isJsonObject,
  type Json,
  type JsonObject,
  parseDotPath,
  tryParseDotPath,
} from '../../foundation/json/index.ts'
import { findDateFormatProblem } from './date-format.ts'

/** One `{{…}}` of a template: alternative paths, a default and a cast. */
export interface Placeholder {
  /** Source text between the braces, for messages. */
  readonly source: string
  /** Tried from left to right (`{{a|b}}`); the first one with a value wins. At least one. */
  readonly paths: readonly PlaceholderPath[]
  /** The text after `?:`, possibly empty; absent when the placeholder has no default. */
  readonly defaultText: string | undefined
  readonly cast: Cast | undefined
  /** How the cast `date` writes a date; absent: `YYYY-MM-DD`. */
  readonly dateFormat?: string | undefined
}

/** A dot path of a placeholder, parsed once so that a lookup allocates nothing. */
export interface PlaceholderPath {
  readonly text: string
  /** Absent for a bare name. */
  readonly root: PlaceholderRoot | undefined
  /** The steps below the root; all of them for a bare name. */
  readonly steps: DotPath
}

/** Type to which the value is cast when its placeholder is the whole text, or the text that it becomes anywhere. */
export type Cast = (typeof CASTS)[number]

const CASTS = ['int', 'num', 'bool', 'str', 'json', 'epoch', 'epoch_ms', 'date', 'path'] as const
/** Casts whose result is the same inside of a longer text. */
const TEXT_CASTS: ReadonlySet<Cast | undefined> = new Set(['str', 'epoch', 'epoch_ms', 'date', 'path'])

/** Literal text, or a placeholder. */
export type TemplatePart = string | Placeholder

/** Result of the lexer: the parts in order, or why the text is not a template. */
export type LexedTemplate =
  | { readonly kind: 'parts'; readonly parts: readonly TemplatePart[] }
  | { readonly kind: 'problem'; readonly description: string }

/** Most alternatives `{{a|b|…}}` of one placeholder. */
const ALTERNATIVES_MAX = 8

/** Most placeholders of one text. */
const PLACEHOLDERS_MAX = 500

const STEP = '[^\\s{}|?:[\\].,"\'`]+'
/** `["any name"]`, without the delimiters of the grammar. */
const QUOTED = '\\[(?:"[^"\\\\{}|?]+"|\'[^\'\\\\{}|?]+\')\\]'
const PATH = new RegExp(`^(?:${STEP}|${QUOTED})(?:\\.${STEP}|\\[\\d{1,6}\\]|${QUOTED})*$`)
/** The colon of `?:` begins a default, which may be the word `date`. */
const CAST_SUFFIX = new RegExp(`(?<!\\?):\\s*(?:(${CASTS.join('|')})|date\\(([^(){}]*)\\))\\s*$`)

/**
 * Splits a text into literals and placeholders: the only lexer of `{{…}}` in the product.
 *
 * Grammar of a placeholder: `path ('|' path)* ('?:' default text)? (':' cast)?`, blanks around its pieces ignored.
 * `\{{` is a literal `{{`. A cast to another type than text is legal only when the placeholder is the whole text.
 */
export function lexTemplate(text: string): LexedTemplate {
  const parts: TemplatePart[] = []
  let literal = ''
  let position = 0
  let count = 0
  for (;;) {
    const open = text.indexOf('{{', position)
    if (open === -1) break
    if (text[open - 1] === '\\' && open > position) {
      literal += `${text.slice(position, open - 1)}{{`
      position = open + 2
      continue
    }
    const close = text.indexOf('}}', open + 2)
    if (close === -1) return { kind: 'problem', description: 'opens {{ without closing it' }
    count += 1
    if (count > PLACEHOLDERS_MAX)
      return { kind: 'problem', description: `holds more than ${PLACEHOLDERS_MAX} placeholders` }
    const placeholder = parsePlaceholder(text.slice(open + 2, close))
    if (typeof placeholder === 'string') return { kind: 'problem', description: placeholder }
    literal += text.slice(position, open)
    if (literal !== '') parts.push(literal)
    parts.push(placeholder)
    literal = ''
    position = close + 2
  }
  literal += text.slice(position)
  if (literal !== '') parts.push(literal)
  return castProblem(parts) ?? { kind: 'parts', parts }
}

/** The placeholder, or a description of its problem. */
function parsePlaceholder(inner: string): Placeholder | string {
  const source = inner.trim()
  const cast = CAST_SUFFIX.exec(source)
  const dateFormat = cast?.[2]?.trim()
  const problem = dateFormat === undefined ? undefined : findDateFormatProblem(dateFormat)
  if (problem !== undefined) return `{{${source}}} ${problem}`
  const uncast = cast ? source.slice(0, cast.index) : source
  const defaultAt = uncast.indexOf('?:')
  const chain = (defaultAt === -1 ? uncast : uncast.slice(0, defaultAt)).split('|').map((path) => path.trim())
  if (chain.length > ALTERNATIVES_MAX) return `{{${source}}} has more than ${ALTERNATIVES_MAX} alternatives`
  for (const path of chain) if (!PATH.test(path) || 'problem' in tryParseDotPath(path)) return pathProblem(source, path)
  return {
    source,
    paths: chain.map(placeholderPath),
    defaultText: defaultAt === -1 ? undefined : uncast.slice(defaultAt + 2),
    cast: cast === null ? undefined : ((cast[1] ?? 'date') as Cast),
    ...(dateFormat === undefined ? {} : { dateFormat }),
  }
}

/**
 * Another name of the root `credentials`: `{{api_key.subdomain}}` is a field that was collected when the account was connected.
 * Alone, `{{api_key}}` is the field of that name.
 */
const COLLECTED_ROOT = 'api_key'

/** Parses a path that is known to be well formed. */
function placeholderPath(text: string): PlaceholderPath {
  const steps = parseDotPath(text)
  const first = String(steps[0])
  if (first === COLLECTED_ROOT && steps.length > 1) return { text, root: 'credentials', steps: steps.slice(1) }
  return isPlaceholderRoot(first) ? { text, root: first, steps: steps.slice(1) } : { text, root: undefined, steps }
}

function pathProblem(source: string, path: string): string {
  if (path === '') return `{{${source}}} names nothing`
  if (path.includes(':')) {
    const near = suggest(path.slice(path.lastIndexOf(':') + 1).trim(), CASTS)
    return `{{${source}}} has an unknown cast${near || ':'} use :int, :num, :bool, :str, :json, :path, :epoch, :epoch_ms or :date(YYYY-MM-DD)`
  }
  return `{{${source}}} is not a path such as context.name, args.items[0], body["a.b"] or api_key`
}

function castProblem(parts: readonly TemplatePart[]): LexedTemplate | undefined {
  if (parts.length < 2) return undefined
  const cast = parts.find((part) => typeof part !== 'string' && !TEXT_CASTS.has(part.cast ?? 'str'))
  if (cast === undefined || typeof cast === 'string') return undefined
  return {
    kind: 'problem',
    description: `{{${cast.source}}} has a cast, which needs the placeholder to be the whole text`,
  }
}

/**
 * The roots a placeholder may start with. Any other first step is *bare*: a collected credential field or a key of the
 * account's context.
 */
const PLACEHOLDER_ROOTS = [
  'context',
  'credentials',
  'oauth',
  'environment_variables',
  'env',
  'pagination',
  'args',
  'id',
  'query',
  'body',
  'resources',
  'previous_run_date',
  'connection',
  'subscription',
  'random',
  '$previous',
  '$steps',
] as const

export type PlaceholderRoot = (typeof PLACEHOLDER_ROOTS)[number]

const ROOT_NAMES: ReadonlySet<string> = new Set(PLACEHOLDER_ROOTS)

/** True for a named root. */
export function isPlaceholderRoot(name: string): name is PlaceholderRoot {
  return ROOT_NAMES.has(name)
}

/** Variables of the placeholders of one call. A named root never falls back to a bare key of the same name. */
export interface TemplateScope {
  readonly account: AccountValues
  readonly call: CallValues
  /** Values of `{{pagination.<name>}}`; absent outside listings. */
  readonly pagination?: JsonObject | undefined
}

/** Variables of an account. */
export interface AccountValues {
  readonly context: JsonObject
  /** Collected fields by name; OAuth tokens under `oauth.token`; what webhooks brought under `webhook`. */
  readonly credentials: JsonObject
  readonly environmentVariables: JsonObject
  /** `webhook_url`, `redirect_uri` of this connection, where they are known. */
  readonly connection?: JsonObject | undefined
  /** The account's subscription at the third party: `id`, `event`, `events`, `attempt_id`; its secret is a credential. */
  readonly subscription?: JsonObject | undefined
}

/** Variables of one call. */
interface CallValues {
  readonly id?: Json | undefined
  readonly query?: JsonObject | undefined
  readonly body?: Json | undefined
  readonly args?: JsonObject | undefined
  /** A random text, in the address of a consent page. */
  readonly random?: string | undefined
  /** Parent records by resource path: `{repositories: {…}}`, `{crm: {contacts: {…}}}`. */
  readonly resources?: JsonObject | undefined
  /** RFC 3339; absent on a first or full run. */
  readonly previousRunDate?: string | undefined
  /** Inside an action: results of its steps so far. */
  readonly action?: ActionValues | undefined
}

/** Results of the steps of an action, by the names that placeholders and expressions share. */
export interface ActionValues {
  /** Result of the previous step; absent in the first. */
  readonly previous?: Json | undefined
  /** Results of the steps that have run, by name. */
  readonly steps: JsonObject
}

/**
 * The value at a placeholder's path, `undefined` when there is none.
 *
 * Bare names, `credentials.<name>` and `api_key.<name>` are looked up in the credentials first and then in the context, where collected fields
 * that are not secret are stored. `connection.webhook.<key>` is secret, so it is kept with the credentials.
 */
export function resolvePath(scope: TemplateScope, path: PlaceholderPath): Json | undefined {
  const { account, call } = scope
  const steps = path.steps
  switch (path.root) {
    case undefined:
    case 'credentials':
      return getAtPath(account.credentials, steps) ?? getAtPath(account.context, steps)
    case 'context':
      return getAtPath(account.context, steps)
    case 'oauth':
      return getAtPath(account.credentials.oauth, steps)
    case 'environment_variables':
    case 'env':
      return getAtPath(account.environmentVariables, steps)
    case 'connection':
      return getAtPath(steps[0] === 'webhook' ? account.credentials : account.connection, steps)
    case 'subscription':
      return getAtPath(steps[0] === 'secret' ? account.credentials.subscription : account.subscription, steps)
    case 'pagination':
      return getAtPath(scope.pagination, steps)
    case 'random':
      return getAtPath(call.random, steps)
    case 'args':
      return getAtPath(call.args, steps)
    case 'query':
      return getAtPath(call.query, steps)
    case 'resources':
      return getAtPath(call.resources, steps)
    case 'id':
      return getAtPath(call.id, steps)
    case 'body':
      return getAtPath(call.body, steps)
    case 'previous_run_date':
      return getAtPath(call.previousRunDate, steps)
    case '$previous':
      return getAtPath(call.action?.previous, steps)
    case '$steps':
      return getAtPath(call.action?.steps, steps)
    default:
      return assertNever(path.root)
  }
}

/**
 * The `resources` root for a child of `parent`: `crm/contacts` and a record become `{crm: {contacts: record}}`, so that
 * `{{resources.crm.contacts.id}}` finds it. Several parents (a grandchild) merge by their paths through `below`.
 */
export function parentResources(parent: string, record: Json, below: JsonObject = {}): JsonObject {
  const [head = '', ...tail] = parent.split('/')
  if (tail.length === 0) return { ...below, [head]: record }
  const inner = below[head]
  return { ...below, [head]: parentResources(tail.join('/'), record, isJsonObject(inner) ? inner : {}) }
}
