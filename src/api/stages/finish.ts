import type { Failure, StatusCode } from '../../base/index.ts'
import type { Exchange } from '../exchange.ts'
import { failureHeaders } from '../failure/details.ts'
import { toFailure } from '../failure/funnel.ts'
import type { Protocol } from '../wire/wire.ts'
import { drainRequest } from './body.ts'
import type { ServerContext } from './core.ts'
import { abortConnection } from './write.ts'

/**
 * Sends whatever was thrown as a refusal, in place of an answer. If part of an answer went out already, the connection
 * is cut instead: half an answer must not look like a whole one.
 */
export function sendError(
  core: ServerContext,
  operation: string,
  wire: Protocol,
  exchange: Exchange,
  error: unknown,
): Failure {
  const failure = toFailure(core, error, exchange.call, operation)
  for (const [name, value] of Object.entries(failureHeaders(failure))) exchange.call.setHeader(name, value)
  if (exchange.response.headersSent) abortConnection(exchange)
  else wire.sendError(exchange, failure)
  drainRequest(exchange, core.limits.drainTimeoutMs)
  return failure
}

/** Closes the call and tells how it went. */
export function completeExchange(
  core: ServerContext,
  operation: string,
  wire: Protocol,
  { call }: Exchange,
  outcome: StatusCode | 'OK',
): void {
  call.close()
  core.observe?.({ operation, wire: wire.name, outcome, durationMs: performance.now() - call.startedMs })
}
