import type { HttpExchange } from '../api/http/routes.ts'

/**
 * Tells whether a request was made by a page of this service, against forged ones of other sites (CSRF), on top of the
 * cookie's `SameSite=Lax`.
 *
 * `Sec-Fetch-Site` decides where the browser sends it. Otherwise `Origin` must be that of this service: browsers send it with
 * every POST, and as `null` from pages of other sites and from those with the referrer policy `no-referrer`.
 *
 * @param publicUrl address of this service, never taken from the request
 */
export function isSameOrigin({ context }: HttpExchange, publicUrl: string): boolean {
  const site = context.header('sec-fetch-site')
  if (site !== undefined) return site === 'same-origin' || site === 'none'
  return context.header('origin') === URL.parse(publicUrl)?.origin
}
