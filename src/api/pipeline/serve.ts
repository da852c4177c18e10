import type { StatusCode } from '../../base/index.ts'
import { readingOf } from '../access.ts'
import type { Exchange } from '../exchange.ts'
import type { Operation, ServerStreamingOperation, UnaryOperation } from '../operation.ts'
import { countUnsent, readCallerBody } from './admission.ts'
import { chargeAnswer } from './authenticate.ts'
import type { RequestProtocol, StreamProtocol, UnaryProtocol } from './protocol.ts'
import { completeExchange, enforceWriteTimeout, sendError, writeFrame } from './respond.ts'
import { type MessageSource, runOperation } from './run-operation.ts'

/** A response that leaves more than this unsent gets a write timeout; below it, waiting for the client costs next to nothing. */
const LARGE_BACKLOG_BYTES = 64 * 1024

/**
 * Serves one HTTP request: runs it, sends what comes of it or its error, reports the outcome. Never rejects.
 *
 * @param run passes the gates of `runRequest`
 */
export async function serve<Result>(
  exchange: Exchange,
  run: () => Promise<Result>,
  send: (result: Result) => Promise<void>,
): Promise<void> {
  let outcome: StatusCode | 'OK' = 'OK'
  try {
    await send(await run())
    countUnsent(exchange)
  } catch (error) {
    outcome = sendError(exchange, error).code
  }
  completeExchange(exchange, outcome)
}

/** Serves one unary call. Never rejects. */
export function serveUnary(exchange: Exchange, operation: UnaryOperation, protocol: UnaryProtocol): Promise<void> {
  const { context, response } = exchange
  openCall(exchange, operation, protocol)
  const source = sourceOf(exchange, operation, protocol)
  return serve(
    exchange,
    () => runOperation(exchange, operation, source, (message) => operation.handle(message, context)),
    async (result) => {
      await protocol.sendResult(operation, exchange, result)
      if (response.writableLength > LARGE_BACKLOG_BYTES) enforceWriteTimeout(exchange)
      chargeAnswer(exchange, context.answerBytes)
    },
  )
}

/** Serves one server stream: one message at a time, never faster than the client reads. Never rejects. */
export async function serveStream(
  exchange: Exchange,
  operation: ServerStreamingOperation,
  protocol: StreamProtocol,
): Promise<void> {
  const { server, context, response } = exchange
  openCall(exchange, operation, protocol)
  server.openStreams.add(context)
  const source = sourceOf(exchange, operation, protocol)
  await serve(
    exchange,
    () =>
      runOperation(exchange, operation, source, async (message) => {
        for await (const result of operation.handle(message, context)) {
          const frame = await protocol.frame(operation, result)
          if (!response.headersSent) protocol.open(exchange)
          await writeFrame(exchange, frame)
        }
      }),
    async () => {
      if (!response.headersSent) protocol.open(exchange)
      protocol.end(exchange, undefined)
    },
  )
  server.openStreams.delete(context)
  enforceWriteTimeout(exchange)
}

function openCall(exchange: Exchange, operation: Operation, protocol: RequestProtocol): void {
  exchange.operationPath = operation.path
  exchange.readsBody = readingOf(operation.access)
  exchange.protocol = protocol
  exchange.context.setMethod(operation.method, protocol.name)
}

function sourceOf(exchange: Exchange, operation: Operation, protocol: RequestProtocol): MessageSource {
  return {
    receive: (bytesMax) => readCallerBody(exchange, protocol.bodyBytesMax(bytesMax)),
    decode: (body, bytesMax) => protocol.decode(operation, exchange, body, bytesMax),
  }
}
