import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { Message } from '@bufbuild/protobuf'
import {
  ConnectError,
  type ConnectRouter,
  type ContextValues,
  createContextKey,
  createContextValues,
} from '@connectrpc/connect'
import { connectNodeAdapter } from '@connectrpc/connect-node'
import type { Failure } from '../base/index.ts'
import type { Exchange } from './exchange.ts'
import type { DuplexOperation, ResultInit } from './operation.ts'
import { authenticate } from './pipeline/authenticate.ts'
import { startDeadline } from './pipeline/deadline.ts'
import { failureDetails, failureHeaders, grpcCode, toFailure } from './pipeline/errors.ts'
import { acquireStreamSlot, type ServerContext } from './pipeline/server-context.ts'
import { assertValid } from './pipeline/validate.ts'
import type { RequestContext } from './request-context.ts'

/** A request as one of Node's two HTTP servers hands it out. */
export type NodeRequest = IncomingMessage | Http2ServerRequest
/** The response that goes with a `NodeRequest`. */
export type NodeResponse = ServerResponse | Http2ServerResponse

/** Serves an interleaved stream whose exchange was opened for these two. */
export type ServeDuplex = (exchange: Exchange, request: NodeRequest, response: NodeResponse) => void

const EXCHANGE = createContextKey<Exchange | undefined>(undefined)

/**
 * Streams in both directions, which connect-node speaks for us in all three protocols. Gate, deadline, validation and
 * error details are the pipeline's own.
 */
export function createDuplexServer(core: ServerContext, operations: readonly DuplexOperation[]): ServeDuplex {
  const exchanges = new WeakMap<NodeRequest, Exchange>()
  const serve = connectNodeAdapter({
    readMaxBytes: core.limits.requestBytesMax,
    jsonOptions: { useProtoFieldName: true, alwaysEmitImplicit: true, ignoreUnknownFields: false },
    contextValues: (request) => createContextValues().set(EXCHANGE, exchanges.get(request)),
    routes: (router) => {
      for (const operation of operations) addRoute(core, router, operation)
    },
  })
  return (exchange, request, response) => {
    exchanges.set(request, exchange)
    // Errors of connect-node carry their headers in trailers; these must be in the head (CORS).
    for (const [name, value] of Object.entries(exchange.call.responseHeaders)) response.setHeader(name, value)
    serve(request, response)
  }
}

function addRoute(core: ServerContext, router: ConnectRouter, operation: DuplexOperation): void {
  router.rpc(
    operation.method,
    (requests, { values, responseHeader }) => {
      const { call } = exchangeOf(values)
      return runDuplex(core, operation, call, requests, responseHeader)
    },
    { requestGate: ({ values }) => openGate(core, operation, exchangeOf(values).call) },
  )
}

/** Runs before connect-node reads a byte of the request. */
async function openGate(core: ServerContext, operation: DuplexOperation, call: RequestContext): Promise<void> {
  try {
    startDeadline(call, { defaultMs: undefined, maxMs: undefined })
    await authenticate(core.gate, operation.access, call)
    acquireStreamSlot(core, operation.access, call)
  } catch (error) {
    throw close(core, operation, call, error)
  }
}

/**
 * The answers of the operation until it ends or the call is interrupted.
 *
 * @param responseHeader sent with the first answer, so that the handler may add to it until then
 */
async function* runDuplex(
  core: ServerContext,
  operation: DuplexOperation,
  call: RequestContext,
  requests: AsyncIterable<Message>,
  responseHeader: Headers,
): AsyncGenerator<ResultInit> {
  core.openStreams.add(call)
  try {
    const answers = operation.handle(validated(operation, requests), call)[Symbol.asyncIterator]()
    for (let isFirst = true; ; isFirst = false) {
      const next = await call.raceInterrupt(answers.next())
      if (isFirst) copyHeaders(call, responseHeader)
      if (next.done === true) break
      yield next.value
    }
    close(core, operation, call, undefined)
  } catch (error) {
    throw close(core, operation, call, error)
  } finally {
    core.openStreams.delete(call)
  }
}

async function* validated(operation: DuplexOperation, requests: AsyncIterable<Message>): AsyncGenerator<Message> {
  for await (const message of requests) {
    assertValid(operation, { message, findings: [] })
    yield message
  }
}

/** Closes the call and turns what ended it into the error connect-node sends. */
function close(core: ServerContext, operation: DuplexOperation, call: RequestContext, error: unknown): unknown {
  const failure = error === undefined ? undefined : toFailure(core, error, call, operation.path)
  call.close()
  const durationMs = performance.now() - call.startedMs
  core.observe?.({ operation: operation.path, wire: 'grpc', outcome: failure?.code ?? 'OK', durationMs })
  // An error of connect-node itself, such as a broken envelope, already says what it is.
  return failure === undefined || error instanceof ConnectError ? error : connectError(failure, call)
}

function connectError(failure: Failure, call: RequestContext): ConnectError {
  const details = failureDetails(failure).map(({ desc, message }) => ({ desc, value: message }))
  const headers = { ...call.responseHeaders, ...failureHeaders(failure) }
  return new ConnectError(failure.publicMessage, grpcCode(failure), headers, details, failure)
}

function exchangeOf(values: ContextValues): Exchange {
  const exchange = values.get(EXCHANGE)
  if (exchange === undefined) throw new Error('the exchange was not opened')
  return exchange
}

function copyHeaders({ responseHeaders: answerHeaders }: RequestContext, target: Headers): void {
  for (const [name, value] of Object.entries(answerHeaders)) target.set(name, value)
}
