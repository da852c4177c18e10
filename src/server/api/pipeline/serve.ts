import { Failure, type StatusCode } from '../../../foundation/base/index.ts'
import { readingOf } from '../access.ts'
import type { Exchange } from '../exchange.ts'
import type {
  BidiStreamingOperation,
  Operation,
  ResultInit,
  ServerStreamingOperation,
  UnaryOperation,
} from '../operation.ts'
import { countUnsent, readCallerBody } from './admission.ts'
import { chargeAnswer } from './authenticate.ts'
import type { BidiProtocol, RequestProtocol, StreamProtocol, UnaryProtocol } from './protocol.ts'
import { completeExchange, enforceWriteTimeout, sendError, writeFrame } from './respond.ts'
import { type MessageSource, runBidiStream, runOperation } from './run-operation.ts'

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

/** Serves one server stream. Never rejects. */
export function serveStream(
  exchange: Exchange,
  operation: ServerStreamingOperation,
  protocol: StreamProtocol,
): Promise<void> {
  const source = sourceOf(exchange, operation, protocol)
  return serveResults(exchange, operation, protocol, (send) =>
    runOperation(exchange, operation, source, (message) => send(operation.handle(message, exchange.context))),
  )
}

/** Serves one stream in both directions. Never rejects. */
export function serveBidiStream(
  exchange: Exchange,
  operation: BidiStreamingOperation,
  protocol: BidiProtocol,
): Promise<void> {
  const receive = () => protocol.decodeStream(exchange)
  return serveResults(exchange, operation, protocol, (send) =>
    runBidiStream(exchange, operation, receive, (messages) => send(operation.handle(messages, exchange.context))),
  )
}

/** Sends results one at a time, never faster than the client reads. */
async function serveResults(
  exchange: Exchange,
  operation: Operation,
  protocol: StreamProtocol,
  run: (send: (results: AsyncIterable<ResultInit>) => Promise<void>) => Promise<void>,
): Promise<void> {
  const { server, context, response } = exchange
  openCall(exchange, operation, protocol)
  server.openStreams.add(context)
  const send = async (results: AsyncIterable<ResultInit>) => {
    for await (const result of results) {
      const frame = await protocol.frame(operation, result)
      // Thrown into the loop over the handler, which closes the handler too.
      if (context.isDone) throw new Failure('CANCELLED', 'the request is done')
      if (!response.headersSent) protocol.open(exchange)
      await writeFrame(exchange, frame)
    }
  }
  await serve(
    exchange,
    () => run(send),
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
