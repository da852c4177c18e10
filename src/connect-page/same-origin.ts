import type { HttpExchange } from '../api/index.ts'

/**
 * Tells whether a request was made by a page of this service, against forged ones of other sites (CSRF), on top of the
 * cookie's `SameSite=Lax`.
 *
 * `Sec-Fetch-Site` decides where the browser sends it. `Origin` is `null` on forms of pages with the referrer policy
 * `no-referrer`, which these are, so `null` says nothing.
 *
 * @param publicUrl address of this service, never taken from the request
 */
export function isSameOrigin({ context }: HttpExchange, publicUrl: string): boolean {
  const site = context.header('sec-fetch-site')
  if (site !== undefined) return site === 'same-origin' || site === 'none'
  const origin = context.header('origin')
  return origin === undefined || origin === 'null' || origin === URL.parse(publicUrl)?.origin
}
