import type { HealthProblem } from '../../../foundation/telemetry/index.ts'
import type { Health } from '../services/health.ts'
import type { HttpRoute } from './routes.ts'

/** Paths of probes of a service, and its name in `grpc.health.v1`. */
const PATHS = { '/healthz': '', '/healthz/scheduler': 'patchbay.scheduler' } as const

/** The health service that is SERVING while any worker fires ticks. */
export const SCHEDULER = PATHS['/healthz/scheduler']

/**
 * Probes over plain HTTP: 200 while all is well, else 503 with the reason. No token is needed, and nothing is waited for. `/healthz` is
 * `grpc.health.v1`; `/livez` is 200 while the process answers at all; `/readyz` also fails in a drain and while the database does not answer.
 */
export function healthzRoutes(
  health: Pick<Health, 'problemOf'>,
  findReadinessProblem: () => HealthProblem | undefined = () => undefined,
): readonly HttpRoute[] {
  const services = Object.entries(PATHS).map(([path, service]) => probeRoute(path, () => health.problemOf(service)))
  return [
    ...services,
    probeRoute('/livez', () => undefined),
    probeRoute('/readyz', () => health.problemOf('') ?? findReadinessProblem()),
  ]
}

function probeRoute(path: string, findProblem: () => HealthProblem | undefined): HttpRoute {
  return {
    verbs: ['GET'],
    path,
    access: 'public',
    readsBody: 'never',
    async handle({ request, response, context }) {
      const problem = findProblem()
      const state =
        problem === undefined
          ? { status: 'SERVING' }
          : { status: 'NOT_SERVING', reason: problem.reason, message: problem.message }
      const body = Buffer.from(JSON.stringify(state))
      const headers = { 'content-type': 'application/json', 'content-length': body.length, 'cache-control': 'no-store' }
      response.writeHead(problem === undefined ? 200 : 503, { ...context.responseHeaders, ...headers })
      response.end(request.method === 'HEAD' ? undefined : body)
    },
  }
}
