import type { StatusCode } from '../../base/index.ts'
import type { Exchange } from '../exchange.ts'
import { toFailure } from '../failure/funnel.ts'
import type { StreamOperation } from '../operation.ts'
import type { StreamWire } from '../wire/wire.ts'
import { admit } from './admit.ts'
import { readBody } from './body.ts'
import type { Core } from './core.ts'
import { startDeadline } from './deadline.ts'
import { finish, refuse } from './finish.ts'
import { refuseInvalidLater } from './inspect.ts'
import { takeStreamPlace } from './stream-place.ts'
import { cutSlowReader, writeFrame } from './write.ts'

/**
 * Serves one server stream: the stages of a unary call, then a message at a time, never faster than the client reads.
 * Never rejects.
 */
export async function serveStream(
  core: Core,
  operation: StreamOperation,
  wire: StreamWire,
  exchange: Exchange,
): Promise<void> {
  const { call, response } = exchange
  let outcome: StatusCode | 'OK' = 'OK'
  core.openStreams.add(call)
  try {
    await call.guard(runStream(core, operation, wire, exchange))
    wire.end(exchange, undefined)
  } catch (error) {
    if (response.headersSent) {
      const failure = toFailure(core, error, call, operation.path)
      wire.end(exchange, failure)
      outcome = failure.code
    } else outcome = refuse(core, operation.path, wire, exchange, error).code
  }
  core.openStreams.delete(call)
  cutSlowReader(exchange, core.limits.slowReaderMs)
  finish(core, operation.path, wire, exchange, outcome)
}

async function runStream(core: Core, operation: StreamOperation, wire: StreamWire, exchange: Exchange): Promise<void> {
  const { limits } = core
  const { call, response } = exchange
  startDeadline(call, { defaultMs: undefined, maxMs: undefined })
  await admit(core.gate, operation.access, call)
  takeStreamPlace(core, operation.access, call)
  const body = await readBody(exchange, limits, wire.bodyBytesMax(limits.requestBytesMax))
  const draft = await wire.decode(operation, exchange, body, limits.requestBytesMax)
  await refuseInvalidLater(operation, draft, body)
  for await (const result of operation.handle(draft.message, call)) {
    const frame = await wire.frame(operation, result)
    if (!response.headersSent) wire.open(exchange)
    await writeFrame(exchange, frame, limits.slowReaderMs)
  }
  if (!call.isOver && !response.headersSent) wire.open(exchange)
}
