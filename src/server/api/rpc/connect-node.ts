import type { Message } from '@bufbuild/protobuf'
import {
  Code,
  ConnectError,
  type ContextValues,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
  type MethodImpl,
} from '@connectrpc/connect'
import type { UniversalHandlerFn } from '@connectrpc/connect/protocol'
import { compressionBrotli, compressionGzip } from '@connectrpc/connect-node'
import { ACCEPTED_ENCODINGS, codingOf, decompress, Failure } from '../../../foundation/base/index.ts'
import { messageBytesMax } from '../access.ts'
import type { Exchange } from '../exchange.ts'
import type { ApiLimits } from '../limits.ts'
import { assertFewFields, toEncodable } from '../messages/binary.ts'
import { type DecodedRequest, JSON_WRITE_OPTIONS } from '../messages/codec.ts'
import { assertFewValues } from '../messages/json-text.ts'
import type { Operation, ResultInit } from '../operation.ts'
import { abortConnection } from '../pipeline/body.ts'
import { connectStatus, grpcCode, rpcDetails } from '../pipeline/errors.ts'
import type { BidiProtocol, UnaryProtocol } from '../pipeline/protocol.ts'
import { ConnectAnswer, type EncodedAnswer, failureOf } from './connect-answer.ts'
import { ENVELOPE_BYTES, envelope, messageOfQuery, openEnvelope } from './connect-json.ts'
import type { WireFormat } from './wire-format.ts'

/** Longest message of an error, and limit of its details, in trailers: some clients accept at most 8 KiB of them. */
const MESSAGE_LENGTH_MAX = 512
const DETAILS_BYTES_MAX = 4_096

/** What connect is called for: the call whose message it decodes and whose results it encodes, or an error that it encodes. */
const callKey = createContextKey<ConnectCall | undefined>(undefined, { description: 'call' })
const errorKey = createContextKey<ConnectError | undefined>(undefined, { description: 'error' })

/** Handlers of connect by the path of their operation. */
export type ConnectHandlers = ReadonlyMap<string, UniversalHandlerFn>

/**
 * Registers every operation on one `ConnectRouter`, which decodes and encodes gRPC, gRPC-Web and binary Connect, of unary calls
 * and streams. What it registers hands the decoded message to the pipeline and takes the results from there.
 */
export function createConnectHandlers(operations: Iterable<Operation>, limits: ApiLimits): ConnectHandlers {
  const router = createConnectRouter({
    acceptCompression: [compressionGzip, compressionBrotli],
    jsonOptions: { ...JSON_WRITE_OPTIONS, ignoreUnknownFields: false },
    binaryOptions: { readUnknownFields: false },
    requestGate({ values }) {
      const error = values.get(errorKey)
      if (error !== undefined) throw error
    },
  })
  for (const operation of operations)
    router.rpc(operation.method, implementationOf(operation), {
      readMaxBytes: messageBytesMax(operation.access, limits),
    })
  return new Map(router.handlers.map((handler) => [handler.requestPath, handler]))
}

function implementationOf({ kind, method }: Operation): MethodImpl<typeof method> {
  const implementation =
    kind === 'unary'
      ? (message: Message, context: HandlerContext) => callIn(context).result(message)
      : (messages: Message | AsyncIterable<Message>, context: HandlerContext) => callIn(context).results(messages)
  // The router knows the types of an operation only by its descriptor.
  return implementation as MethodImpl<typeof method>
}

function callIn({ values }: HandlerContext): ConnectCall {
  const call = values.get(callKey)
  if (call === undefined) throw new Error('a handler of connect was called without its call')
  return call
}

/** One call in one of the formats that connect serves. */
export class ConnectCall implements UnaryProtocol, BidiProtocol {
  readonly name: WireFormat['protocol']
  readonly #handler: UniversalHandlerFn
  readonly #format: WireFormat
  readonly #query: string | undefined
  readonly #received = Promise.withResolvers<Message | AsyncIterable<Message>>()
  #isReceived = false
  #answer: Promise<ConnectAnswer> | undefined
  /** Results that connect has not taken, then the end of the stream: `undefined`, or the error that ended it. */
  readonly #results: (ResultInit | ConnectError | undefined)[] = []
  #wake: (() => void) | undefined

  /** @param query of a GET, which has the message */
  constructor(handler: UniversalHandlerFn, format: WireFormat, query?: string) {
    this.#handler = handler
    this.#query = query
    this.#format = format
    this.name = format.protocol
  }

  bodyBytesMax(bytesMax: number): number {
    return this.#format.isEnveloped ? bytesMax + ENVELOPE_BYTES : bytesMax
  }

  /** Counts what the message holds before connect decodes it, which cannot be interrupted. */
  async decode({ input }: Operation, exchange: Exchange, body: Buffer, bytesMax: number): Promise<DecodedRequest> {
    const { isBinary, isEnveloped } = this.#format
    const payload = await this.#open(exchange, body, bytesMax)
    if (isBinary) assertFewFields(input, payload)
    else assertFewValues(payload)
    const message = await this.#start(oneChunk(isEnveloped ? envelope(0, payload) : payload), undefined)
    return { message: message as Message, findings: [] }
  }

  async decodeStream(exchange: Exchange): Promise<AsyncIterable<Message>> {
    const coding = codingOf(exchange.context.header(this.#format.encodingHeader))
    return withFailures((await this.#start(exchange.request, coding)) as AsyncIterable<Message>)
  }

  async sendResult({ output }: Operation, exchange: Exchange, result: ResultInit): Promise<void> {
    this.#put(toEncodable(output, result))
    this.#send(exchange, await (await this.#answered()).readWhole())
  }

  /** By a call of its own, since connect may have rejected or not yet received this one. */
  sendError(exchange: Exchange, failure: Failure): void {
    this.#put(this.#errorOf(failure))
    const values = createContextValues().set(errorKey, this.#errorOf(failure))
    this.#serve(values, oneChunk(Buffer.alloc(0)), undefined)
      .then((answer) => answer.readRest())
      .then((whole) => {
        const { response, context } = exchange
        if (context.isClientGone || response.headersSent) return
        this.#send(exchange, this.#format.isEnveloped ? whole : { ...whole, status: connectStatus(failure) })
      })
      .catch(() => abortConnection(exchange))
  }

  open({ response, context }: Exchange): void {
    response.writeHead(200, {
      ...context.responseHeaders,
      'content-type': this.#format.contentType,
      [this.#format.acceptHeader]: ACCEPTED_ENCODINGS,
    })
  }

  async frame({ output }: Operation, result: ResultInit): Promise<Uint8Array> {
    this.#put(toEncodable(output, result))
    return await (await this.#answered()).readMessage()
  }

  end(exchange: Exchange, failure: Failure | undefined): void {
    this.#put(failure && this.#errorOf(failure))
    this.#answered()
      .then((answer) => answer.readRest())
      .then((rest) => this.#end(exchange, rest))
      .catch(() => abortConnection(exchange))
  }

  /** The only result, for connect. */
  async result(message: Message): Promise<ResultInit> {
    for await (const result of this.results(message)) return result
    throw new ConnectError('the call has no result', Code.Internal)
  }

  /** The results, for connect. */
  async *results(received: Message | AsyncIterable<Message>): AsyncGenerator<ResultInit> {
    this.#isReceived = true
    this.#received.resolve(received)
    for (;;) {
      while (this.#results.length === 0)
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
      const next = this.#results.shift()
      if (next === undefined) return
      if (next instanceof ConnectError) throw next
      yield next
    }
  }

  #put(result: ResultInit | ConnectError | undefined): void {
    this.#results.push(result)
    this.#wake?.()
  }

  /** What connect decodes. @throws Failure when it rejects the request instead */
  async #start(body: AsyncIterable<Uint8Array>, coding: string | undefined): Promise<Message | AsyncIterable<Message>> {
    const answer = this.#serve(createContextValues().set(callKey, this), body, coding)
    this.#answer = answer
    const rejected = answer.then(
      async (unasked) => {
        if (this.#isReceived) return await this.#received.promise
        throw await unasked.rejection()
      },
      // Connect fails to write an error that quotes half of a surrogate pair.
      (cause) => Promise.reject(new Failure('MALFORMED_BODY', 'the message cannot be read', { cause })),
    )
    return await Promise.race([this.#received.promise, rejected])
  }

  /** The message of the request without its envelope or query, decompressed. */
  #open({ context }: Exchange, body: Buffer, bytesMax: number): Buffer | Promise<Buffer> {
    const encoding = context.header(this.#format.encodingHeader)
    if (this.#query !== undefined) return messageOfQuery(this.#query, bytesMax)
    return this.#format.isEnveloped
      ? openEnvelope(body, encoding, bytesMax)
      : decompress(body, codingOf(encoding), bytesMax)
  }

  /** Deadline, authentication and compression of answers are not connect's concern: their headers are left out. */
  async #serve(
    contextValues: ContextValues,
    body: AsyncIterable<Uint8Array>,
    coding: string | undefined,
  ): Promise<ConnectAnswer> {
    const header = new Headers({ 'content-type': this.#format.contentType })
    if (coding !== undefined) header.set(this.#format.encodingHeader, coding)
    const request = { httpVersion: '2.0', method: 'POST', url: 'http://localhost/', header, body, contextValues }
    const answer = await this.#handler({ ...request, signal: new AbortController().signal })
    return new ConnectAnswer(this.#format, answer)
  }

  #answered(): Promise<ConnectAnswer> {
    if (this.#answer === undefined) throw new Error('a call is answered after it was received')
    return this.#answer
  }

  #send(exchange: Exchange, { status, contentType, bytes, trailers }: EncodedAnswer): void {
    const { request, response, context } = exchange
    if (context.isClientGone) return
    context.answerBytes = bytes.length
    if (this.#format.isEnveloped) this.open(exchange)
    else {
      const head = { 'content-type': contentType, 'content-length': bytes.length }
      response.writeHead(status, { ...context.responseHeaders, ...head })
    }
    if (trailers !== undefined) response.addTrailers(trailers)
    response.end(request.method === 'HEAD' ? undefined : bytes)
  }

  #end({ response, context }: Exchange, { bytes, trailers }: EncodedAnswer): void {
    if (context.isClientGone) return
    if (trailers !== undefined) response.addTrailers(trailers)
    response.end(bytes)
  }

  #errorOf(failure: Failure): ConnectError {
    const isShort = this.#format.protocol !== 'connect'
    const details = rpcDetails(failure, isShort ? DETAILS_BYTES_MAX : undefined)
    const message = isShort ? failure.publicMessage.slice(0, MESSAGE_LENGTH_MAX) : failure.publicMessage
    return new ConnectError(
      message.toWellFormed(),
      grpcCode(failure),
      undefined,
      details.map(({ desc, message: value }) => ({ desc, value })),
    )
  }
}

async function* oneChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  if (bytes.length > 0) yield bytes
}

/** Messages whose bytes connect may reject. */
async function* withFailures(messages: AsyncIterable<Message>): AsyncGenerator<Message> {
  try {
    yield* messages
  } catch (error) {
    throw error instanceof ConnectError ? failureOf(error) : error
  }
}
