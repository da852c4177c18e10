import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { sendResponse } from '../api/exchange.ts'
import type { HttpExchange, HttpRoute } from '../api/http/routes.ts'
import { accentVariants } from './accent.ts'
import { COMMON_HEADERS } from './page-headers.ts'
import { PAGE_CSS, PAGE_SCRIPT, pageErrors, sendRequestError } from './send-page.ts'

const CLIENT_SCRIPT = readFileSync(new URL('../../../clients/connect/connect.js', import.meta.url))

const CSS = 'text/css; charset=utf-8'
const SCRIPT = 'text/javascript; charset=utf-8'

/** A day; the addresses of style and script change with their content. */
const PAGE_CACHE = 'public, max-age=86400, immutable'
/** The address of the client stays, so browsers ask again soon. */
const CLIENT_CACHE = 'public, max-age=300'

/** Style and script of the page, and the client for applications. */
export function staticRoutes(): readonly HttpRoute[] {
  return [
    fileRoute('/connect/page.css', PAGE_CSS, CSS, { 'cache-control': PAGE_CACHE }),
    fileRoute('/connect/page.js', PAGE_SCRIPT, SCRIPT, { 'cache-control': PAGE_CACHE }),
    fileRoute('/connect/client.js', CLIENT_SCRIPT, SCRIPT, {
      'cache-control': CLIENT_CACHE,
      // A module is loaded with CORS.
      'access-control-allow-origin': '*',
      'cross-origin-resource-policy': 'cross-origin',
    }),
    {
      verbs: ['GET'],
      path: '/connect/accent.css',
      access: 'public',
      readsBody: 'never',
      singleParameters: ['color'],
      errors: pageErrors,
      handle: serveAccent,
    },
  ]
}

function fileRoute(
  path: string,
  body: Buffer,
  contentType: string,
  headers: Readonly<Record<string, string>>,
): HttpRoute {
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
  return {
    verbs: ['GET'],
    path,
    access: 'public',
    readsBody: 'never',
    async handle(exchange) {
      const { context, response } = exchange
      for (const [name, value] of Object.entries({ ...COMMON_HEADERS, etag, ...headers }))
        context.setHeader(name, value)
      if (context.header('if-none-match') !== etag) return sendResponse(exchange, 200, contentType, body)
      response.writeHead(304, context.responseHeaders)
      response.end()
    },
  }
}

/** `?color=1f5fbf`: the variants of an accent colour that are readable in each colour scheme, as custom properties. */
async function serveAccent(exchange: HttpExchange): Promise<void> {
  const color = /^[0-9a-f]{6}$/i.exec(exchange.parameter('color') ?? '')?.[0]
  if (color === undefined) return sendRequestError(exchange, 400, 'request.invalid')
  const { light, dark } = accentVariants(`#${color}`)
  const properties = ({ accent, onAccent }: typeof light) => `{--accent:${accent};--on-accent:${onAccent}}`
  const css = `:root${properties(light)}
@media (prefers-color-scheme:dark){:root:not([data-theme="light"])${properties(dark)}}
:root[data-theme="dark"]${properties(dark)}
`
  for (const [name, value] of Object.entries({ ...COMMON_HEADERS, 'cache-control': PAGE_CACHE }))
    exchange.context.setHeader(name, value)
  sendResponse(exchange, 200, CSS, css)
}
