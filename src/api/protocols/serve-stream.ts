import type { StatusCode } from '../../base/index.ts'
import type { Exchange } from '../exchange.ts'
import type { StreamOperation } from '../operation.ts'
import { authenticate } from '../pipeline/authenticate.ts'
import { readBody } from '../pipeline/body.ts'
import { startDeadline } from '../pipeline/deadline.ts'
import { toFailure } from '../pipeline/errors.ts'
import type { StreamProtocol } from '../pipeline/protocol.ts'
import { completeExchange, enforceWriteTimeout, sendError, writeFrame } from '../pipeline/respond.ts'
import { acquireStreamSlot, type ServerContext } from '../pipeline/server-context.ts'
import { assertValidInSlices } from '../pipeline/validate.ts'

/**
 * Serves one server stream: the stages of a unary call, then a message at a time, never faster than the client reads.
 * Never rejects.
 */
export async function serveStream(
  core: ServerContext,
  operation: StreamOperation,
  wire: StreamProtocol,
  exchange: Exchange,
): Promise<void> {
  const { call, response } = exchange
  let outcome: StatusCode | 'OK' = 'OK'
  core.openStreams.add(call)
  try {
    await call.raceInterrupt(runStream(core, operation, wire, exchange))
    wire.end(exchange, undefined)
  } catch (error) {
    if (response.headersSent) {
      const failure = toFailure(core, error, call, operation.path)
      wire.end(exchange, failure)
      outcome = failure.code
    } else outcome = sendError(core, operation.path, wire, exchange, error).code
  }
  core.openStreams.delete(call)
  enforceWriteTimeout(exchange, core.limits.writeTimeoutMs)
  completeExchange(core, operation.path, wire, exchange, outcome)
}

async function runStream(
  core: ServerContext,
  operation: StreamOperation,
  wire: StreamProtocol,
  exchange: Exchange,
): Promise<void> {
  const { limits } = core
  const { call, response } = exchange
  startDeadline(call, { defaultMs: undefined, maxMs: undefined })
  await authenticate(core.gate, operation.access, call)
  acquireStreamSlot(core, operation.access, call)
  const body = await readBody(exchange, limits, wire.bodyBytesMax(limits.requestBytesMax))
  const draft = await wire.decode(operation, exchange, body, limits.requestBytesMax)
  await assertValidInSlices(operation, draft, body)
  for await (const result of operation.handle(draft.message, call)) {
    const frame = await wire.frame(operation, result)
    if (!response.headersSent) wire.open(exchange)
    await writeFrame(exchange, frame, limits.writeTimeoutMs)
  }
  if (!call.isDone && !response.headersSent) wire.open(exchange)
}
