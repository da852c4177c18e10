import { assertNever, getAtPath, isJsonObject, type Json, type JsonObject } from '../base/index.ts'
import type { PlaceholderPath } from './placeholder.ts'

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
  '$previous',
  '$steps',
] as const

export type PlaceholderRoot = (typeof PLACEHOLDER_ROOTS)[number]

const ROOT_NAMES: ReadonlySet<string> = new Set(PLACEHOLDER_ROOTS)

/** Tells whether a first step is one of the named roots. */
export function isPlaceholderRoot(name: string): name is PlaceholderRoot {
  return ROOT_NAMES.has(name)
}

/** Everything the placeholders of one call can see. A named root never falls through to a bare key of the same name. */
export interface TemplateScope {
  readonly account: AccountValues
  readonly call: CallValues
  /** Values of `{{pagination.<name>}}`; absent outside listings. */
  readonly pagination?: JsonObject | undefined
}

/** What an account contributes. */
export interface AccountValues {
  readonly context: JsonObject
  /** Collected fields by name; OAuth tokens under `oauth.token`. */
  readonly credentials: JsonObject
  readonly environmentVariables: JsonObject
  /** `webhook_url`, `redirect_uri` of this connection, where they are known. */
  readonly connection?: JsonObject | undefined
}

/** What one call contributes. */
interface CallValues {
  readonly id?: Json | undefined
  readonly query?: JsonObject | undefined
  readonly body?: Json | undefined
  readonly args?: JsonObject | undefined
  /** Parent records by resource path: `{repositories: {…}}`, `{crm: {contacts: {…}}}`. */
  readonly resources?: JsonObject | undefined
  /** RFC 3339; absent on a first or full run. */
  readonly previousRunDate?: string | undefined
  /** Inside an action: what its steps came to so far. */
  readonly action?: ActionValues | undefined
}

/** Results of the steps of an action, by the names that placeholders and expressions share. */
export interface ActionValues {
  /** Of the step before; absent in the first. */
  readonly previous?: Json | undefined
  /** Of the steps that have a name and have run. */
  readonly steps: JsonObject
}

/**
 * The value at a placeholder's path, `undefined` when there is none.
 *
 * Bare names and `credentials.<name>` look at the credentials first and then at the context, because collected fields that
 * are not secret are kept in the context.
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
      return getAtPath(account.connection, steps)
    case 'pagination':
      return getAtPath(scope.pagination, steps)
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
