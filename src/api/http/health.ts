import type { Health } from '../services/health.ts'
import type { HttpRoute } from './routes.ts'

/** Paths of HTTP probes, and the service of each in `grpc.health.v1`. */
const PATHS = { '/healthz': '', '/healthz/scheduler': 'patchbay.scheduler' } as const

/** The health service that is SERVING while any worker fires ticks. */
export const SCHEDULER = PATHS['/healthz/scheduler']

/** `grpc.health.v1` for probes that speak plain HTTP: 200 while the service serves, else 503 with the reason. No token is needed. */
export function healthzRoutes(health: Pick<Health, 'problemOf'>): readonly HttpRoute[] {
  return Object.entries(PATHS).map(([path, service]) => ({
    verbs: ['GET'],
    path,
    access: 'public',
    readsBody: 'never',
    async handle({ request, response, context }) {
      const problem = health.problemOf(service)
      const state =
        problem === undefined
          ? { status: 'SERVING' }
          : { status: 'NOT_SERVING', reason: problem.reason, message: problem.message }
      const body = Buffer.from(JSON.stringify(state))
      const headers = { 'content-type': 'application/json', 'content-length': body.length, 'cache-control': 'no-store' }
      response.writeHead(problem === undefined ? 200 : 503, { ...context.responseHeaders, ...headers })
      response.end(request.method === 'HEAD' ? undefined : body)
    },
  }))
}
