import { ACTION_RESOURCE, type FormFieldPlan, type OptionsSource } from '../../engine/definitions/index.ts'
import { renderJson, renderObject } from '../../engine/expressions/index.ts'
import { collectFields, type FormOption } from '../../engine/formats/index.ts'
import type {
  AccountAccess,
  ApiProxy,
  ProxyRequest,
  RateLimitedOutcome,
  UpstreamErrorOutcome,
} from '../../engine/proxy/index.ts'
import {
  type Clock,
  Failure,
  invalidFields,
  readThrough,
  suggest,
  TtlCache,
  type Violation,
} from '../../foundation/base/index.ts'
import { canonicalJson, type Json, type JsonObject } from '../../foundation/json/index.ts'
import type { AccountDependencies } from '../accounts/dependencies.ts'
import { listDueFields } from '../accounts/due-fields.ts'
import { loadAccountForCall, loadAccountForDryRun } from '../accounts/load-account.ts'
import type { ResolvedAccount } from '../accounts/resolved-account.ts'
import type { FormOptionsCache, LinkDependencies, SourcePage } from './dependencies.ts'
import { matchesSearch, optionsFrom } from './form-option.ts'
import { type FormAccountRef, withoutLabels } from './post-connect-form.ts'

/** Most options of one answer. */
const OPTIONS_MAX = 200

/** Pages of the third party that one answer may read to find an option. */
const UPSTREAM_PAGES_MAX = 10

const CACHE_TTL_MS = 60_000
const CACHED_PAGES_MAX = 256
/** Larger pages are read again each time: the cache takes 64 MiB at most. */
const CACHED_LENGTH_MAX = 256 * 1024

/** For all requests of one answer. */
const TIMEOUT_MS = 25_000
const CALL_LIMITS = { timeoutMs: 15_000, attemptsMax: 2, responseBytesMax: 4 * 1024 * 1024 } as const

const SEARCH_LENGTH_MAX = 200
const CURSOR_LENGTH_MAX = 8_192

/** The cache of a process; bounded. */
export function createFormOptionsCache(clock: Pick<Clock, 'monotonicMs'>): FormOptionsCache {
  return new TtlCache({ max: CACHED_PAGES_MAX, ttlMs: CACHE_TTL_MS, clock })
}

/** Dependencies of reading options. */
export type FormOptionsDependencies = Pick<LinkDependencies, 'proxy' | 'formOptions'> & {
  readonly accounts: Pick<
    AccountDependencies,
    'database' | 'reader' | 'secrets' | 'definitions' | 'tokens' | 'evaluator' | 'contextValues'
  >
}

/** Which options to read. */
export interface FormOptionsRequest {
  /** Name of a field with remote options. */
  readonly field: string
  /** What the customer typed; empty: all. Where the third party does not search, the options are filtered here. */
  readonly search?: string | undefined
  /** `nextCursor` of the page before, with the same search and values. Absent: the first page. */
  readonly cursor?: string | undefined
  /** Values of the other fields so far, as they are submitted. */
  readonly values?: JsonObject | undefined
}

/** A page of options, or why there is none. */
export type FormOptionsResult =
  /** At most 200 options; `nextCursor` is absent on the last page. */
  | { readonly kind: 'page'; readonly options: readonly FormOption[]; readonly nextCursor: string | undefined }
  /** Fields that must have a value first. */
  | { readonly kind: 'disabled'; readonly missing: readonly string[] }
  /** The third party could not be asked or did not answer well. */
  | FormSourceError

/** An error of the source of options. */
interface FormSourceError {
  readonly kind: 'error'
  /** The error as an RPC reports it; secrets are redacted. */
  readonly failure: Failure
}

/**
 * Reads a page of options of a field from the third party, through the same pipeline as every call. Not in a transaction.
 *
 * @throws Failure RESOURCE_NOT_FOUND; INVALID_FIELD for an unknown field, or values that the field's dependencies cannot have;
 * PAGE_TOKEN_INVALID
 */
export async function loadFormOptions(
  deps: FormOptionsDependencies,
  { environmentId, id }: FormAccountRef,
  request: FormOptionsRequest,
): Promise<FormOptionsResult> {
  assertRequest(request)
  try {
    const resolved = await loadAccount(deps, environmentId, id)
    const fields = await listDueFields(deps.accounts, resolved)
    const field = fields.find(({ name }) => name === request.field)
    if (field?.remote === undefined) throw unknownField(request.field, fields)
    const chosen = chooseValues(fields, field, request.values ?? {})
    const missing = field.dependsOn.filter((name) => !Object.hasOwn(chosen, name))
    if (missing.length > 0) return { kind: 'disabled', missing }
    const listing = { resolved, field, source: field.remote, search: (request.search ?? '').trim(), chosen }
    return await readOptions(deps, listing, openPosition(deps.accounts, listing, request.cursor))
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    if (error.reason === 'PAGE_TOKEN_INVALID') throw pageTokenInvalid()
    if (error.reason === 'RESOURCE_NOT_FOUND' || error.reason === 'INVALID_FIELD') throw error
    return { kind: 'error', failure: error }
  }
}

/** The account, also while it waits for the choice whose options are read. */
async function loadAccount(deps: FormOptionsDependencies, environmentId: string, id: string): Promise<ResolvedAccount> {
  const { account } = (await loadAccountForDryRun(deps.accounts, environmentId, id)).resolved
  const purpose = account.status === 'connecting' ? 'activation' : 'call'
  return await loadAccountForCall(deps.accounts, environmentId, id, purpose)
}

function assertRequest({ search = '' }: FormOptionsRequest): void {
  if (search.length <= SEARCH_LENGTH_MAX && search.isWellFormed()) return
  const description = `must be text of at most ${SEARCH_LENGTH_MAX} characters`
  throw invalidFields([{ field: 'search', description, rule: 'string.max_len' }])
}

function unknownField(name: string, fields: readonly FormFieldPlan[]): Failure {
  const known = fields.flatMap((each) => (each.remote === undefined ? [] : [each.name]))
  const violation: Violation = {
    field: 'field',
    description: `${JSON.stringify(name.slice(0, 64))} is no field of the form whose options are read from the third party${suggest(name, known)}`,
    rule: 'form.unknown_field',
  }
  return invalidFields([violation])
}

/** The values of the fields that options depend on, normalised; without those that are empty. @throws Failure INVALID_FIELD */
function chooseValues(fields: readonly FormFieldPlan[], { dependsOn }: FormFieldPlan, values: JsonObject): JsonObject {
  const needed = fields
    .filter(({ name }) => dependsOn.includes(name))
    .map(({ visible_when: _, ...field }) => ({ ...field, required: false, dependsOn: [] }))
  const given = dependsOn.flatMap((name) =>
    Object.hasOwn(values, name) ? [[name, values[name] ?? null] as const] : [],
  )
  const collected = collectFields(needed, withoutLabels(needed, Object.fromEntries(given)), 'values')
  if (collected.kind === 'invalid') throw invalidFields(collected.violations)
  return collected.visible
}

interface OptionsListing {
  readonly resolved: ResolvedAccount
  readonly field: FormFieldPlan
  readonly source: OptionsSource
  readonly search: string
  /** Values that the options depend on. */
  readonly chosen: JsonObject
}

/** Where a page of options begins: a page of the third party, and how many of its options came before. */
interface OptionsPosition {
  readonly cursor: string | undefined
  readonly offset: number
}

/** Reads pages of the third party until there are options, or the list ends. */
async function readOptions(
  deps: FormOptionsDependencies,
  listing: OptionsListing,
  start: OptionsPosition,
): Promise<FormOptionsResult> {
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  let { cursor, offset } = start
  for (let pages = 1; ; pages += 1) {
    const page = await readPage(deps, listing, cursor, signal)
    const found = isFilteredHere(listing)
      ? page.options.filter((option) => matchesSearch(option, listing.search))
      : page.options
    const options = found.slice(offset, offset + OPTIONS_MAX)
    if (offset + options.length < found.length)
      return pageWith(deps.accounts, listing, options, { cursor, offset: offset + options.length })
    if (page.nextCursor === null) return { kind: 'page', options, nextCursor: undefined }
    cursor = page.nextCursor
    offset = 0
    if (options.length > 0 || pages === UPSTREAM_PAGES_MAX)
      return pageWith(deps.accounts, listing, options, { cursor, offset })
  }
}

function isFilteredHere({ source, search }: OptionsListing): boolean {
  return search !== '' && !source.isSearchable
}

/** @throws Failure of the call */
async function readPage(
  { proxy, formOptions }: FormOptionsDependencies,
  listing: OptionsListing,
  cursor: string | undefined,
  signal: AbortSignal,
): Promise<SourcePage> {
  const key = cacheKey(listing, cursor)
  const page = await readThrough(formOptions, key, () => fetchPage(proxy, listing, cursor, signal))
  if (page === undefined) throw new Error('a page of options was not read')
  if (lengthOf(page) > CACHED_LENGTH_MAX) formOptions.delete(key)
  return page
}

/** Credentials, definition and override have versions: after a change of any of them the options are read again. */
function cacheKey({ resolved: { account }, field, source, search, chosen }: OptionsListing, cursor = ''): string {
  const { environmentId, id, version, integrationVersion, installationVersion } = account
  const versions = [version, integrationVersion, installationVersion]
  return canonicalJson([environmentId, id, versions, field.name, source.isSearchable ? search : '', chosen, cursor])
}

function lengthOf({ options }: SourcePage): number {
  return options.reduce((sum, { value, label, subText = '' }) => sum + value.length + label.length + subText.length, 0)
}

async function fetchPage(
  proxy: Pick<ApiProxy, 'call'>,
  listing: OptionsListing,
  cursor: string | undefined,
  signal: AbortSignal,
): Promise<SourcePage> {
  const { resolved, source } = listing
  const access = { ...resolved.access, context: { ...resolved.access.context, ...listing.chosen } }
  const request = buildRequest(listing, access)
  const page = { limit: OPTIONS_MAX, ...(cursor === undefined ? {} : { cursor }) }
  const outcome = await proxy.call(resolved.plan, access, { ...request, page, limits: CALL_LIMITS, signal })
  if (outcome.kind !== 'ok') throw failureOf(outcome)
  return { options: optionsFrom(source, recordsOf(outcome.result)), nextCursor: outcome.page?.nextCursor ?? null }
}

/** The call of a data source. Values of other fields are keys of the context there. */
function buildRequest({ source, search }: OptionsListing, access: AccountAccess): ProxyRequest {
  const args = search === '' ? {} : { search }
  const scope = { account: access, call: { args } }
  const { resource, method } = source
  return {
    target: resource === ACTION_RESOURCE ? { kind: 'action', action: method } : { kind: 'method', resource, method },
    id: source.id === undefined ? undefined : renderJson(source.id, scope),
    query: renderObject(source.query, scope),
    body: source.body === undefined ? undefined : renderObject(source.body, scope),
    args,
  }
}

function recordsOf(result: Json): readonly Json[] {
  return Array.isArray(result) ? result : result === null ? [] : [result]
}

/** Wait for a rate limit that names none. */
const RETRY_SECONDS_DEFAULT = 5

function failureOf(outcome: RateLimitedOutcome | UpstreamErrorOutcome): Failure {
  if (outcome.kind === 'rate_limited') {
    const { limitedBy, retryAfterSeconds } = outcome
    const reason = limitedBy === 'budget' ? 'BUDGET_EXHAUSTED' : 'UPSTREAM_RATE_LIMITED'
    return new Failure(reason, `the third party asks to wait ${Math.ceil(retryAfterSeconds)} s`, { retryAfterSeconds })
  }
  const { action, message, status } = outcome
  return new Failure('UPSTREAM_ERROR', message, {
    metadata: { upstream_status: String(status) },
    ...(action === 'retry' ? { retryAfterSeconds: RETRY_SECONDS_DEFAULT } : {}),
  })
}

/** A page of options that others follow. */
function pageWith(
  { secrets: { sealer } }: Pick<FormOptionsDependencies['accounts'], 'secrets'>,
  listing: OptionsListing,
  options: readonly FormOption[],
  { cursor = '', offset }: OptionsPosition,
): FormOptionsResult {
  return { kind: 'page', options, nextCursor: sealer.seal(PURPOSE, bindingOf(listing), `${offset}.${cursor}`) }
}

const PURPOSE = 'form_options'

/** What a cursor is bound to. A browser holds it, and it decides which address is read with the account's credentials. */
function bindingOf({ resolved: { account }, field, search, chosen }: OptionsListing): JsonObject {
  return { environment: account.environmentId, account: account.id, field: field.name, search, chosen }
}

/** `<offset>.<cursor of the proxy>`; without a cursor the first page. */
const POSITION = /^(\d{1,9})\.([\x21-\x7e]*)$/

/** The position of a cursor that `pageWith` made for the same list. @throws Failure PAGE_TOKEN_INVALID */
function openPosition(
  { secrets: { sealer } }: Pick<FormOptionsDependencies['accounts'], 'secrets'>,
  listing: OptionsListing,
  text = '',
): OptionsPosition {
  if (text === '') return { cursor: undefined, offset: 0 }
  const opened = text.length > CURSOR_LENGTH_MAX ? undefined : sealer.open(PURPOSE, bindingOf(listing), text)
  const [, offset, cursor] = POSITION.exec(opened ?? '') ?? []
  if (offset === undefined) throw pageTokenInvalid()
  return { cursor: cursor === '' ? undefined : cursor, offset: Number(offset) }
}

function pageTokenInvalid(): Failure {
  const violation = { field: 'page_token', description: 'is not a token of this list', rule: 'page_token.invalid' }
  return invalidFields([violation], 'PAGE_TOKEN_INVALID')
}
