import { type IncomingHttpHeaders, validateHeaderValue } from 'node:http'
import { type BlockList, isIP, isIPv6 } from 'node:net'
import { Failure, newId } from '../base/index.ts'
import type { PresentedToken, Principal } from '../tenancy/index.ts'
import type { Call, EnvironmentPrincipal } from './caller.ts'

/** Characters of a client's request id that are safe in a header and a log line. */
const REQUEST_ID = /^[\w.:@+/=-]{1,128}$/

/** What a call keeps of its request. */
export interface RequestHead {
  readonly headers: IncomingHttpHeaders
  readonly socket: { readonly remoteAddress?: string | undefined }
}

/** A timer set to more fires at once. */
const TIMER_MAX_MS = 2 ** 31 - 1

/**
 * The life of one call: who, until when, and whether it is over.
 *
 * The abort signal is made on first use: most handlers never look at it, and a controller per request cost 8 % of the
 * processor in a profile.
 */
export class RequestContext implements Call {
  readonly requestId: string
  /** Headers of the answer, whatever its outcome. */
  readonly responseHeaders: Record<string, string>
  readonly startedMs = performance.now()
  readonly #request: RequestHead
  /** What a log line about the call also says: ids and names of the contract, never a value of the caller's. */
  logFields: Readonly<Record<string, string>> | undefined
  #principal: Principal | undefined
  #token: PresentedToken | undefined
  #timeoutMs: number | undefined
  #deadlineMs = Number.POSITIVE_INFINITY
  #timer: NodeJS.Timeout | undefined
  #controller: AbortController | undefined
  #interruption: Failure | undefined
  #reject: ((failure: Failure) => void) | undefined
  #isClosed = false
  #closeListeners: (() => void)[] | undefined
  #isClientGone = false

  constructor(request: RequestHead) {
    this.#request = request
    const given = request.headers['x-request-id']
    this.requestId = typeof given === 'string' && REQUEST_ID.test(given) ? given : newId()
    this.responseHeaders = { 'x-request-id': this.requestId }
  }

  get principal(): EnvironmentPrincipal {
    if (this.#principal === undefined) throw new Error('a public operation has no principal')
    // The gate refused the call already if the operation needs an environment and there is none.
    return this.#principal as EnvironmentPrincipal
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#interruption !== undefined) this.#controller.abort(this.#interruption)
    }
    return this.#controller.signal
  }

  /** Answered, or interrupted: nothing more may be done for this call. */
  get isDone(): boolean {
    return this.#isClosed || this.#interruption !== undefined
  }

  /** The connection or stream is closed: nothing can be sent any more. */
  get isClientGone(): boolean {
    return this.#isClientGone
  }

  remainingMs(): number {
    return Math.max(0, this.#deadlineMs - performance.now())
  }

  /** The address that the request is counted under while it has no valid token; see `clientAddress`. */
  clientAddress(trustedProxies: BlockList): string {
    return clientAddress(this.#request, trustedProxies)
  }

  requestHeader(name: string): string | undefined {
    const value = this.#request.headers[name.toLowerCase()]
    return Array.isArray(value) ? value.join(', ') : value
  }

  setHeader(name: string, value: string): void {
    // Refused here, where it is the handler's error; at the end it would take the whole answer down.
    validateHeaderValue(name, value)
    this.responseHeaders[name.toLowerCase()] = value
  }

  removeHeader(name: string): void {
    delete this.responseHeaders[name.toLowerCase()]
  }

  /** The token that the call was admitted with. */
  get token(): PresentedToken | undefined {
    return this.#token
  }

  admitAs(principal: Principal, token: PresentedToken | undefined): void {
    this.#principal = principal
    this.#token = token
  }

  /** Interrupts the call with DEADLINE_EXCEEDED after `timeoutMs`, which timers bound to 24 days. */
  startDeadline(timeoutMs: number): void {
    this.#timeoutMs = timeoutMs
    this.#deadlineMs = performance.now() + timeoutMs
    this.#timer = setTimeout(
      () => {
        this.interrupt(new Failure('DEADLINE_EXCEEDED', `the deadline of ${Math.round(timeoutMs)} ms passed`))
      },
      Math.min(timeoutMs, TIMER_MAX_MS),
    )
  }

  /** Lets the call take as long as it needs, for a body whose length only its sender knows. */
  pauseDeadline(): void {
    clearTimeout(this.#timer)
    this.#deadlineMs = Number.POSITIVE_INFINITY
  }

  /** Starts the deadline anew, with all of its time. */
  resumeDeadline(): void {
    clearTimeout(this.#timer)
    if (this.#timeoutMs !== undefined && !this.isDone) this.startDeadline(this.#timeoutMs)
  }

  /** The result of `work`, or the failure that interrupts the call first; `work` itself is then ignored. */
  raceInterrupt<Result>(work: Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      if (this.#interruption !== undefined) reject(this.#interruption)
      this.#reject = reject
      work.then(resolve, reject)
    })
  }

  /** Ends the call from outside. Without effect on one that is over. */
  interrupt(failure: Failure): void {
    if (this.isDone) return
    this.#interruption = failure
    this.#controller?.abort(failure)
    this.#reject?.(failure)
  }

  onClientDisconnect(): void {
    this.#isClientGone = true
    // Every answer ends in a closed response; an error made for each would cost more than the gate.
    if (!this.isDone) this.interrupt(new Failure('CANCELLED', 'the client went away'))
  }

  /** Calls back when the call is closed, whatever its outcome. */
  onClose(listener: () => void): void {
    this.#closeListeners ??= []
    this.#closeListeners.push(listener)
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    const listeners = this.#closeListeners
    this.#closeListeners = undefined
    if (listeners !== undefined) for (const listener of listeners) listener()
  }
}

/**
 * The address that a request is counted under: the peer of the connection, or, when that peer is a trusted proxy, the
 * last address in `X-Forwarded-For` that is not a trusted proxy itself. An IPv6 address counts as its /64 network, which
 * one subscriber usually has whole.
 *
 * @param trustedProxies `PATCHBAY_TRUSTED_PROXIES`; what any other peer says in the header is ignored
 */
export function clientAddress({ socket, headers }: RequestHead, trustedProxies: BlockList): string {
  let address = withoutMapping(socket.remoteAddress ?? '')
  const forwarded = headers['x-forwarded-for']
  const hops = (Array.isArray(forwarded) ? forwarded.join(',') : (forwarded ?? '')).split(',')
  while (isTrusted(address, trustedProxies)) {
    const hop = withoutMapping(hops.pop()?.trim() ?? '')
    if (isIP(hop) === 0) break
    address = hop
  }
  return isIPv6(address) ? networkOf(address) : address
}

function isTrusted(address: string, trustedProxies: BlockList): boolean {
  return trustedProxies.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
}

/** An IPv4 address as dual-stack sockets print it, `::ffff:192.0.2.1`, is the IPv4 address. */
function withoutMapping(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '')
}

/** The first 64 bits, in one spelling. */
function networkOf(address: string): string {
  const [head = '', tail] = address.split('%', 1)[0]?.split('::') ?? []
  const groups = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : 8 - groups.length - after.length
  const all = [...groups, ...Array.from({ length: Math.max(0, zeros) }, () => '0'), ...after]
  return `${all
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`
}
