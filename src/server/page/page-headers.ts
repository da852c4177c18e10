/** What differs between pages. */
export interface PagePolicy {
  /** Origins whose pages may show this one in a frame; absent: none. */
  readonly frameOrigins?: readonly string[]
  /**
   * What a page says of itself: with `no-referrer`, which is the default, browsers send the origin of its forms as `null`.
   * `same-origin` is for addresses without a secret; `strict-origin` names the origin and never the address.
   */
  readonly referrerPolicy?: 'no-referrer' | 'same-origin' | 'strict-origin'
}

/**
 * Headers of every page. Scripts, styles, pictures and requests come from this origin alone; inline ones are not executed.
 *
 * `form-action` also holds for redirects of a form's answer in Chromium, so a consent page is reached by a link. The opener
 * policy stays open because a popup has to reach the window that opened it.
 */
export function pageHeaders({
  frameOrigins = [],
  referrerPolicy = 'no-referrer',
}: PagePolicy): Readonly<Record<string, string>> {
  const policy = contentSecurityPolicy(frameOrigins.filter((origin) => !/[;,*'\s]/.test(origin)))
  return { ...COMMON_HEADERS, 'content-security-policy': policy, 'referrer-policy': referrerPolicy }
}

/** Headers of answers to the script. */
export const COMMON_HEADERS: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'cross-origin-opener-policy': 'unsafe-none',
  'permissions-policy':
    'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), publickey-credentials-get=(), usb=()',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

/** Pictures that this server stores may be scripts to a browser that opens them alone; the sandbox disables those. */
export const LOGO_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

function contentSecurityPolicy(frameOrigins: readonly string[]): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    `frame-ancestors ${frameOrigins.length === 0 ? "'none'" : frameOrigins.join(' ')}`,
  ].join('; ')
}
