import { createHash } from 'node:crypto'
import { Failure, LazyMap } from '../../foundation/base/index.ts'
import {
  canonicalJson,
  type DotPath,
  isJsonObject,
  type Json,
  type JsonObject,
  parseDotPath,
} from '../../foundation/json/index.ts'
import { findFilteredList } from '../expressions/list-filter.ts'
import { compileJson, compileTemplate, listPlaceholderPaths } from '../expressions/template.ts'
import { compileUrl } from '../expressions/url-template.ts'
import { NO_AUTHORIZATION } from '../formats/authorization/authorization.ts'
import { compileAuthorization, sendsSecret } from '../formats/authorization/registry.ts'
import { bodyFormat } from '../formats/body/registry.ts'
import type { CredentialChoice, Identity } from '../formats/credential/credential.ts'
import { compileCredential, listCredentials } from '../formats/credential/registry.ts'
import type { FormatChoice } from '../formats/format.ts'
import type { Pagination } from '../formats/pagination/paginator.ts'
import { compilePagination } from '../formats/pagination/registry.ts'
import type { RequestDefinition } from '../formats/request-keys.ts'
import { responseFormat } from '../formats/response/registry.ts'
import { ACTION_RESOURCE, compileAction, FORM_ACTION } from './actions.ts'
import { findOpenHostNames } from './address-data-flow.ts'
import { compileWebhook } from './compile-webhook.ts'
import { type IntegrationConfig, resolvedSchema } from './config-schema.ts'
import { secretTexts } from './config-values.ts'
import { isReadingMethod } from './method-kinds.ts'
import { type BudgetDefinition, type MethodDefinition, RESPONSE_BYTES_DEFAULT, retrySchema } from './method-schema.ts'
import { listNamesInHeaders } from './placeholder-names.ts'
import type {
  BudgetRule,
  ConnectPlan,
  ConsumedParams,
  MethodPlan,
  NamedTemplate,
  Plan,
  RateLimitRules,
  ResponsePath,
  RetryRules,
  SubscriptionPlan,
  WebhookPlan,
} from './plan.ts'
import { settingsAsDoubles } from './schema-walk.ts'
import { listTokenFieldsSent } from './value-reads.ts'
import { compileSubscription } from './webhook-subscription.ts'

/** An upstream that hangs delays the other runs of its account for so long, five times with pauses between. */
const TIMEOUT_SECONDS_DEFAULT = 20

/** HTTP methods that read, for paths that the definition does not describe. */
const READING_VERBS: readonly string[] = ['GET', 'HEAD', 'OPTIONS']

/** Default User-Agent; some APIs reject requests without one. */
const USER_AGENT = 'Patchbay'

/**
 * Compiles a resolved config.
 *
 * @throws Failure DEFINITION_INVALID when the config does not match its schema, for example because an override was stored
 * before its definition changed
 */
export function compilePlan(written: JsonObject): Plan {
  const config = settingsAsDoubles(resolvedSchema, written) as JsonObject
  const parsed = parseConfig(config)
  const resources = Object.entries(parsed.resources ?? {}).map(([resource, methods]) => {
    const plans = new LazyMap(methods, (name, method) => compileMethod(parsed, resource, name, method))
    return [resource, plans] as const
  })
  let secrets: readonly string[] | undefined
  let tokenFieldsSent: ReadonlySet<string> | undefined
  let openHostNames: ReadonlySet<string> | undefined
  let webhook: WebhookPlan | undefined
  let subscription: SubscriptionPlan | undefined
  return {
    resources: new Map(resources),
    sendsSecret: parsed.authorization != null && sendsSecret(parsed.authorization),
    passthrough: compileRequest(parsed, '', '', { method: 'GET', path: '' }),
    // From the config as written: parsing sorts the keys of the map.
    credentials: listCredentials(config.credentials).map((choice) => compileConnect(parsed, choice)),
    actions: new LazyMap(parsed.actions ?? {}, (name, action) =>
      compileAction(name, action, (request) => compileStepRequest(parsed, name, request)),
    ),
    get webhook() {
      if (parsed.webhook !== undefined) webhook ??= compileWebhook(parsed.webhook)
      return webhook
    },
    get webhookSubscription() {
      const definition = parsed.webhook?.subscription
      if (definition !== undefined)
        subscription ??= compileSubscription(definition, (request) => compileStepRequest(parsed, 'webhook', request))
      return subscription
    },
    get tokenFieldsSent() {
      const names = tokenFieldsSent ?? listTokenFieldsSent(config)
      tokenFieldsSent = names
      return names
    },
    get openHostNames() {
      openHostNames ??= findOpenHostNames(config)
      return openHostNames
    },
    get formFields() {
      const steps = this.actions.get(FORM_ACTION)?.steps ?? []
      return steps.flatMap((step) => (step.type === 'form' ? step.fields : []))
    },
    get choicesBeforeActive() {
      const steps = this.actions.get(FORM_ACTION)?.steps ?? []
      const before = steps.flatMap((step) => (step.type === 'form' && step.isBeforeActive ? step.fields : []))
      return before.filter(({ required }) => required)
    },
    get secrets() {
      secrets ??= secretTexts(config)
      return secrets
    },
  }
}

/** True when a call with this HTTP method, to a path that no method describes, may change something upstream. */
export function isWritingVerb(verb: string): boolean {
  return !READING_VERBS.includes(verb.toUpperCase())
}

function parseConfig(config: JsonObject): IntegrationConfig {
  const parsed = resolvedSchema.safeParse(config)
  if (parsed.success) return parsed.data
  const { path, message } = parsed.error.issues[0] ?? { path: [], message: '' }
  throw new Failure('DEFINITION_INVALID', `the definition is not valid at ${path.join('.')}: ${message}`)
}

function compileConnect(config: IntegrationConfig, choice: CredentialChoice): ConnectPlan {
  const { verification, token, authorization, identity, ...plan } = compileCredential(choice)
  const compileToken = (request: RequestDefinition) => compileTokenRequest(config, request)
  return {
    ...plan,
    key: choice.key,
    label: choice.label,
    verification: verification === undefined ? undefined : compileRequest(config, '', 'verification', verification),
    token: token?.(compileToken),
    ...(authorization === undefined ? {} : { authorization: authorization(compileToken, config.base_url) }),
    ...(identity === undefined ? {} : { identity: compileIdentity(config, identity) }),
    sentInHeaders: listNamesInHeaders(config as JsonObject),
  }
}

function compileIdentity(config: IntegrationConfig, identity: Identity<RequestDefinition>): Identity<MethodPlan> {
  if (identity.kind === 'context') return identity
  const { request } = identity
  return { ...identity, request: request === undefined ? undefined : compileRequest(config, '', 'identity', request) }
}

/** Without headers and parameters of the integration: they may hold the token that this request is for. */
function compileTokenRequest(
  { base_url, error_expression }: IntegrationConfig,
  request: RequestDefinition,
): MethodPlan {
  const plan = compileRequest(base_url === undefined ? {} : { base_url }, '', 'token', request)
  return { ...plan, errorExpression: error_expression ?? undefined }
}

function compileMethod(
  config: IntegrationConfig,
  resource: string,
  name: string,
  method: MethodDefinition,
): MethodPlan {
  const isList = name === 'list' || (method.pagination ?? undefined) !== undefined
  const choice = method.pagination === undefined ? config.pagination : method.pagination
  const errorExpression = method.error_expression === undefined ? config.error_expression : method.error_expression
  return {
    ...compileRequest(config, resource, name, method),
    isList,
    // What does not read by its name counts as writing, whatever its HTTP method.
    isWrite: !(method.read_only ?? isReadingMethod(name)),
    pagination: isList ? paginationOf(choice ?? undefined) : undefined,
    authorize: compileAuthorizer(method.authorization === undefined ? config.authorization : method.authorization),
    rateLimit: rateLimitOf(method.rate_limit === undefined ? config.rate_limit : method.rate_limit),
    errorExpression: errorExpression ?? undefined,
    retry: retryOf(method.retry === undefined ? config.retry : method.retry),
    timeoutMs: timeoutOf(method.timeout === undefined ? config.timeout : method.timeout),
    responseBytesMax:
      (method.max_response_bytes === undefined ? config.max_response_bytes : method.max_response_bytes) ??
      RESPONSE_BYTES_DEFAULT,
    budgets:
      method.budget === undefined
        ? compileBudgets(config.budget, { resource, method: name })
        : compileBudgets(method.budget ?? [], { resource, method: name }, `${resource}.${name}`),
    responsePath: method.response_path === undefined ? undefined : compileResponsePath(method.response_path),
    idPath: parseDotPath(method.id_path ?? 'id'),
    exampleResponse: isJsonObject(method.examples) ? method.examples.response : undefined,
    parentPaths: findParentPaths(config, method),
  }
}

/** A request of an action is never paged, and parameters of the caller are sent only where its templates read them. */
function compileStepRequest(config: IntegrationConfig, action: string, request: MethodDefinition): MethodPlan {
  const plan = compileMethod(config, ACTION_RESOURCE, action, request)
  const consumed = { ...plan.consumed, isQueryConsumed: true, isBodyConsumed: true }
  return { ...plan, isList: false, isWrite: isWritingVerb(plan.verb), pagination: undefined, consumed }
}

/** The request, with all other settings of the integration. */
function compileRequest(
  config: IntegrationConfig,
  resource: string,
  name: string,
  request: RequestDefinition,
): MethodPlan {
  const baseUrl = request.base_url ?? config.base_url
  const format = request.response_format === undefined ? undefined : responseFormat(request.response_format)
  const headers = mergeHeaders(
    { accept: format?.accept ?? 'application/json', 'user-agent': USER_AGENT },
    config.headers,
    request.headers,
  )
  const query = mergeEntries(config.query, request.query)
  return {
    resource,
    method: name,
    verb: request.method.toUpperCase(),
    isList: false,
    isWrite: false,
    url: baseUrl === undefined ? undefined : compileUrl(baseUrl, request.path),
    headers: compileHeaders(headers),
    query: Object.entries(query).map(([key, value]) => ({ name: key, value: compileJson(value) })),
    queryArrayFormat: request.query_array_format ?? config.query_array_format ?? 'repeat',
    body: request.body === undefined ? undefined : compileJson(request.body),
    bodyFormat: bodyFormat(request.body_format ?? 'json'),
    responseFormat: format,
    answers: {
      isEmptyAllowed: request.allow_empty_body ?? false,
      isAcceptedFinal: request.allow_accepted ?? false,
    },
    consumed: findConsumedParams([baseUrl ?? null, request.path, headers, query, request.body ?? null]),
    authorize: compileAuthorizer(config.authorization),
    pagination: undefined,
    rateLimit: rateLimitOf(config.rate_limit),
    errorExpression: config.error_expression,
    retry: retryOf(config.retry),
    timeoutMs: timeoutOf(config.timeout),
    responseBytesMax: config.max_response_bytes ?? RESPONSE_BYTES_DEFAULT,
    budgets: compileBudgets(config.budget, {}),
    concurrencyMax: config.concurrency,
    responsePath: undefined,
    idPath: ['id'],
    exampleResponse: undefined,
    parentPaths: [],
  }
}

/** Reads of parent records by templates of the method, and by those of the integration that a request uses. */
function findParentPaths(config: IntegrationConfig, method: MethodDefinition): DotPath[] {
  const shared = [config.base_url, config.headers, config.query, config.authorization, config.pagination]
  const own = [method.base_url, method.path, method.headers, method.query, method.body]
  const choices = [method.authorization, method.pagination]
  return [...shared, ...own, ...choices]
    .flatMap((template) => listPlaceholderPaths((template ?? null) as Json))
    .flatMap(({ root, steps }) => (root === 'resources' ? [steps] : []))
}

type HeaderValues = Readonly<Record<string, string | number | boolean | null>>

/** Later levels win, names are case-insensitive; `null` removes. */
function mergeHeaders(...levels: readonly (HeaderValues | undefined)[]): Record<string, string> {
  const merged: Record<string, string> = {}
  for (const level of levels) {
    for (const [name, value] of Object.entries(level ?? {})) {
      if (value === null) delete merged[name.toLowerCase()]
      else merged[name.toLowerCase()] = String(value)
    }
  }
  return merged
}

function compileHeaders(headers: Readonly<Record<string, string>>): NamedTemplate[] {
  return Object.entries(headers).map(([name, value]) => ({ name, value: compileTemplate(value) }))
}

/** Later levels win; `null` removes. */
function mergeEntries(...levels: readonly (Readonly<Record<string, Json>> | undefined)[]): Record<string, Json> {
  const merged: Record<string, Json> = {}
  for (const level of levels) {
    for (const [name, value] of Object.entries(level ?? {})) {
      if (value === null) delete merged[name]
      else merged[name] = value
    }
  }
  return merged
}

function findConsumedParams(templates: readonly Json[]): ConsumedParams {
  const paths = listPlaceholderPaths(templates)
  const first = (root: string) =>
    paths.filter((path) => path.root === root && path.steps.length > 0).map(({ steps }) => String(steps[0]))
  const hasWhole = (root: string) => paths.some((path) => path.root === root && path.steps.length === 0)
  return {
    query: new Set(first('query')),
    body: new Set(first('body')),
    isQueryConsumed: hasWhole('query'),
    isBodyConsumed: hasWhole('body'),
  }
}

function compileAuthorizer(choice: FormatChoice | null | undefined): MethodPlan['authorize'] {
  return choice === null || choice === undefined ? () => NO_AUTHORIZATION : compileAuthorization(choice)
}

function paginationOf(choice: FormatChoice | undefined): Pagination | undefined {
  return choice === undefined ? undefined : compilePagination(choice)
}

function rateLimitOf(rules: MethodDefinition['rate_limit']): RateLimitRules {
  return {
    isRateLimited: rules?.is_rate_limited,
    retryAfter: rules?.retry_after_header_expression,
    rateLimit: rules?.rate_limit_header_expression,
  }
}

function retryOf(rules: MethodDefinition['retry']): RetryRules {
  const { max_attempts, max_elapsed, base, factor, max, retry_unsafe } = retrySchema.parse(rules ?? {})
  return {
    attemptsMax: max_attempts,
    elapsedMaxMs: max_elapsed * 1000,
    baseMs: base * 1000,
    factor,
    waitMaxMs: max * 1000,
    isUnsafeAllowed: retry_unsafe,
  }
}

function timeoutOf(seconds: number | null | undefined): number {
  return (seconds ?? TIMEOUT_SECONDS_DEFAULT) * 1000
}

function compileResponsePath(text: string): ResponsePath {
  if (!text.startsWith('$')) return { kind: 'path', steps: parseDotPath(text) }
  const list = findFilteredList(text)
  return { kind: 'expression', text, source: list.kind === 'filtered' ? list.source : undefined }
}

const WINDOW_SECONDS = { second: 1, minute: 60, hour: 3_600, day: 86_400 } as const
const KEY_LENGTH = 16

/**
 * The limits that apply to a call.
 *
 * @param called resource and method; empty for a path that no method describes, to which only rules without `match` apply
 * @param owner the method, for rules of its own; absent: the counter is shared by all methods that match
 */
function compileBudgets(
  definitions: BudgetDefinition | undefined,
  called: { readonly resource?: string; readonly method?: string },
  owner = '',
): BudgetRule[] {
  const counted = (definitions ?? []).filter(
    ({ match }) =>
      (match?.resource ?? called.resource) === called.resource && (match?.method ?? called.method) === called.method,
  )
  return counted.map((definition) => {
    const { limit, per, scope } = definition
    const seconds = typeof per === 'number' ? per : WINDOW_SECONDS[per]
    return { key: budgetKey(owner, definition), limit, windowMs: seconds * 1_000, scope }
  })
}

function budgetKey(owner: string, definition: BudgetDefinition[number]): string {
  return createHash('sha256')
    .update(`${owner}|${canonicalJson(JSON.parse(JSON.stringify(definition)))}`)
    .digest('base64url')
    .slice(0, KEY_LENGTH)
}
