import type { StatusCode } from '../../base/index.ts'
import { messageBytesMax, readingOf } from '../access.ts'
import type { Exchange } from '../exchange.ts'
import type { ResultInit, UnaryOperation } from '../operation.ts'
import { countUnsent, inSlot, readCallerBody } from './admission.ts'
import { assertWithinLimit, authenticate, chargeAnswer } from './authenticate.ts'
import { startDeadline } from './deadline.ts'
import type { UnaryProtocol } from './protocol.ts'
import { completeExchange, enforceWriteTimeout, sendError } from './respond.ts'
import { assertValidInSlices } from './validate.ts'

/** A response that leaves more than this unsent gets a write timeout; below it, waiting for the client costs next to nothing. */
const LARGE_BACKLOG_BYTES = 64 * 1024

/** Serves one unary call on any protocol: runs its steps and sends the result. Never rejects. */
export async function serveUnary(
  exchange: Exchange,
  operation: UnaryOperation,
  protocol: UnaryProtocol,
): Promise<void> {
  exchange.operationPath = operation.path
  exchange.readsBody = readingOf(operation.access)
  exchange.protocol = protocol
  exchange.context.setMethod(operation.method, protocol.name)
  let outcome: StatusCode | 'OK' = 'OK'
  try {
    const result = await exchange.context.raceInterrupt(() => runUnary(exchange, operation, protocol))
    await protocol.sendResult(operation, exchange, result)
    if (exchange.response.writableLength > LARGE_BACKLOG_BYTES) enforceWriteTimeout(exchange)
    countUnsent(exchange)
    chargeAnswer(exchange, exchange.context.answerBytes)
  } catch (error) {
    outcome = sendError(exchange, error).code
  }
  completeExchange(exchange, outcome)
}

/** The steps of a unary call, in order. Each throws a `Failure` to reject it. */
async function runUnary(exchange: Exchange, operation: UnaryOperation, protocol: UnaryProtocol): Promise<ResultInit> {
  const { server, context } = exchange
  const { limits } = server
  startDeadline(context, { defaultMs: limits.deadlineDefaultMs, maxMs: limits.deadlineMaxMs })
  await authenticate(exchange, operation)
  const bytesMax = messageBytesMax(operation.access, limits)
  const body = await readCallerBody(exchange, protocol.bodyBytesMax(bytesMax))
  return await inSlot(exchange, async () => {
    assertWithinLimit(exchange)
    const request = await protocol.decode(operation, exchange, body, bytesMax)
    await assertValidInSlices(operation, request, body)
    return await operation.handle(request.message, context)
  })
}
