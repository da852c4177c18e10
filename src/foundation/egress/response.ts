import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { Failure } from '../base/errors.ts'
import type { HttpHeaders } from './headers.ts'
import { awaitConnection, type RequestTimings } from './timings.ts'

/** A whole response, of any status. */
export interface EgressResponse {
  readonly status: number
  /** Names in lower case, repeated ones joined by a comma; without `set-cookie`, and without `content-encoding` once decoded. */
  readonly headers: HttpHeaders
  /** Cookies that it sets, by name; absent: none. */
  readonly cookies?: Readonly<Record<string, string>>
  /** Content-decoded. */
  readonly body: Uint8Array
  /** URL of the response, after redirects. */
  readonly url: string
}

/** A response whose body is streamed exactly as sent: not content-decoded, `content-encoding` kept. */
export interface EgressStreamResponse {
  readonly status: number
  readonly headers: HttpHeaders
  /** Read it to the end, leave the loop, or destroy it; each releases the connection. Fails with the failures of `send`. */
  readonly body: Readable
}

/** Status and headers as undici parsed them. */
export interface ResponseHead {
  readonly status: number
  readonly headers: IncomingHttpHeaders
}

/** Receives the response; `end` or `fail` is the last call. */
export interface ResponseListener {
  head(head: ResponseHead): void
  /** @returns false to pause until `resume` */
  chunk(chunk: Buffer): boolean
  end(): void
  fail(error: unknown): void
}

/** Limits of one request and its response. */
export interface ResponseLimits {
  readonly host: string
  readonly signal: AbortSignal | undefined
  /** When the request began to wait for a connection, on the scale of `performance.now()`. */
  readonly startedAt: number
  /** On the same scale. */
  readonly deadlineAt: number
  /** The same from the beginning of the call, for the message. */
  readonly timeoutMs: number
  /** Idle timeout of both directions. */
  readonly idleMs?: number | undefined
  /** Size limit of the body as sent. */
  readonly bytesMax: number
  /** See `EgressRequest`. */
  readonly reserveBytes?: ((bytes: number) => Failure | undefined) | undefined
  /** To be filled in. */
  readonly timings?: RequestTimings | undefined
}

/** The connection was lost before a byte of the response arrived. */
export class ConnectionLostError extends Error {
  constructor(cause: unknown) {
    super('the connection was lost before an answer', { cause })
    this.name = 'UnansweredError'
  }
}

/**
 * undici's handler of one request: enforces size limit, deadline, idle timeout and abort signal.
 *
 * It settles once. An abort before undici has assigned a connection settles immediately, and the request is cancelled when
 * its turn comes, so that nothing is sent for a caller who has disconnected.
 */
export class ResponseHandler implements Dispatcher.DispatchHandler {
  readonly #limits: ResponseLimits
  readonly #sink: ResponseListener
  #timer: NodeJS.Timeout | undefined
  #movedAt = performance.now()
  #controller: Dispatcher.DispatchController | undefined
  #outcome: { readonly error: unknown } | undefined
  #answered = false
  #bytes = 0

  constructor(limits: ResponseLimits, sink: ResponseListener) {
    this.#limits = limits
    this.#sink = sink
    this.#watch()
    if (limits.signal?.aborted) this.abort(cancelled())
    else limits.signal?.addEventListener('abort', this.#onSignal)
  }

  /** Ends the request with the error and closes its connection. Does nothing once it has ended. */
  abort(error: Error): void {
    if (this.#outcome) return
    this.#settle(error)
    this.#controller?.abort(error)
    this.#sink.fail(error)
  }

  /** Whether the request has ended, in any way. */
  get hasEnded(): boolean {
    return this.#outcome !== undefined
  }

  /** Resumes the body after `chunk` returned false. */
  resume(): void {
    this.#controller?.resume()
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    this.#movedAt = performance.now()
    if (this.#outcome) controller.abort(asError(this.#outcome.error))
    else awaitConnection(this.#limits.timings)
  }

  onBodySent(): void {
    this.#movedAt = performance.now()
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200 || this.#outcome) return
    this.#answered = true
    this.#movedAt = performance.now()
    const { timings, startedAt } = this.#limits
    if (timings !== undefined) timings.firstByteMs = this.#movedAt - startedAt
    this.#sink.head({ status, headers })
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#outcome) return
    this.#movedAt = performance.now()
    this.#bytes += chunk.length
    const failure = this.#findSizeFailure(chunk)
    if (failure !== undefined) this.abort(failure)
    else if (!this.#sink.chunk(chunk)) controller.pause()
  }

  onResponseEnd(): void {
    if (this.#outcome) return
    this.#settle(undefined)
    this.#sink.end()
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.#outcome) return
    this.#settle(error)
    const lost = this.#controller !== undefined && !this.#answered && !(error instanceof Failure)
    this.#sink.fail(lost ? new ConnectionLostError(error) : error)
  }

  #findSizeFailure(chunk: Buffer): Failure | undefined {
    const { host, bytesMax, reserveBytes } = this.#limits
    if (this.#bytes > bytesMax) return responseTooLarge(host, bytesMax)
    const becomesLarge = this.#bytes > LARGE_RESPONSE_BYTES && this.#bytes - chunk.length <= LARGE_RESPONSE_BYTES
    return becomesLarge ? reserveBytes?.(bytesMax) : undefined
  }

  readonly #onSignal = () => this.abort(cancelled())

  /** One timer for deadline and idle timeout: re-armed when bytes have moved since it was set. */
  #watch(): void {
    const { deadlineAt, idleMs = Number.POSITIVE_INFINITY } = this.#limits
    const idleAt = this.#movedAt + idleMs
    const remainingMs = Math.min(deadlineAt, idleAt) - performance.now()
    if (remainingMs <= 0) this.abort(deadlineExceeded(this.#limits, this.#answered, idleAt < deadlineAt))
    else this.#timer = setTimeout(() => this.#watch(), remainingMs)
  }

  #settle(error: unknown): void {
    this.#outcome = { error }
    clearTimeout(this.#timer)
    this.#limits.signal?.removeEventListener('abort', this.#onSignal)
  }
}

/** Up to this size a body needs no reservation: what works at once is bounded by slots. */
export const LARGE_RESPONSE_BYTES = 16 * 1024 * 1024

/** The body of a response is larger than its request allows. */
export class ResponseTooLargeError extends Error {
  readonly bytesMax: number

  constructor(bytesMax: number, cause?: unknown) {
    super(`larger than ${bytesMax} bytes`, { cause })
    this.name = 'ResponseTooLargeError'
    this.bytesMax = bytesMax
  }
}

/** The failure of a response that is too large; another attempt would have the same. */
export function responseTooLarge(host: string, bytesMax: number, cause?: unknown): Failure {
  return new Failure('UPSTREAM_INVALID_RESPONSE', `the answer of "${host}" is larger than ${bytesMax} bytes`, {
    metadata: { host },
    isPermanent: true,
    cause: new ResponseTooLargeError(bytesMax, cause),
  })
}

/** The deadline of a call that still waited for a connection. */
export function noConnectionInTime({ host, timeoutMs }: Pick<ResponseLimits, 'host' | 'timeoutMs'>): Failure {
  const message = `no connection to "${host}" was free within ${timeoutMs / 1000} s: this environment uses its share of them`
  return new Failure('DEADLINE_EXCEEDED', message, { metadata: { host } })
}

function deadlineExceeded({ host, timeoutMs, idleMs }: ResponseLimits, isAnswering: boolean, isIdle: boolean): Failure {
  const seconds = ((isIdle ? idleMs : undefined) ?? timeoutMs) / 1000
  const silence = isIdle ? `"${host}" went silent for ${seconds} s` : `"${host}" did not answer within ${seconds} s`
  const message = isAnswering && !isIdle ? `"${host}" did not end its answer within ${seconds} s` : silence
  return new Failure('DEADLINE_EXCEEDED', message, { metadata: { host } })
}

export function cancelled(): Failure {
  return new Failure('CANCELLED', 'the request was cancelled')
}

function asError(value: unknown): Error {
  return value instanceof Error ? value : new Error('the request has ended')
}
