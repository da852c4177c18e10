import { detachFromRequest, TtlCache } from '../../foundation/base/index.ts'
import type { HttpExchange, HttpRoute } from '../api/http/routes.ts'
import type { ConnectPageDeps, ConnectPageOptions } from './dependencies.ts'
import { serveLogo } from './logos.ts'
import {
  openByForm,
  openByLink,
  openByScript,
  serveCallback,
  serveFrame,
  serveHop,
  serveHostStatus,
} from './open-routes.ts'
import { pageErrors } from './send-page.ts'
import { serveSession } from './session-routes.ts'
import { staticRoutes } from './static-routes.ts'

/** Longest time for one request; an exchange of a code with a third party has its own, shorter limit. */
const DEADLINE_MS = 30_000

/** Pictures in memory, 128 KiB each at most. */
const LOGOS_MAX = 128
const REGISTERED_LOGOS_MAX = 10_000
const LOGO_TTL_MS = 10 * 60_000

type Serve = (deps: ConnectPageDeps, exchange: HttpExchange) => Promise<void>

/** What a third party sends back; it may add others. */
const CALLBACK_PARAMETERS = ['state', 'code', 'error', 'error_description']

/** Every route of the page and its function. */
const ROUTES: readonly (Pick<HttpRoute, 'verbs' | 'path' | 'isPrefix' | 'singleParameters'> & { serve: Serve })[] = [
  { verbs: ['GET'], path: '/connect', singleParameters: ['link_token'], serve: openByLink },
  { verbs: ['POST'], path: '/connect', serve: openByForm },
  { verbs: ['GET'], path: '/connect/frame/', isPrefix: true, serve: serveFrame },
  { verbs: ['POST'], path: '/connect/open', serve: openByScript },
  { verbs: ['GET', 'POST'], path: '/connect/hop', singleParameters: ['ticket'], serve: serveHop },
  { verbs: ['GET', 'POST'], path: '/connect/callback', singleParameters: CALLBACK_PARAMETERS, serve: serveCallback },
  { verbs: ['POST', 'OPTIONS'], path: '/connect/status', serve: serveHostStatus },
  { verbs: ['GET', 'POST'], path: '/connect/', isPrefix: true, singleParameters: ['q'], serve: serveSession },
]

/** The HTTP routes of the connect page. None asks for an API token; all but files and cached pictures count against the address limit. */
export function connectPageRoutes({ links, http, clock }: ConnectPageOptions): readonly HttpRoute[] {
  const deps: ConnectPageDeps = {
    links,
    http,
    database: links.database,
    logos: new TtlCache({ max: LOGOS_MAX, ttlMs: LOGO_TTL_MS, clock }),
    registeredLogos: new TtlCache({ max: REGISTERED_LOGOS_MAX, ttlMs: LOGO_TTL_MS, clock }),
  }
  const pages = ROUTES.map(
    ({ serve, ...route }): HttpRoute => ({
      ...route,
      access: 'public',
      readsBody: route.verbs.includes('POST') ? 'before_authentication' : 'never',
      isAddressLimited: true,
      errors: pageErrors,
      deadlineDefaultMs: DEADLINE_MS,
      // A customer who closes the window has consented all the same, and a code is exchanged once: the session keeps what came of it.
      handle: (exchange) => detachFromRequest(() => serve(deps, exchange)),
    }),
  )
  const logoRoute: HttpRoute = {
    verbs: ['GET'],
    path: '/connect/logo/',
    isPrefix: true,
    access: 'public',
    readsBody: 'never',
    errors: pageErrors,
    handle: (exchange) => serveLogo(deps, exchange),
  }
  return [...pages, logoRoute, ...staticRoutes()]
}
