import type { Failure, StatusCode } from '../../base/index.ts'
import type { Exchange } from '../exchange.ts'
import { failureHeaders } from '../failure/details.ts'
import { toFailure } from '../failure/funnel.ts'
import type { Wire } from '../wire/wire.ts'
import { discardRest } from './body.ts'
import type { Core } from './core.ts'
import { cut } from './write.ts'

/**
 * Sends whatever was thrown as a refusal, in place of an answer. If part of an answer went out already, the connection
 * is cut instead: half an answer must not look like a whole one.
 */
export function refuse(core: Core, operation: string, wire: Wire, exchange: Exchange, error: unknown): Failure {
  const failure = toFailure(core, error, exchange.call, operation)
  for (const [name, value] of Object.entries(failureHeaders(failure))) exchange.call.setHeader(name, value)
  if (exchange.response.headersSent) cut(exchange)
  else wire.refuse(exchange, failure)
  discardRest(exchange, core.limits.lingerMs)
  return failure
}

/** Closes the call and tells how it went. */
export function finish(
  core: Core,
  operation: string,
  wire: Wire,
  { call }: Exchange,
  outcome: StatusCode | 'OK',
): void {
  call.close()
  core.observe?.({ operation, wire: wire.name, outcome, durationMs: performance.now() - call.startedMs })
}
