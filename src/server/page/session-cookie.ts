import { isUuid } from '../../foundation/base/index.ts'
import type { ConnectPageDeps } from './dependencies.ts'

/** How the application opened the page. */
export type OpenMode = 'link' | 'popup' | 'redirect'

/** What a browser keeps of a session. */
export interface SessionCookie {
  /** The secret that links gives out: base64url. */
  readonly browserKey: string
  readonly mode: OpenMode
  /** Colour scheme that the application asked for; empty: the browser's. */
  readonly theme: string
  /** Language that the application asked for; empty: the session's, then the browser's. */
  readonly locale: string
}

const BROWSER_KEY = /^[\w-]{20,128}$/
const LOCALE = /^[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8}){0,4}$/
const THEMES: ReadonlySet<string> = new Set(['light', 'dark'])
const MODES: ReadonlySet<string> = new Set<OpenMode>(['link', 'popup', 'redirect'])

/**
 * The header `Set-Cookie` of a session. The prefix `__Host-` binds a cookie to this host and to TLS, so it is left out where
 * the public address has none.
 */
export function sessionCookieHeader(
  sessionId: string,
  { browserKey, mode, theme, locale }: SessionCookie,
  { isSecure, maxAgeSeconds }: { isSecure: boolean; maxAgeSeconds: number },
): string {
  const value = [browserKey, mode, theme, locale].join('.')
  const secure = isSecure ? '; Secure' : ''
  return `${cookieName(sessionId, isSecure)}=${value}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${maxAgeSeconds}${secure}`
}

/** How long a browser keeps sessions that it can open again by their link, or that have ended. */
const UNTOUCHED_SECONDS = 3_600
const ENDED_SECONDS = 600

/** Seconds that the cookie of a session is kept: as long as the session once something was submitted. */
export function cookieSeconds({
  step,
  attempts,
  expiresAt,
}: {
  readonly step: string
  readonly attempts: number
  readonly expiresAt: Date
}): number {
  if (step === 'done') return ENDED_SECONDS
  return attempts === 0 ? Math.min(UNTOUCHED_SECONDS, secondsUntil(expiresAt)) : secondsUntil(expiresAt)
}

/** Seconds until the end of a session, at least a minute. */
export function secondsUntil(expiresAt: Date): number {
  return Math.max(60, Math.ceil((expiresAt.getTime() - Date.now()) / 1_000))
}

/** Most cookies of sessions beside the present one's: a server rejects requests whose headers are too long. */
const COOKIES_MAX = 10

/** Ids of the sessions that a browser has cookies of, the newest first. */
export function cookieSessionIds(header: string | undefined, isSecure: boolean): readonly string[] {
  const prefix = cookieName('', isSecure)
  const ids = (header ?? '')
    .split(';')
    .map((each) => each.trim().split('=', 1)[0] ?? '')
    .filter((name) => name.startsWith(prefix))
    .map((name) => name.slice(prefix.length))
    .filter(isUuid)
  // Ids begin with the time.
  return [...new Set(ids)].sort().reverse()
}

/** Headers `Set-Cookie` that delete the cookies of all sessions but the newest ten and the present one. */
export function oldCookieHeaders(header: string | undefined, sessionId: string, isSecure: boolean): readonly string[] {
  const old = cookieSessionIds(header, isSecure).slice(COOKIES_MAX)
  const attributes = `Path=/; HttpOnly; SameSite=Lax; Max-Age=0${isSecure ? '; Secure' : ''}`
  return old.filter((id) => id !== sessionId).map((id) => `${cookieName(id, isSecure)}=; ${attributes}`)
}

/** Reads the cookie of a session; undefined when there is none, or one that this service has not set. */
export function readSessionCookie(
  header: string | undefined,
  sessionId: string,
  isSecure: boolean,
): SessionCookie | undefined {
  const prefix = `${cookieName(sessionId, isSecure)}=`
  const pair = header
    ?.split(';')
    .map((each) => each.trim())
    .find((each) => each.startsWith(prefix))
  const [browserKey = '', mode = '', theme, locale] = pair?.slice(prefix.length).split('.') ?? []
  if (!BROWSER_KEY.test(browserKey)) return undefined
  return { browserKey, ...pagePreferences({ mode, theme, locale }) }
}

/** What an application may ask for, from its form; anything else counts as not given. */
export function pagePreferences(given: {
  readonly mode?: string | undefined
  readonly theme?: string | undefined
  readonly locale?: string | undefined
}): Omit<SessionCookie, 'browserKey'> {
  const { mode = '', theme = '', locale = '' } = given
  return {
    mode: isMode(mode) ? mode : 'link',
    theme: THEMES.has(theme) ? theme : '',
    locale: LOCALE.test(locale) ? locale : '',
  }
}

/** Whether browsers reach the service by TLS. */
export function isSecure({ links }: Pick<ConnectPageDeps, 'links'>): boolean {
  return links.publicUrl().startsWith('https:')
}

/** Whether a text has the form of a browser key. */
export function isBrowserKey(text: string | undefined): text is string {
  return text !== undefined && BROWSER_KEY.test(text)
}

function isMode(text: string): text is OpenMode {
  return MODES.has(text)
}

function cookieName(sessionId: string, isSecure: boolean): string {
  return `${isSecure ? '__Host-' : ''}patchbay-link-${sessionId}`
}
