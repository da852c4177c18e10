import { Failure } from '../../foundation/base/index.ts'
import { isJsonObject, type Json, type JsonObject, overlay, parseDotPath } from '../../foundation/json/index.ts'
import type { Redactor } from '../../foundation/redaction/index.ts'
import type { MethodPlan } from '../definitions/plan.ts'
import type { TemplateScope } from '../expressions/placeholder.ts'
import { renderJson, renderValue } from '../expressions/template.ts'
import { renderUrl } from '../expressions/url-template.ts'
import type { AuthorizationContext, AuthorizationEffect } from '../formats/authorization/authorization.ts'
import { assertAllowedLink } from '../formats/pagination/allowed-link.ts'
import type { PageParam, PageParams } from '../formats/pagination/paginator.ts'
import { appendQuery, setQuery, writeQuery } from '../formats/query-string.ts'
import { authorizationSecrets } from './redaction.ts'
import type { ProxyRequest } from './request.ts'
import type { ResolvedTarget } from './resolve-target.ts'

/** A request without its credential. */
export interface BuiltRequest {
  readonly method: string
  readonly url: string
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array | undefined
}

/** Characters of a header value: visible, blank, tab, Latin-1; no line breaks (header injection). */
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/**
 * Builds URL, query, headers and body of one request. Precedence, later wins: integration, method (both in the plan), caller,
 * paging. Entries whose placeholder has no value are left out.
 *
 * @param page parameters of the page; a next link replaces URL and query
 * @throws Failure PLACEHOLDER_UNRESOLVED; PAGINATION_ORIGIN for a next link to a foreign origin or path; DEFINITION_INVALID
 */
export function buildRequest(
  { method, path }: ResolvedTarget,
  request: ProxyRequest,
  scope: TemplateScope,
  page: PageParams | undefined,
  nonce: () => string,
): BuiltRequest {
  const params = page?.params ?? []
  const body = encodeBody(method, mergeBody(method, request.body, scope, params), nonce)
  return {
    method: method.verb,
    url: pageUrl(method, path, request, scope, page),
    headers: mergeHeaders(method, request, scope, params, body?.contentType),
    body: body?.content,
  }
}

function pageUrl(
  method: MethodPlan,
  path: string,
  request: ProxyRequest,
  scope: TemplateScope,
  page: PageParams | undefined,
): string {
  if (method.url === undefined)
    throw new Failure(
      'DEFINITION_INVALID',
      'the definition has no base_url: set it in the definition or in the override',
    )
  const url = `${renderUrl(method.url, scope)}${path}`
  if (page?.url === undefined)
    return appendQuery(url, writeQuery(mergeQuery(method, request, scope, page?.params ?? []), method.queryArrayFormat))
  const { allowedOrigins = [], allowedPaths = [] } = method.pagination?.rules ?? {}
  const origins = allowedOrigins.map((origin) => String(renderValue(origin, scope) ?? ''))
  assertAllowedLink(page.url, url, { origins, paths: allowedPaths })
  return page.url
}

function mergeQuery(
  method: MethodPlan,
  request: ProxyRequest,
  scope: TemplateScope,
  params: readonly PageParam[],
): JsonObject {
  const merged: Record<string, Json> = {}
  for (const { name, value } of method.query) {
    const rendered = renderJson(value, scope)
    if (rendered !== undefined) merged[name] = rendered
  }
  const passed = method.consumed.isQueryConsumed ? {} : (request.query ?? {})
  for (const [name, value] of Object.entries(passed)) if (!method.consumed.query.has(name)) merged[name] = value
  for (const { location, key, value } of params) if (location === 'query') merged[key] = value
  return merged
}

function mergeHeaders(
  method: MethodPlan,
  request: ProxyRequest,
  scope: TemplateScope,
  params: readonly PageParam[],
  contentType: string | undefined,
): Record<string, string> {
  const merged: Record<string, string> = contentType === undefined ? {} : { 'content-type': contentType }
  for (const { name, value } of method.headers) {
    const rendered = renderValue(value, scope)
    if (rendered !== undefined && rendered !== null) merged[name] = headerValue(name, rendered)
  }
  for (const [name, value] of Object.entries(request.headers ?? {}))
    merged[name.toLowerCase()] = headerValue(name, value)
  for (const { location, key, value } of params)
    if (location === 'header') merged[key.toLowerCase()] = headerValue(key, value)
  return merged
}

function headerValue(name: string, value: Json): string {
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
  if (!HEADER_VALUE.test(text))
    throw new Failure(
      'PLACEHOLDER_UNRESOLVED',
      `the value of the header ${name} holds characters that no header can carry, such as line breaks`,
    )
  return text
}

/** The body of the definition, merged with that of the caller and paging; `undefined` without any. */
function mergeBody(
  method: MethodPlan,
  given: Json | undefined,
  scope: TemplateScope,
  params: readonly PageParam[],
): Json | undefined {
  const defined = method.body === undefined ? undefined : renderJson(method.body, scope)
  const passed = method.consumed.isBodyConsumed ? undefined : unplacedBody(method, given)
  const merged = isJsonObject(defined) && isJsonObject(passed) ? overlay(defined, passed) : (passed ?? defined)
  return params.reduce<Json | undefined>(
    (body, { location, key, value }) => (location === 'body' ? withValueAt(body, parseDotPath(key), value) : body),
    merged,
  )
}

function unplacedBody(method: MethodPlan, given: Json | undefined): Json | undefined {
  if (!isJsonObject(given) || method.consumed.body.size === 0) return given
  const kept = Object.entries(given).filter(([name]) => !method.consumed.body.has(name))
  return kept.length === 0 && method.body !== undefined ? undefined : Object.fromEntries(kept)
}

/** A copy of the body with a value at a path; missing objects are created, lists stay lists. */
function withValueAt(body: Json | undefined, path: readonly (string | number)[], value: Json): Json {
  const [step, ...rest] = path
  if (step === undefined) return value
  if (Array.isArray(body) && Number(step) < body.length)
    return body.with(Number(step), withValueAt(body[Number(step)], rest, value))
  const object = isJsonObject(body) ? body : {}
  return { ...object, [step]: withValueAt(object[step], rest, value) }
}

function encodeBody(method: MethodPlan, body: Json | undefined, nonce: () => string) {
  return body === undefined ? undefined : method.bodyFormat.encode(body, { nonce })
}

/** A request with authorization. `publicUrl` is the URL without authorization parameters, for logs and loop detection. */
export interface AuthorizedRequest extends BuiltRequest {
  readonly publicUrl: string
}

/**
 * Adds the authorization, last of all, so that signatures cover the request as it is sent.
 *
 * @param redaction learns the added secrets
 * @throws Failure PLACEHOLDER_UNRESOLVED when a part of the credential is missing; EXPRESSION_FAILED
 */
export async function authorizeRequest(
  method: MethodPlan,
  built: BuiltRequest,
  scope: TemplateScope,
  context: AuthorizationContext,
  redaction: Redactor,
): Promise<AuthorizedRequest> {
  const effect = await method.authorize(built, scope, context)
  redaction.setSecrets('authorization', () => authorizationSecrets(effect))
  return applyAuthorization(built, effect)
}

/** The request with the headers and query parameters of the authorization. */
export function applyAuthorization(built: BuiltRequest, { headers, query }: AuthorizationEffect): AuthorizedRequest {
  return {
    ...built,
    publicUrl: built.url,
    url: setQuery(built.url, query),
    headers: { ...built.headers, ...headers },
  }
}
