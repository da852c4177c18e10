import { createHash } from 'node:crypto'
import { findShippedLogo } from '../../engine/catalog/index.ts'
import type { TtlCache } from '../../foundation/base/index.ts'
import type { Database } from '../../foundation/database/index.ts'
import type { HttpClient } from '../../foundation/egress/index.ts'
import { sendResponse } from '../api/exchange.ts'
import type { HttpExchange } from '../api/http/routes.ts'
import { limitAddress } from '../api/pipeline/authenticate.ts'
import { COMMON_HEADERS, LOGO_POLICY } from './page-headers.ts'
import { sendRequestError } from './send-page.ts'
import { claimLogo, findLogo, insertLogos, storeLogo } from './sql.ts'

/** A picture as it is served. */
interface Logo {
  readonly contentType: string
  readonly body: Buffer
}

/** What fetching and serving logos takes. */
export interface LogoDeps {
  readonly database: Pick<Database, 'pool'>
  readonly http: Pick<HttpClient, 'send'>
  /** Pictures that were served, by hash in hexadecimal digits. */
  readonly logos: TtlCache<Logo>
  /** Addresses that are registered already, by the same key. */
  readonly registeredLogos: TtlCache<true>
}

/** Largest picture; the table connect_logo has the same limit. */
const LOGO_BYTES_MAX = 128 * 1024
const FETCH_TIMEOUT_MS = 5_000
const REDIRECTS_MAX = 3

/** Types of pictures that browsers show; SVG is served under a policy that disables its scripts. */
const LOGO_TYPES: ReadonlySet<string> = new Set([
  'image/avif',
  'image/gif',
  'image/jpeg',
  'image/png',
  'image/svg+xml',
  'image/vnd.microsoft.icon',
  'image/webp',
  'image/x-icon',
])

const BROWSER_CACHE = 'public, max-age=86400'

/**
 * Registers addresses of pictures and returns the paths under which this server shows them, by address. A picture is fetched
 * when a browser first asks for it.
 */
export async function registerLogos(deps: LogoDeps, urls: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const logos = [...new Set(urls)].filter((url) => url !== '').map((url) => ({ url, hash: hashOf(url) }))
  const unknown = logos.filter(({ hash }) => deps.registeredLogos.get(hash.toString('hex')) === undefined)
  if (unknown.length > 0) await insertLogos(deps.database.pool, unknown)
  for (const { hash } of unknown) deps.registeredLogos.set(hash.toString('hex'), true)
  return new Map(logos.map(({ url, hash }) => [url, `/connect/logo/${hash.toString('hex')}`]))
}

/** Path of the logo of a shipped definition. */
export function shippedLogoPath(name: string): string {
  return `/connect/logo/${name}.svg`
}

/**
 * `GET /connect/logo/{name}.svg`: the logo of a shipped definition, which pages of other origins may show; `{hash}`: a registered
 * picture. While there is none the answer is 204, at which the page shows initials: browsers report a 404 as an error.
 */
export async function serveLogo(deps: LogoDeps, exchange: HttpExchange): Promise<void> {
  const [, name, hash] = /^\/connect\/logo\/(?:([a-z0-9-]+)\.svg|([0-9a-f]{64}))$/.exec(exchange.path) ?? []
  if (name !== undefined) return sendLogo(exchange, shippedLogo(name), 'cross-origin')
  if (hash === undefined) return sendRequestError(exchange, 404, 'request.not_found')
  const found = deps.logos.get(hash) ?? (await loadLogo(deps, exchange, Buffer.from(hash, 'hex')))
  if (found === 'unknown') return sendRequestError(exchange, 404, 'request.not_found')
  if (found !== 'unavailable') deps.logos.set(hash, found)
  sendLogo(exchange, found === 'unavailable' ? undefined : found, 'same-origin')
}

function shippedLogo(name: string): Logo | undefined {
  const body = findShippedLogo(name)
  return body && { contentType: 'image/svg+xml', body }
}

function sendLogo(
  exchange: HttpExchange,
  logo: Logo | undefined,
  resourcePolicy: 'same-origin' | 'cross-origin',
): void {
  const { context, response } = exchange
  const headers = {
    ...COMMON_HEADERS,
    'cache-control': logo === undefined ? 'no-store' : BROWSER_CACHE,
    'content-security-policy': LOGO_POLICY,
    'cross-origin-resource-policy': resourcePolicy,
  }
  for (const [name, value] of Object.entries(headers)) context.setHeader(name, value)
  if (logo === undefined) {
    response.writeHead(204, context.responseHeaders)
    response.end()
    return
  }
  sendResponse(exchange, 200, logo.contentType, logo.body)
}

/**
 * The stored picture, fetched anew once a week; else the one at its address, at most once an hour. One process fetches it, the
 * others have the stored one meanwhile, as all have it when it cannot be fetched.
 */
async function loadLogo(
  deps: LogoDeps,
  exchange: HttpExchange,
  hash: Buffer,
): Promise<Logo | 'unknown' | 'unavailable'> {
  limitAddress(exchange)
  const { pool } = deps.database
  const stored = await findLogo(pool, hash)
  if (stored === undefined) return 'unknown'
  const { url, contentType, body, isDue } = stored
  const present = contentType === null || body === null ? 'unavailable' : { contentType, body }
  if (!isDue || !(await claimLogo(pool, hash))) return present
  const fetched = await fetchLogo(deps, url)
  if (fetched !== undefined) await storeLogo(pool, hash, fetched)
  return fetched ?? present
}

/** Undefined for anything but a picture of an allowed type and size. Why does not matter to a visitor. */
async function fetchLogo({ http }: LogoDeps, url: string): Promise<Logo | undefined> {
  try {
    const response = await http.send({
      method: 'GET',
      url,
      headers: { accept: 'image/*' },
      timeoutMs: FETCH_TIMEOUT_MS,
      maxResponseBytes: LOGO_BYTES_MAX,
      redirects: REDIRECTS_MAX,
    })
    const contentType = response.headers['content-type']?.split(';')[0]?.trim().toLowerCase() ?? ''
    if (response.status !== 200 || response.body.length === 0 || !LOGO_TYPES.has(contentType)) return undefined
    return { contentType, body: Buffer.from(response.body) }
  } catch {
    return undefined
  }
}

function hashOf(url: string): Buffer {
  return createHash('sha256').update(url).digest()
}
