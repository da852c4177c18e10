import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import { Failure } from '../base/index.ts'

/** Status and headers as undici parsed them. */
export interface ResponseHead {
  readonly status: number
  readonly headers: IncomingHttpHeaders
}

/** Where an answer goes; after `end` or `fail` nothing more comes. */
export interface ResponseListener {
  head(head: ResponseHead): void
  /** @returns false to pause until `resume` */
  chunk(chunk: Buffer): boolean
  end(): void
  fail(error: unknown): void
}

/** What bounds an exchange. */
export interface ResponseLimits {
  readonly host: string
  readonly signal: AbortSignal | undefined
  /** On the scale of `performance.now()`. */
  readonly deadlineAt: number
  /** How long that is after the beginning, for the message. */
  readonly timeoutMs: number
  /** How long nothing may move in either direction. */
  readonly idleMs?: number | undefined
  /** Of the body as sent. */
  readonly bytesMax: number
}

/** The connection was lost before anything of the answer arrived. */
export class ConnectionLostError extends Error {
  constructor(cause: unknown) {
    super('the connection was lost before an answer', { cause })
    this.name = 'UnansweredError'
  }
}

/**
 * One request and its answer: counts bytes, keeps the deadline, watches the signal.
 *
 * It settles once. Aborting before undici has assigned a connection settles at once and cancels the request when its
 * turn comes, so that nothing is sent for a caller who has gone.
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

  /** Ends the exchange with the error; the connection is closed, not reused. Nothing happens once it has ended. */
  abort(error: Error): void {
    if (this.#outcome) return
    this.#settle(error)
    this.#controller?.abort(error)
    this.#sink.fail(error)
  }

  /** Lets the body flow again after `chunk` returned false. */
  resume(): void {
    this.#controller?.resume()
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    this.#movedAt = performance.now()
    if (this.#outcome) controller.abort(asError(this.#outcome.error))
  }

  onBodySent(): void {
    this.#movedAt = performance.now()
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200 || this.#outcome) return
    this.#answered = true
    this.#movedAt = performance.now()
    this.#sink.head({ status, headers })
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#outcome) return
    this.#movedAt = performance.now()
    this.#bytes += chunk.length
    if (this.#bytes > this.#limits.bytesMax) this.abort(responseTooLarge(this.#limits))
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

  readonly #onSignal = () => this.abort(cancelled())

  /** Sleeps until the exchange could be over time, looks, and sleeps again when bytes have moved meanwhile. */
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

/** The answer's body is larger than the caller takes. */
function responseTooLarge(limits: Pick<ResponseLimits, 'host' | 'bytesMax'>): Failure {
  const message = `the answer of "${limits.host}" is larger than ${limits.bytesMax} bytes`
  return new Failure('UPSTREAM_INVALID_RESPONSE', message, { metadata: { host: limits.host } })
}

function deadlineExceeded({ host, timeoutMs, idleMs }: ResponseLimits, isAnswering: boolean, isIdle: boolean): Failure {
  const seconds = ((isIdle ? idleMs : undefined) ?? timeoutMs) / 1000
  const silence = isIdle ? `"${host}" went silent for ${seconds} s` : `"${host}" did not answer within ${seconds} s`
  const message = isAnswering && !isIdle ? `"${host}" did not end its answer within ${seconds} s` : silence
  return new Failure('DEADLINE_EXCEEDED', message, { metadata: { host } })
}

function cancelled(): Failure {
  return new Failure('CANCELLED', 'the request was cancelled')
}

function asError(value: unknown): Error {
  return value instanceof Error ? value : new Error('the exchange has ended')
}
