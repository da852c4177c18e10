/**
 * The API server: one port for gRPC, gRPC-Web, Connect and REST, the services of the contract, and HTTP routes beside them.
 *
 * `dispatch.ts` routes a request; `pipeline/run-operation.ts` has the steps of every one: deadline, authentication,
 * body, decoding, validation, handler, response. `services/` are Connect implementations with their converters beside them,
 * `rest/` and `rpc/` read and write messages, `http/` are the routes without a message, `messages/` is the codec,
 * `mcp-management/` offers the contract as tools. Business rules and SQL of resources never live here.
 */

export { type Exchange, sendResponse } from './exchange.ts'
export { customRoute } from './http/custom.ts'
export { healthzRoutes, SCHEDULER } from './http/health.ts'
export { inboundWebhookRoutes } from './http/inbound-webhook.ts'
export { mcpRoute } from './http/mcp.ts'
export { proxyRoute } from './http/proxy.ts'
export { documentRoute, type HttpExchange, type HttpRoute } from './http/routes.ts'
export { unifiedRoute } from './http/unified.ts'
export { BoundPort } from './listener/bound-port.ts'
export { findTlsProblem, type TlsKeys } from './listener/protocol-detection.ts'
export { limitAddress } from './pipeline/authenticate.ts'
export { readBody } from './pipeline/body.ts'
export { restStatus } from './pipeline/errors.ts'
export { type ApiServer, createApiServer } from './server.ts'
export type { ServiceDeps } from './services/deps.ts'
export { Health } from './services/health.ts'
export { createServices } from './services/index.ts'
export { createProxyCalls } from './services/proxy-calls.ts'
export { assertRequestWithinLimits } from './services/token-limits.ts'
