/**
 * The edge: one port that speaks gRPC, gRPC-Web, Connect and REST, and the services behind it.
 *
 * A request runs through plain stages (`stages/serve-unary.ts` reads top to bottom): deadline, gate, body, decode,
 * validate, handle, encode. Protocols (`wire/`) only spell what goes in and out. No rule of the domain lives here.
 */
export type {
  Admission,
  EnvironmentCall,
  Principal,
} from './call.ts'

export { customRoute } from './endpoints/custom-route.ts'
export { Health } from './endpoints/health.ts'
export { healthzRoutes, SCHEDULER } from './endpoints/healthz.ts'
export { documentRoute, type HttpRoute } from './endpoints/plain-route.ts'
export { proxyRoute } from './endpoints/proxy-route.ts'
export type { ApiLimits } from './limits.ts'
export { BoundPort } from './listener/bound-port.ts'
export { findTlsProblem, type TlsKeys } from './listener/front.ts'
export { AdminServer } from './listener/operating-listener.ts'
export { type ApiServer, type ApiServerOptions, createApiServer } from './server.ts'
export type { ServiceDefinition } from './service.ts'
export { createServices, type ServiceDeps } from './services/index.ts'

export type { Observation } from './stages/core.ts'
