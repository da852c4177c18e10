import type { StatusCode } from '../../base/index.ts'
import type { Exchange } from '../exchange.ts'
import type { ResultInit, UnaryOperation } from '../operation.ts'
import { authenticate } from './authenticate.ts'
import { readBody } from './body.ts'
import { startDeadline } from './deadline.ts'
import type { UnaryProtocol } from './protocol.ts'
import { completeExchange, enforceWriteTimeout, sendError } from './respond.ts'
import type { ServerContext } from './server-context.ts'
import { assertValidInSlices } from './validate.ts'

/** An answer that leaves more than this unsent is watched; below it, waiting for the client costs next to nothing. */
const LARGE_BACKLOG_BYTES = 64 * 1024

/** Serves one unary call on any protocol: runs its stages and sends what comes of them. Never rejects. */
export async function serveUnary(
  core: ServerContext,
  operation: UnaryOperation,
  wire: UnaryProtocol,
  exchange: Exchange,
): Promise<void> {
  let outcome: StatusCode | 'OK' = 'OK'
  try {
    const result = await exchange.call.raceInterrupt(runUnary(core, operation, wire, exchange))
    await wire.sendResult(operation, exchange, result)
    if (exchange.response.writableLength > LARGE_BACKLOG_BYTES)
      enforceWriteTimeout(exchange, core.limits.writeTimeoutMs)
  } catch (error) {
    outcome = sendError(core, operation.path, wire, exchange, error).code
  }
  completeExchange(core, operation.path, wire, exchange, outcome)
}

/** The stages of a unary call, in order. Each throws a `Failure` to refuse. */
async function runUnary(
  core: ServerContext,
  operation: UnaryOperation,
  wire: UnaryProtocol,
  exchange: Exchange,
): Promise<ResultInit> {
  const { limits } = core
  const { call } = exchange
  startDeadline(call, { defaultMs: limits.deadlineDefaultMs, maxMs: limits.deadlineMaxMs })
  await authenticate(core.gate, operation.access, call)
  const body = await readBody(exchange, limits, wire.bodyBytesMax(limits.requestBytesMax))
  const draft = await wire.decode(operation, exchange, body, limits.requestBytesMax)
  await assertValidInSlices(operation, draft, body)
  return operation.handle(draft.message, call)
}
