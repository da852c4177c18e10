import type { StatusCode } from '../../base/index.ts'
import { messageBytesMax, readingOf } from '../access.ts'
import type { Exchange } from '../exchange.ts'
import type { ServerStreamingOperation } from '../operation.ts'
import { acquireStreamSlot, inSlot, readCallerBody } from '../pipeline/admission.ts'
import { authenticate } from '../pipeline/authenticate.ts'
import { startDeadline } from '../pipeline/deadline.ts'
import { toFailure } from '../pipeline/errors.ts'
import type { StreamProtocol } from '../pipeline/protocol.ts'
import { completeExchange, enforceWriteTimeout, sendError, writeFrame } from '../pipeline/respond.ts'
import { assertValidInSlices } from '../pipeline/validate.ts'

/**
 * Serves one server stream: the steps of a unary call, then one message at a time, never faster than the client reads.
 * Never rejects.
 */
export async function serveStream(
  exchange: Exchange,
  operation: ServerStreamingOperation,
  protocol: StreamProtocol,
): Promise<void> {
  const { server, context, response } = exchange
  exchange.operationPath = operation.path
  exchange.readsBody = readingOf(operation.access)
  exchange.protocol = protocol
  context.setMethod(operation.method, protocol.name)
  let outcome: StatusCode | 'OK' = 'OK'
  server.openStreams.add(context)
  try {
    await context.raceInterrupt(() => runStream(exchange, operation, protocol))
    protocol.end(exchange, undefined)
  } catch (error) {
    if (response.headersSent) {
      const failure = toFailure(exchange, error)
      protocol.end(exchange, failure)
      outcome = failure.code
    } else outcome = sendError(exchange, error).code
  }
  server.openStreams.delete(context)
  enforceWriteTimeout(exchange)
  completeExchange(exchange, outcome)
}

async function runStream(
  exchange: Exchange,
  operation: ServerStreamingOperation,
  protocol: StreamProtocol,
): Promise<void> {
  const { server, context, response } = exchange
  const { limits } = server
  startDeadline(context, { defaultMs: undefined, maxMs: undefined })
  await authenticate(exchange, operation)
  acquireStreamSlot(exchange, operation.access)
  const bytesMax = messageBytesMax(operation.access, limits)
  const body = await readCallerBody(exchange, protocol.bodyBytesMax(bytesMax))
  await inSlot(exchange, async () => {
    const request = await protocol.decode(operation, exchange, body, bytesMax)
    await assertValidInSlices(operation, request, body)
    for await (const result of operation.handle(request.message, context)) {
      const frame = await protocol.frame(operation, result)
      if (!response.headersSent) protocol.open(exchange)
      await writeFrame(exchange, frame)
    }
  })
  if (!context.isDone && !response.headersSent) protocol.open(exchange)
}
