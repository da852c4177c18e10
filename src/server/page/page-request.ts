import {
  findLinkSession,
  type LinkChoice,
  type LinkError,
  type LinkSession,
  type LinkSessionRef,
  listChoices,
} from '../../platform/links/index.ts'
import { findBranding } from '../../platform/tenancy/index.ts'
import type { HttpExchange } from '../api/http/routes.ts'
import type { ConnectPageDeps } from './dependencies.ts'
import { registerLogos, shippedLogoPath } from './logos.ts'
import { neutralFrame, sendPage } from './send-page.ts'
import {
  cookieSeconds,
  isBrowserKey,
  isSecure,
  type OpenMode,
  oldCookieHeaders,
  pagePreferences,
  readSessionCookie,
  type SessionCookie,
  sessionCookieHeader,
} from './session-cookie.ts'
import { acceptedLanguages, textAbout, textsFor } from './texts.ts'
import type { AlertModel } from './views/form.ts'
import type { PageContent, PageFrame } from './views/layout.ts'

/** Header with which the script of a frame, which has no cookie, proves that it opened the session. */
const KEY_HEADER = 'patchbay-link-key'
/** Headers with what the application asked for, where there is no cookie. */
const THEME_HEADER = 'patchbay-link-theme'
const LOCALE_HEADER = 'patchbay-link-locale'

/** A request of a browser for its session. */
export interface PageVisit {
  readonly deps: ConnectPageDeps
  readonly exchange: HttpExchange
  readonly ref: LinkSessionRef
  readonly session: LinkSession
  readonly choices: readonly LinkChoice[]
  /** The chosen one; undefined until then. */
  readonly choice: LinkChoice | undefined
  /** Path of a choice's logo on this server; undefined without one. */
  readonly logoPathOf: (choice: LinkChoice) => string | undefined
  readonly frame: PageFrame
  readonly mode: OpenMode | 'iframe'
  readonly browser: Browser
}

/** Reads who asks for a session, and the session; undefined when this browser did not open it. */
export async function openVisit(
  deps: ConnectPageDeps,
  exchange: HttpExchange,
  id: string,
): Promise<PageVisit | undefined> {
  const browser = browserOf(deps, exchange, id)
  if (browser === undefined) return undefined
  const ref = { id, browserKey: browser.browserKey }
  const session = await findLinkSession(deps.links, ref)
  if (session === undefined) return undefined
  renewCookies(deps, exchange, session, browser)
  return await visitOf(deps, exchange, ref, session, browser)
}

/** The page of a session without a request that belongs to it: a popup that has a ticket; undefined for an unknown one. */
export async function frameOfPopup(
  deps: ConnectPageDeps,
  exchange: HttpExchange,
  ref: LinkSessionRef,
): Promise<PageFrame | undefined> {
  const session = await findLinkSession(deps.links, ref)
  const browser = { ...ref, ...pagePreferences({ mode: 'popup' }) }
  return session && (await visitOf(deps, exchange, ref, session, browser)).frame
}

/** Keeps the cookie of a session for as long as it is needed: a browser that opens many links must not collect them. */
function renewCookies(
  deps: ConnectPageDeps,
  { context, response }: HttpExchange,
  session: LinkSession,
  browser: Browser,
): void {
  const { mode } = browser
  if (mode === 'iframe') return
  const secure = isSecure(deps)
  const maxAgeSeconds = cookieSeconds(session)
  const own = sessionCookieHeader(session.id, { ...browser, mode }, { isSecure: secure, maxAgeSeconds })
  response.setHeader('set-cookie', [own, ...oldCookieHeaders(context.header('cookie'), session.id, secure)])
}

/** The same visit after a step changed the session. */
export async function continueVisit(visit: PageVisit, session: LinkSession): Promise<PageVisit> {
  const { deps, exchange, ref, browser } = visit
  renewCookies(deps, exchange, session, browser)
  return await visitOf(deps, exchange, ref, session, browser)
}

/** Sends the page of a step with the facts that the script needs on each. */
export function sendStep(visit: PageVisit, status: number, content: PageContent): void {
  const { session, frame, exchange } = visit
  const data = {
    session: session.id,
    status: session.status,
    origins: JSON.stringify(session.origins),
    leaving: frame.texts.text('page.leave'),
    ...content.data,
  }
  sendPage(exchange, status, frame, { ...content, data }, { referrerPolicy: 'same-origin' })
}

/** The path of a step of the session. */
export function stepPath({ id }: Pick<LinkSession, 'id'>, step: string): string {
  return `/connect/${id}/${step}`
}

/** The session's error for the customer; undefined without one. */
export function alertOf({
  frame,
  session,
  choice,
}: Pick<PageVisit, 'frame' | 'session' | 'choice'>): AlertModel | undefined {
  const { error } = session
  const { credential } = session
  // After a consent there is no value to check.
  const hasConsent = choice?.methods.some((method) => method.credential === credential && method.hasConsent)
  if (error === null) return undefined
  const alert = errorAlert(frame, error.code, error.message)
  if (error.code === 'credentials_rejected' && hasConsent) {
    const key = 'error.credentials_rejected.advice.consent'
    return { ...alert, advice: textAbout(frame.texts, key, frame.integration?.name) }
  }
  if (error.code !== 'identity_changed') return alert
  return { ...alert, action: { path: stepPath(session, 'identity'), label: frame.texts.text('identity.confirm') } }
}

/** The text for an error code, with what the third party said. */
export function errorAlert(
  { texts, integration }: Pick<PageFrame, 'texts' | 'integration'>,
  code: LinkError['code'],
  details: string,
): AlertModel {
  return {
    title: textAbout(texts, `error.${code}.title`, integration?.name),
    advice: textAbout(texts, `error.${code}.advice`, integration?.name),
    details,
  }
}

async function visitOf(
  deps: ConnectPageDeps,
  exchange: HttpExchange,
  ref: LinkSessionRef,
  session: LinkSession,
  browser: Browser,
): Promise<PageVisit> {
  const choices = await listChoices(deps.links, session)
  const branding = await findBranding(deps.database.pool, session.environmentId)
  const logoUrls = choices.map(({ description }) => description.logoUrl ?? '')
  const logoPaths = await registerLogos(deps, [branding.logoUrl, ...logoUrls])
  const logoPathOf = ({ name, description: { logoUrl, hasShippedLogo } }: LinkChoice) =>
    hasShippedLogo ? shippedLogoPath(name) : logoPaths.get(logoUrl ?? '')
  const choice = choices.find((each) => each.environmentIntegrationId === session.environmentIntegrationId)
  const texts = textsFor([
    ...[browser.locale, session.locale].filter((tag) => tag !== ''),
    ...acceptedLanguages(exchange.context.header('accept-language')),
  ])
  const frame: PageFrame = {
    ...neutralFrame(exchange, texts),
    brand:
      branding.displayName === ''
        ? undefined
        : { name: branding.displayName, logoPath: logoPaths.get(branding.logoUrl) },
    accentColor: branding.accentColor === '' ? undefined : branding.accentColor,
    integration: choice && { name: choice.description.label, logoPath: logoPathOf(choice) },
    isFramed: browser.mode === 'iframe',
    theme: browser.theme,
  }
  return { deps, exchange, ref, session, choices, choice, logoPathOf, frame, mode: browser.mode, browser }
}

type Browser = Omit<SessionCookie, 'mode'> & { readonly mode: OpenMode | 'iframe' }

function browserOf(deps: ConnectPageDeps, { context }: HttpExchange, id: string): Browser | undefined {
  const key = context.header(KEY_HEADER)
  if (!isBrowserKey(key)) return readSessionCookie(context.header('cookie'), id, isSecure(deps))
  const preferences = pagePreferences({ theme: context.header(THEME_HEADER), locale: context.header(LOCALE_HEADER) })
  return { ...preferences, browserKey: key, mode: 'iframe' }
}
