import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { Message } from '@bufbuild/protobuf'
import {
  Code,
  ConnectError,
  type ContextValues,
  createContextKey,
  type HandlerContext,
  type Interceptor,
} from '@connectrpc/connect'
import { connectNodeAdapter } from '@connectrpc/connect-node'
import type { StatusCode } from '../base/index.ts'
import { messageBytesMax } from './access.ts'
import type { Exchange } from './exchange.ts'
import { JSON_WRITE_OPTIONS } from './messages/codec.ts'
import type { Operation, ServiceDefinition } from './operation.ts'
import { acquireStreamSlot, inSlot } from './pipeline/admission.ts'
import { authenticate } from './pipeline/authenticate.ts'
import { startDeadline } from './pipeline/deadline.ts'
import { failureDetails, failureHeaders, grpcCode, toFailure } from './pipeline/errors.ts'
import { completeExchange } from './pipeline/respond.ts'
import type { ServerContext } from './pipeline/server-context.ts'
import { assertValid } from './pipeline/validate.ts'
import type { RequestContext } from './request-context.ts'

/** A request as one of Node's two HTTP servers hands it out. */
export type NodeRequest = IncomingMessage | Http2ServerRequest
/** The response that goes with a `NodeRequest`. */
export type NodeResponse = ServerResponse | Http2ServerResponse

/** Serves an RPC whose exchange was opened for these two. */
export type ServeConnect = (exchange: Exchange, request: NodeRequest, response: NodeResponse) => void

/** Context value of the calls that connect-node serves. */
const exchangeKey = createContextKey<Exchange | undefined>(undefined, { description: 'exchange' })

/**
 * Serves the services through connect-node, on one `ConnectRouter`: streams in both directions, and any RPC when the
 * protocols of this server are left out. Authentication, deadline, validation and error details are those of all
 * requests.
 */
export function createConnectServer(
  { limits }: ServerContext,
  services: readonly ServiceDefinition[],
  operations: ReadonlyMap<string, Operation>,
): ServeConnect {
  const exchanges = new WeakMap<NodeRequest, Exchange>()
  const serveBelow = (readMaxBytes: number) =>
    connectNodeAdapter({
      readMaxBytes,
      jsonOptions: { ...JSON_WRITE_OPTIONS, ignoreUnknownFields: false },
      contextValues: (request) => valuesOf(exchanges.get(request)),
      // Runs before connect-node reads a byte of the request message.
      requestGate: (context) => startCall(context, operations),
      interceptors: [serveCall(operations)],
      routes(router) {
        for (const { desc, implementation } of services) router.service(desc, implementation)
      },
    })
  const serve = serveBelow(limits.requestBytesMax)
  const servePublic = serveBelow(messageBytesMax('public', limits))
  return (exchange, request, response) => {
    exchanges.set(request, exchange)
    // Errors of connect-node carry their headers in trailers; these must be in the head (CORS).
    for (const [name, value] of Object.entries(exchange.context.responseHeaders)) response.setHeader(name, value)
    const [path = ''] = (request.url ?? '').split('?')
    if (operations.get(path)?.access === 'public') servePublic(request, response)
    else serve(request, response)
  }
}

function valuesOf(exchange: Exchange | undefined): ContextValues {
  if (exchange === undefined) throw new Error('the exchange was not opened')
  return exchange.context.values.set(exchangeKey, exchange)
}

function exchangeOf(values: ContextValues): Exchange {
  const exchange = values.get(exchangeKey)
  if (exchange === undefined) throw new Error('the exchange was not opened')
  return exchange
}

function operationOf(
  operations: ReadonlyMap<string, Operation>,
  { service, method }: Pick<HandlerContext, 'service' | 'method'>,
): Operation {
  const path = `/${service.typeName}/${method.name}`
  const operation = operations.get(path)
  if (operation === undefined) throw new Error(`${path} is no operation`)
  return operation
}

async function startCall(handler: HandlerContext, operations: ReadonlyMap<string, Operation>): Promise<void> {
  const exchange = exchangeOf(handler.values)
  const operation = operationOf(operations, handler)
  const { context, server, response } = exchange
  const isUnary = operation.kind === 'unary'
  const { deadlineDefaultMs, deadlineMaxMs } = server.limits
  exchange.operationPath = operation.path
  // A request that connect-node itself rejects ends here and nowhere else.
  response.once('close', () => {
    if (!context.isDone) completeExchange(exchange, 'INVALID_ARGUMENT')
  })
  try {
    startDeadline(context, isUnary ? { defaultMs: deadlineDefaultMs, maxMs: deadlineMaxMs } : {})
    await authenticate(exchange, operation)
    if (!isUnary) acquireStreamSlot(exchange, operation.access)
  } catch (error) {
    throw endCall(exchange, error)
  }
}

/** Validates what a call receives, ends it when its request is interrupted, and adds the response headers. */
function serveCall(operations: ReadonlyMap<string, Operation>): Interceptor {
  return (next) => async (request) => {
    const exchange = exchangeOf(request.contextValues)
    const operation = operationOf(operations, request)
    const { context, server } = exchange
    try {
      if (!request.stream) {
        assertValid(operation, { message: request.message, findings: [] })
        const response = await context.raceInterrupt(() =>
          inSlot(exchange, () => next({ ...request, signal: context.signal })),
        )
        copyHeaders(context, response.header)
        completeExchange(exchange, 'OK')
        return response
      }
      server.openStreams.add(context)
      context.onClose(() => server.openStreams.delete(context))
      const messages = validated(operation, request.message)
      const response = await next({ ...request, message: messages, signal: context.signal })
      if (!response.stream) return response
      return { ...response, message: untilInterrupted(exchange, response.message, response.header) }
    } catch (error) {
      throw endCall(exchange, error)
    }
  }
}

async function* validated(operation: Operation, requests: AsyncIterable<Message>): AsyncGenerator<Message> {
  for await (const message of requests) {
    assertValid(operation, { message, findings: [] })
    yield message
  }
}

/**
 * The messages of a stream until it ends or its request is interrupted.
 *
 * @param responseHeader sent with the first message, so that the handler may add to it until then
 */
async function* untilInterrupted(
  exchange: Exchange,
  messages: AsyncIterable<Message>,
  responseHeader: Headers,
): AsyncGenerator<Message> {
  const { context } = exchange
  try {
    const answers = messages[Symbol.asyncIterator]()
    for (let isFirst = true; ; isFirst = false) {
      const next = await context.raceInterrupt(() => answers.next())
      if (isFirst) copyHeaders(context, responseHeader)
      if (next.done === true) break
      yield next.value
    }
    completeExchange(exchange, 'OK')
  } catch (error) {
    throw endCall(exchange, error)
  }
}

/** Completes the exchange and returns the error that connect-node is to send. */
function endCall(exchange: Exchange, error: unknown): ConnectError {
  // An error of connect-node, such as one about framing, says already what is wrong.
  if (error instanceof ConnectError) {
    completeExchange(exchange, codeOf(error))
    return error
  }
  const failure = toFailure(exchange, error)
  completeExchange(exchange, failure.code)
  const details = failureDetails(failure).map(({ desc, message }) => ({ desc, value: message }))
  const headers = { ...exchange.context.responseHeaders, ...failureHeaders(failure) }
  return new ConnectError(failure.publicMessage, grpcCode(failure), headers, details, failure)
}

/** The code of connect-node's own errors, which are about requests that break the protocol. */
function codeOf({ code }: ConnectError): StatusCode {
  if (code === Code.Canceled) return 'CANCELLED'
  if (code === Code.DeadlineExceeded) return 'DEADLINE_EXCEEDED'
  if (code === Code.ResourceExhausted) return 'RESOURCE_EXHAUSTED'
  return code === Code.Unimplemented ? 'UNIMPLEMENTED' : 'INVALID_ARGUMENT'
}

function copyHeaders({ responseHeaders }: RequestContext, target: Headers): void {
  for (const [name, value] of Object.entries(responseHeaders)) target.set(name, value)
}
