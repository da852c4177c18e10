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
