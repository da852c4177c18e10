import { Failure } from '../../foundation/base/index.ts'
import { isJsonObject, type Json } from '../../foundation/json/index.ts'
import {
  findHop,
  findLinkOrigins,
  handleCallback,
  openLinkSession,
  parseLinkToken,
  readLinkSummary,
  redeemHopTicket,
} from '../../platform/links/index.ts'
import type { HttpExchange } from '../api/http/routes.ts'
import { readBody } from '../api/pipeline/body.ts'
import type { ConnectPageDeps } from './dependencies.ts'
import { readForm, singleValues, tryParseJson } from './form-body.ts'
import { errorAlert, frameOfPopup } from './page-request.ts'
import { isSameOrigin } from './same-origin.ts'
import {
  neutralFrame,
  publicPath,
  type RequestProblem,
  sendJson,
  sendPage,
  sendRedirect,
  sendRequestError,
} from './send-page.ts'
import {
  cookieSeconds,
  cookieSessionIds,
  isSecure,
  pagePreferences,
  readSessionCookie,
  type SessionCookie,
  secondsUntil,
  sessionCookieHeader,
} from './session-cookie.ts'
import { repostPage, returnedPage, shellPage, startingPage } from './views/end.ts'
import { hopPage, hopQuestionPage } from './views/form.ts'

/** Longest link token that is looked at. */
const TOKEN_LENGTH_MAX = 512
/** Largest JSON that the script sends. */
const JSON_BYTES_MAX = 4 * 1024

/** `GET /connect?link_token=`: the address of a link. It is replaced at once by one without the token. */
export async function openByLink(deps: ConnectPageDeps, exchange: HttpExchange): Promise<void> {
  const token = exchange.parameter('link_token') ?? ''
  await open(deps, exchange, token, pagePreferences({}))
}

/** `POST /connect`: a form of the application's page, in a popup or instead of that page. Comes from another site by nature. */
export async function openByForm(deps: ConnectPageDeps, exchange: HttpExchange): Promise<void> {
  const form = singleValues(await readForm(exchange))
  const { mode, theme, locale } = form
  await open(deps, exchange, form.link_token ?? '', pagePreferences({ mode, theme, locale }))
}

async function open(
  deps: ConnectPageDeps,
  exchange: HttpExchange,
  token: string,
  preferences: Omit<SessionCookie, 'browserKey'>,
): Promise<void> {
  const id = sessionIdOf(token)
  const known = id === undefined ? undefined : readSessionCookie(exchange.context.header('cookie'), id, isSecure(deps))
  const result =
    id === undefined
      ? ({ kind: 'rejected', code: 'invalid_token' } as const)
      : await openLinkSession(deps.links, token, known?.browserKey)
  if (result.kind === 'opened') {
    const maxAgeSeconds = cookieSeconds(result.session)
    setSessionCookie(
      deps,
      exchange,
      { id: result.session.id, maxAgeSeconds },
      { ...preferences, browserKey: result.browserKey },
    )
    return sendRedirect(exchange, `/connect/${result.session.id}`)
  }
  // A form of another site arrives without the cookie that this browser may have: the session's page finds out whether it has one.
  if (result.code === 'used_token' && exchange.request.method === 'POST')
    return sendRedirect(exchange, `/connect/${id}`)
  sendRequestError(exchange, result.code === 'invalid_token' ? 404 : 410, `error.${result.code}`)
}

/** `GET /connect/frame/{id}`: the page in an iframe, empty until the host has sent the token. */
export async function serveFrame(deps: ConnectPageDeps, exchange: HttpExchange): Promise<void> {
  const origins = await findLinkOrigins(deps.links, frameSessionId(exchange.path))
  if (origins.length === 0) return sendRequestError(exchange, 404, 'error.invalid_token')
  const frame = { ...neutralFrame(exchange), isFramed: true }
  sendPage(exchange, 200, frame, shellPage(frame, origins), { frameOrigins: origins })
}

/** `POST /connect/open {token, session}`: the script of a frame opens its session and keeps the key in its memory. */
export async function openByScript(deps: ConnectPageDeps, exchange: HttpExchange): Promise<void> {
  if (!isSameOrigin(exchange, deps.links.publicUrl())) return await rejectScript(exchange, 403, 'request.cross_site')
  const body = await readBody(exchange, exchange.server.limits, JSON_BYTES_MAX)
  const { token, session, key } = readMembers(body)
  const id = sessionIdOf(token)
  // The frame of another session would be shown by the origins of that one.
  const isOwnFrame = id === dashedId(session) && (await findLinkOrigins(deps.links, id)).length > 0
  const result = isOwnFrame
    ? await openLinkSession(deps.links, token, key === '' ? undefined : key)
    : ({ kind: 'rejected', code: 'invalid_token' } as const)
  if (result.kind === 'rejected')
    return await rejectScript(exchange, result.code === 'invalid_token' ? 404 : 410, `error.${result.code}`)
  await sendJson(exchange, 200, { key: result.browserKey, path: publicPath(exchange, `/connect/${result.session.id}`) })
}

/** An error that the script shows in the frame, or an application reads. */
async function rejectScript(exchange: HttpExchange, status: number, problem: RequestProblem): Promise<void> {
  const { texts } = neutralFrame(exchange)
  const [title, advice] = [texts.text(`${problem}.title`), texts.text(`${problem}.advice`)]
  const code = problem.startsWith('error.') ? problem.slice('error.'.length) : 'invalid_token'
  await sendJson(exchange, status, { error: { code, message: title, advice } })
}

/**
 * `GET|POST /connect/hop`: a popup on its way to the third party. Without a ticket it waits for its opener to send it there.
 * Only a page of this service redeems a ticket: a link of another site would put its session into this browser (login CSRF),
 * so it leads to a page that asks.
 */
export async function serveHop(deps: ConnectPageDeps, exchange: HttpExchange): Promise<void> {
  const isPost = exchange.request.method === 'POST'
  if (isPost && !isSameOrigin(exchange, deps.links.publicUrl()))
    return sendRequestError(exchange, 403, 'request.cross_site')
  const ticket = isPost ? (await readForm(exchange)).get('ticket') : (exchange.parameter('ticket') ?? null)
  const neutral = neutralFrame(exchange)
  if (ticket === null) return sendPage(exchange, 200, neutral, startingPage(neutral))
  const isOwn = isPost || exchange.context.header('sec-fetch-site') === 'same-origin'
  const read = isOwn ? redeemHopTicket : findHop
  const hop = ticket.length > TOKEN_LENGTH_MAX ? undefined : await read(deps.links, ticket)
  const frame = hop && (await frameOfPopup(deps, exchange, hop))
  if (hop === undefined || frame === undefined) return sendRequestError(exchange, 410, 'hop.expired')
  // The form names its origin, and the address with the ticket is sent nowhere.
  const referrerPolicy = 'strict-origin'
  if (!isOwn) return sendPage(exchange, 200, frame, hopQuestionPage(frame, ticket), { referrerPolicy })
  const lifetime = { id: hop.id, maxAgeSeconds: secondsUntil(hop.expiresAt) }
  setSessionCookie(deps, exchange, lifetime, { ...pagePreferences({ mode: 'popup' }), browserKey: hop.browserKey })
  // A form may not lead to another site.
  if (isPost) return sendPage(exchange, 200, frame, hopPage(frame, hop.url))
  sendRedirect(exchange, hop.url)
}

/** `GET|POST /connect/callback`: the browser comes back from the third party. */
export async function serveCallback(deps: ConnectPageDeps, exchange: HttpExchange): Promise<void> {
  const isPost = exchange.request.method === 'POST'
  const params = singleValues(isPost ? await readForm(exchange) : new URLSearchParams(exchange.query))
  const cookie = exchange.context.header('cookie')
  const result = await handleCallback(deps.links, {
    params,
    browserKeyOf: (id) => readSessionCookie(cookie, id, isSecure(deps))?.browserKey,
    sessionIds: cookieSessionIds(cookie, isSecure(deps)),
    canRepost: isPost && !isSameOrigin(exchange, deps.links.publicUrl()),
  })
  const frame = neutralFrame(exchange)
  if (result.kind === 'needs_repost')
    return sendPage(exchange, 200, frame, repostPage(frame, { action: '/connect/callback', params }), {
      referrerPolicy: 'same-origin',
    })
  if (result.kind === 'begun_elsewhere') return sendRequestError(exchange, 400, 'request.begun_elsewhere')
  if (result.kind === 'rejected') return sendRequestError(exchange, 400, `error.${result.code}`)
  if (result.isPopup) return sendPage(exchange, 200, frame, returnedPage(frame))
  sendRedirect(exchange, `/connect/${result.id}`)
}

/**
 * `POST /connect/status`: how the session goes, for the application's page, which has the link token. Other origins than
 * those of the session cannot read the answer.
 */
export async function serveHostStatus(deps: ConnectPageDeps, exchange: HttpExchange): Promise<void> {
  const { context, request } = exchange
  const origin = context.header('origin')
  context.setHeader('vary', 'Origin')
  // An error names no session, so that any page may read why it gets no answer.
  if (origin !== undefined) context.setHeader('access-control-allow-origin', origin)
  if (request.method === 'OPTIONS') return sendPreflight(exchange)
  const token = /^bearer +(\S+)$/i.exec(context.header('authorization') ?? '')?.[1] ?? ''
  const found = sessionIdOf(token) === undefined ? undefined : await readLinkSummary(deps.links, token)
  if (found === undefined) return await rejectScript(exchange, 404, 'error.invalid_token')
  if (origin !== undefined && !found.origins.includes(origin))
    return await sendJson(exchange, 403, {
      error: { code: 'origin_not_allowed', message: 'the link token does not list this origin' },
    })
  const { status, integration, integrated_account_id, error_code } = found.summary
  const frame = neutralFrame(exchange)
  const error = error_code && { code: error_code, message: errorAlert(frame, error_code, '').title }
  await sendJson(exchange, 200, { id: sessionIdOf(token) ?? '', status, integration, integrated_account_id, error })
}

/** A preflight carries no token, so it is answered alike to all; the answer itself is for the session's origins. */
function sendPreflight({ context, response }: HttpExchange): void {
  context.setHeader('access-control-allow-methods', 'POST')
  context.setHeader('access-control-allow-headers', 'authorization, content-type')
  context.setHeader('access-control-max-age', '7200')
  response.writeHead(204, context.responseHeaders)
  response.end()
}

/** The session id in a link token; undefined for text that is none. */
function sessionIdOf(token: string): string | undefined {
  return token.length > TOKEN_LENGTH_MAX ? undefined : parseLinkToken(token)?.id
}

/** The id of the frame's address, which the client takes from the link token, where it has no dashes. */
function frameSessionId(path: string): string {
  return dashedId(path.split('/')[3] ?? '')
}

function dashedId(id: string): string {
  return id.replace(/^([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})$/, '$1-$2-$3-$4-$5')
}

function readMembers(body: Buffer) {
  const value = tryParseJson(body.toString())
  if (value === undefined) throw new Failure('MALFORMED_BODY', 'the body is no JSON')
  const { token, session, key } = isJsonObject(value) ? value : {}
  return { token: textOf(token), session: textOf(session), key: textOf(key) }
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}

function setSessionCookie(
  deps: ConnectPageDeps,
  exchange: HttpExchange,
  { id, maxAgeSeconds }: { readonly id: string; readonly maxAgeSeconds: number },
  cookie: SessionCookie,
): void {
  const header = sessionCookieHeader(id, cookie, { isSecure: isSecure(deps), maxAgeSeconds })
  exchange.context.setHeader('set-cookie', header)
}
