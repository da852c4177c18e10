import { Readable, Writable } from 'node:stream'
import { Failure, type JsonObject } from '../../base/index.ts'
import { callerOf } from '../caller.ts'
import type { ApiRequest, ApiResponse, Exchange } from '../exchange.ts'
import { encodeJson } from '../messages/codec.ts'
import type { UnaryOperation } from '../operation.ts'
import type { UnaryProtocol } from '../pipeline/protocol.ts'
import { serveUnary } from '../pipeline/serve-unary.ts'
import { decodePayload } from '../protocols/framing.ts'
import { RequestContext } from '../request-context.ts'
import { maskSecrets } from './secrets.ts'

/**
 * Calls an operation inside an authenticated request, through the steps of every unary call: access rule, limits of the body,
 * decoding, validation, handler, mapping of errors, metrics. The caller and the id of the request are those of `outer`, whose
 * end interrupts the call.
 *
 * @param args the request message as JSON
 * @returns the answer as JSON without secrets, or why there is none
 */
export async function callOperation(
  outer: Exchange,
  operation: UnaryOperation,
  args: JsonObject,
  signal: AbortSignal,
): Promise<JsonObject | Failure> {
  const body = Buffer.from(JSON.stringify(args))
  const request = innerRequest(outer, body)
  const context = new RequestContext(request)
  context.setCaller(callerOf(outer.context), outer.context.token)
  context.slot = outer.context.slot
  const ended = AbortSignal.any([signal, outer.context.signal])
  const onEnd = () =>
    context.interrupt(
      ended.reason instanceof Failure ? ended.reason : new Failure('CANCELLED', 'the call was cancelled'),
    )
  ended.addEventListener('abort', onEnd, { once: true })
  if (ended.aborted) onEnd()
  const { protocol, answer } = collectAnswer()
  const { server, operationPath } = outer
  await serveUnary({ server, request, response: discard(), context, operationPath, protocol }, operation, protocol)
  ended.removeEventListener('abort', onEnd)
  return await answer
}

/** A protocol that answers in the process. */
function collectAnswer(): { readonly protocol: UnaryProtocol; readonly answer: Promise<JsonObject | Failure> } {
  const { promise, resolve } = Promise.withResolvers<JsonObject | Failure>()
  const protocol: UnaryProtocol = {
    name: 'mcp',
    bodyBytesMax: (bytesMax) => bytesMax,
    decode: (operation, _exchange, body) => decodePayload(operation, 'json', body),
    sendResult: async ({ output }, _exchange, result) => resolve(maskSecrets(output, encodeJson(output, result))),
    sendError: (_exchange, failure) => resolve(failure),
  }
  return { protocol, answer: promise }
}

function innerRequest({ request: { socket }, context: { requestId } }: Exchange, body: Buffer): ApiRequest {
  const headers = {
    'x-request-id': requestId,
    'content-type': 'application/json',
    'content-length': String(body.length),
  }
  const head = { method: 'POST', headers, rawHeaders: [], httpVersionMajor: 1, complete: false, socket }
  return Object.assign(Readable.from([body]), head)
}

/** A response of which nothing is sent. */
function discard(): ApiResponse {
  return Object.assign(new Writable({ write: (_chunk, _encoding, written) => written() }), {
    headersSent: false,
    setHeader: () => undefined,
    writeHead: () => undefined,
    writeContinue: () => undefined,
    addTrailers: () => undefined,
  })
}
