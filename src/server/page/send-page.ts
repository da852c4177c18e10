import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Failure, FailureReason } from '../../foundation/base/index.ts'
import { type Json, stringifyJson } from '../../foundation/json/index.ts'
import { type Exchange, sendResponse } from '../api/exchange.ts'
import { restStatus } from '../api/pipeline/errors.ts'
import { html } from './html.ts'
import { COMMON_HEADERS, type PagePolicy, pageHeaders } from './page-headers.ts'
import { acceptedLanguages, type TextKey, type Texts, textAbout, textsFor } from './texts.ts'
import { requestErrorPage } from './views/end.ts'
import { type PageContent, type PageFrame, renderPage } from './views/layout.ts'

/** The style of all pages. */
export const PAGE_CSS = readFileSync(new URL('assets/page.css', import.meta.url))
/** The script of all pages. */
export const PAGE_SCRIPT = readFileSync(new URL('assets/page.js', import.meta.url))

/** Changes with style and script, so that caches may keep both. */
const ASSET_VERSION = createHash('sha256').update(PAGE_CSS).update(PAGE_SCRIPT).digest('hex').slice(0, 12)

/**
 * Where a page names another one of this service. Views write such paths as routes have them. Values are escaped, so that no text of
 * others has the quotes that stand before them.
 */
const OWN_ADDRESS = /(\b(?:href|src|action|data-\w+)="|;url=)(?=\/connect)/g

/** A path of this service as browsers reach it, below the path of the public address. */
export function publicPath({ server }: Pick<Exchange, 'server'>, path: string): string {
  return server.basePath + path
}

/** Sends a page. */
export function sendPage(
  exchange: Exchange,
  status: number,
  frame: PageFrame,
  content: PageContent,
  policy: PagePolicy = {},
): void {
  setHeaders(exchange, pageHeaders(policy))
  const base = html`${exchange.server.basePath}`.markup
  const page = renderPage(frame, content).replace(OWN_ADDRESS, (start) => start + base)
  sendResponse(exchange, status, 'text/html; charset=utf-8', page)
}

/** Sends the browser to another page by GET, also after a POST. @param to a path of this service, or a web address elsewhere */
export function sendRedirect(exchange: Exchange, to: string): void {
  const location = to.startsWith('/') ? publicPath(exchange, to) : to
  setHeaders(exchange, { ...COMMON_HEADERS, location })
  sendResponse(exchange, 303, 'text/plain; charset=utf-8', '')
}

/** Answers the script. */
export async function sendJson(exchange: Exchange, status: number, value: Json): Promise<void> {
  setHeaders(exchange, COMMON_HEADERS)
  const body = stringifyJson(value)
  sendResponse(exchange, status, 'application/json', typeof body === 'string' ? body : await body)
}

/** Sends a page about a request that cannot be served. */
export function sendRequestError(exchange: Exchange, status: number, problem: RequestProblem): void {
  const frame = neutralFrame(exchange)
  const { texts } = frame
  const textOf = (key: TextKey) => textAbout(texts, key, undefined, { seconds: retrySeconds(exchange) })
  sendPage(
    exchange,
    status,
    frame,
    requestErrorPage(frame, {
      title: textOf(`${problem}.title`),
      advice: textOf(`${problem}.advice`),
      reference: status >= 500 ? exchange.context.requestId : undefined,
    }),
  )
}

/** Why a request cannot be served: the prefix of its texts. */
export type RequestProblem = TextKey extends infer Key
  ? Key extends `${infer Problem}.title`
    ? Problem extends `request.${string}` | `error.${string}` | 'hop.expired'
      ? Problem
      : never
    : never
  : never

/** How errors of these routes are sent: as a page that says what to do, never as JSON. */
export const pageErrors = {
  sendError(exchange: Exchange, failure: Failure): void {
    sendRequestError(exchange, restStatus(failure), PROBLEMS[failure.reason] ?? problemOf(restStatus(failure)))
  },
}

const PROBLEMS: Readonly<Partial<Record<FailureReason, RequestProblem>>> = {
  RATE_LIMITED: 'request.rate_limited',
  REQUEST_TOO_LARGE: 'request.too_large',
  ROUTE_NOT_FOUND: 'request.not_found',
  RESOURCE_NOT_FOUND: 'request.not_found',
}

function problemOf(status: number): RequestProblem {
  return status >= 500 ? 'request.unavailable' : 'request.invalid'
}

/** A page that belongs to no session: no names, in the browser's language. */
export function neutralFrame(exchange: Exchange, texts: Texts = browserTexts(exchange)): PageFrame {
  return {
    texts,
    brand: undefined,
    accentColor: undefined,
    integration: undefined,
    assetVersion: ASSET_VERSION,
    isFramed: false,
    theme: '',
  }
}

function browserTexts({ context }: Exchange): Texts {
  return textsFor(acceptedLanguages(context.header('accept-language')))
}

function retrySeconds({ context }: Exchange): string {
  return context.responseHeaders['retry-after'] ?? '10'
}

function setHeaders({ context }: Exchange, headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) context.setHeader(name, value)
}
