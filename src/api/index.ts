/**
 * The edge: one port that speaks gRPC, gRPC-Web, Connect and REST, and the services behind it.
 *
 * A request runs through plain stages (`stages/serve-unary.ts` reads top to bottom): deadline, gate, body, decode,
 * validate, handle, encode. Protocols (`wire/`) only spell what goes in and out. No rule of the domain lives here.
 */

export { customRoute } from './http/custom.ts'
export { healthzRoutes, SCHEDULER } from './http/health.ts'
export { proxyRoute } from './http/proxy.ts'
export { documentRoute } from './http/routes.ts'
export { BoundPort } from './listener/bound-port.ts'
export { findTlsProblem, type TlsKeys } from './listener/protocol-detection.ts'
export { createApiServer } from './server.ts'
export { Health } from './services/health.ts'
export { createServices, type ServiceDeps } from './services/index.ts'
