import { type IncomingHttpHeaders, validateHeaderValue } from 'node:http'
import { type BlockList, isIP, isIPv6 } from 'node:net'
import type { DescMethod, DescService } from '@bufbuild/protobuf'
import { type ContextValues, createContextValues, type HandlerContext } from '@connectrpc/connect'
import {
  type CompanionRow,
  Failure,
  newId,
  type RequestScope,
  type RequestSlot,
  runInRequest,
} from '../../foundation/base/index.ts'
import type { PresentedToken, Principal } from '../../platform/tenancy/index.ts'
import { callerKey, requestIdKey } from './caller.ts'

/** Characters of a client's request id that are safe in a header and a log line. */
const REQUEST_ID = /^[\w.:@+/=-]{1,128}$/

/** The part of a request that its context keeps. */
export interface RequestHead {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly headers: IncomingHttpHeaders
  readonly socket: { readonly remoteAddress?: string | undefined }
}

/** A statement or commit whose outcome is unknown delays the error of an interrupted request this long at most. */
const ANSWER_HELD_MAX_MS = 5_000

/** An interrupted call that has committed may take this long to its answer. */
const ANSWER_AFTER_COMMIT_MS = 1_000

/** Longest delay of a timer of Node's; a longer one fires at once. */
const TIMER_MAX_MS = 2 ** 31 - 1

/**
 * Context of one request: caller, deadline, cancellation, response headers. RPC handlers get it as their
 * `HandlerContext`.
 *
 * Abort signal, context values and `Headers` objects are made on first use: most handlers never look at them, and an
 * AbortController per request cost 8 % of the processor in a profile.
 */
export class RequestContext implements HandlerContext, RequestScope {
  readonly requestId: string
  readonly startedMs = performance.now()
  readonly #request: RequestHead
  readonly #headers: Record<string, string>
  /** Ids and names of the contract that log lines about the request also show, never a value of the caller's. */
  logFields: Readonly<Record<string, string>> | undefined
  slot: RequestSlot | undefined
  companion: CompanionRow | undefined
  /** Length of the answer, once it is sent as a whole. */
  answerBytes = 0
  /** The token that the request was authenticated with. */
  token: PresentedToken | undefined
  #method: DescMethod | undefined
  #protocolName = ''
  #values: ContextValues | undefined
  #requestHeader: Headers | undefined
  #responseHeader: Headers | undefined
  #timeoutMs: number | undefined
  #deadlineMs = Number.POSITIVE_INFINITY
  #timer: NodeJS.Timeout | undefined
  #controller: AbortController | undefined
  #interruption: Failure | undefined
  #reject: ((failure: Failure) => void) | undefined
  /** How to stop each step whose outcome must be known before the answer. */
  readonly #held = new Set<() => void>()
  #hasStored = false
  #isAnswering = false
  #isClosed = false
  #closeListeners: (() => void)[] | undefined
  #interruptListeners: Set<() => void> | undefined
  #isClientGone = false

  /** @param values of the request that carries this one, which has what is noted here; absent: of its own */
  constructor(request: RequestHead, values?: ContextValues) {
    this.#request = request
    this.#values = values
    const given = request.headers['x-request-id']
    this.requestId = typeof given === 'string' && REQUEST_ID.test(given) ? given : newId()
    this.#headers = { 'x-request-id': this.requestId }
  }

  /** Sets the RPC that the request calls, and its protocol. */
  setMethod(method: DescMethod, protocolName: string): void {
    this.#method = method
    this.#protocolName = protocolName
  }

  /** @throws Error while no RPC is known, as on an HTTP route */
  get method(): DescMethod {
    if (this.#method === undefined) throw new Error('the request calls no RPC')
    return this.#method
  }

  get service(): DescService {
    return this.method.parent
  }

  get protocolName(): string {
    return this.#protocolName
  }

  get requestMethod(): string {
    return this.#request.method ?? ''
  }

  get url(): string {
    return this.#request.url ?? ''
  }

  get values(): ContextValues {
    this.#values ??= createContextValues().set(requestIdKey, this.requestId)
    return this.#values
  }

  get requestHeader(): Headers {
    if (this.#requestHeader === undefined) {
      this.#requestHeader = new Headers()
      for (const name of Object.keys(this.#request.headers))
        if (!name.startsWith(':')) this.#requestHeader.set(name, this.header(name) ?? '')
    }
    return this.#requestHeader
  }

  /** Headers that a handler adds to the response; without effect once a stream has sent its first message. */
  get responseHeader(): Headers {
    this.#responseHeader ??= new Headers()
    return this.#responseHeader
  }

  /** @throws Error always: REST and Connect over HTTP/1.1 have no trailers */
  get responseTrailer(): Headers {
    throw new Error('trailers are not sent: set a header')
  }

  /** Aborts with a `Failure` when the deadline passes, the client disconnects, or the server shuts down. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#interruption !== undefined) this.#controller.abort(this.#interruption)
    }
    return this.#controller.signal
  }

  /** Milliseconds until the deadline, at least 0; undefined without a deadline. */
  timeoutMs(): number | undefined {
    if (this.#deadlineMs === Number.POSITIVE_INFINITY) return undefined
    return Math.max(0, this.#deadlineMs - performance.now())
  }

  /** Answered or interrupted: all work for this request must stop. */
  get isDone(): boolean {
    return this.#isClosed || this.#interruption !== undefined
  }

  /** The connection or stream is closed: nothing can be sent any more. */
  get isClientGone(): boolean {
    return this.#isClientGone
  }

  /** The address that the request is counted under while it has no valid token; see `clientAddress`. */
  clientAddress(trustedProxies: BlockList): string {
    return clientAddress(this.#request, trustedProxies)
  }

  /** A request header (gRPC: metadata) by name, of any case; repeated ones joined with `, `. */
  header(name: string): string | undefined {
    const value = this.#request.headers[name.toLowerCase()]
    return Array.isArray(value) ? value.join(', ') : value
  }

  /** All headers of the response, of a success or an error. */
  get responseHeaders(): Readonly<Record<string, string>> {
    return this.#responseHeader === undefined
      ? this.#headers
      : { ...this.#headers, ...Object.fromEntries(this.#responseHeader) }
  }

  /** Sets a response header. @throws TypeError for a value that no header can carry, here rather than when it is sent */
  setHeader(name: string, value: string): void {
    validateHeaderValue(name, value)
    this.#headers[name.toLowerCase()] = value
  }

  removeHeader(name: string): void {
    delete this.#headers[name.toLowerCase()]
  }

  setCaller(caller: Principal, token: PresentedToken | undefined): void {
    this.values.set(callerKey, caller)
    this.token = token
  }

  /** Interrupts the request with DEADLINE_EXCEEDED after `timeoutMs`, at most 24 days. */
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

  /** Suspends the deadline while a body passes through whose length only its sender knows. */
  pauseDeadline(): void {
    clearTimeout(this.#timer)
    this.#deadlineMs = Number.POSITIVE_INFINITY
  }

  /** Starts the deadline anew, with all of its time. */
  resumeDeadline(): void {
    clearTimeout(this.#timer)
    if (this.#timeoutMs !== undefined && !this.isDone) this.startDeadline(this.#timeoutMs)
  }

  /** Undefined also for an interrupted request that has just stored something, until its error is sent all the same. */
  get interruption(): Failure | undefined {
    return this.#isAnswering ? undefined : this.#interruption
  }

  /**
   * Runs work of the request. Its result, or the failure that interrupts the request first; `work` itself is then ignored, and
   * changes nothing in the database any more.
   */
  raceInterrupt<Result>(work: () => Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      if (this.#interruption !== undefined) reject(this.#interruption)
      this.#reject = reject
      runInRequest(this, work).then(resolve, reject)
    })
  }

  /** Ends the request from outside. Without effect on one that is done. */
  interrupt(failure: Failure): void {
    if (this.isDone) return
    this.#interruption = failure
    this.#controller?.abort(failure)
    for (const listener of this.#interruptListeners ?? []) listener()
    // DEADLINE_EXCEEDED would not be true of a call that has committed; a token that was revoked ends it all the same.
    const isLate = failure.reason === 'DEADLINE_EXCEEDED' && this.#method?.methodKind === 'unary'
    if (this.#hasStored && isLate) this.#letAnswer()
    else this.#end()
  }

  /** What an interrupted request waits for is aborted, but what it reads for its answer succeeds for a while. */
  #letAnswer(): void {
    this.#isAnswering = true
    setTimeout(() => this.#end(), ANSWER_AFTER_COMMIT_MS).unref()
  }

  #end(): void {
    this.#isAnswering = false
    if (this.#held.size === 0) this.#rejectInterrupted()
    for (const stop of this.#held) stop()
    setTimeout(() => this.#rejectInterrupted(), ANSWER_HELD_MAX_MS).unref()
  }

  #rejectInterrupted(): void {
    if (this.interruption !== undefined) this.#reject?.(this.interruption)
  }

  holdAnswer(stop: () => void): (isStored?: boolean) => void {
    // A function of its own: the same one may be given twice.
    const held = () => stop()
    this.#held.add(held)
    return (isStored = false) => {
      this.#held.delete(held)
      if (isStored) this.#hasStored = true
      if (this.#interruption === undefined || this.#isAnswering) return
      if (isStored) this.#letAnswer()
      // What the step was for answers first if it can.
      else if (this.#held.size === 0) setImmediate(() => this.#rejectInterrupted())
    }
  }

  /** Calls back when the request is interrupted, at once when it was. @returns removes the listener */
  onInterrupt(listener: () => void): () => void {
    if (this.#interruption !== undefined) listener()
    const listeners = this.#interruptListeners ?? new Set()
    this.#interruptListeners = listeners.add(listener)
    return () => listeners.delete(listener)
  }

  onClientDisconnect(): void {
    this.#isClientGone = true
    // Every response ends with this event: creating an error for each would cost more than authentication.
    if (!this.isDone) this.interrupt(new Failure('CANCELLED', 'the client went away'))
  }

  /** Calls back when the request is closed, after success and error alike; at once when it is. */
  onClose(listener: () => void): void {
    if (this.#isClosed) listener()
    else {
      this.#closeListeners ??= []
      this.#closeListeners.push(listener)
    }
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
 * The address that a request is counted under: the peer of the connection, or, when that peer is a trusted proxy, the last
 * address in `X-Forwarded-For` or `Forwarded` (RFC 7239) that is not a trusted proxy itself, with or without a port. An IPv6
 * address counts as its /64 network, which usually belongs to one subscriber.
 *
 * Where both headers are there and name different clients, one of them is the client's own: it counts as the proxy.
 *
 * @param trustedProxies `PATCHBAY_TRUSTED_PROXIES`; the headers of any other peer are ignored
 */
export function clientAddress(
  { socket, headers }: Pick<RequestHead, 'socket' | 'headers'>,
  trustedProxies: BlockList,
): string {
  const peer = withoutMapping(socket.remoteAddress ?? '')
  const found = [headers['x-forwarded-for'], headers.forwarded]
    .filter((header) => header !== undefined)
    .map((header) => lastUntrusted(peer, hopsOf(String(header)), trustedProxies))
  const [address = peer, other = address] = found
  return addressGroup(address === other ? address : peer)
}

function lastUntrusted(peer: string, hops: readonly string[], trustedProxies: BlockList): string {
  let address = peer
  for (const hop of hops.toReversed()) {
    if (!isTrusted(address, trustedProxies) || isIP(hop) === 0) break
    address = hop
  }
  return address
}

/** The addresses in a list of `address`, `address:port`, `[address]:port`, or of `for=` with one of these; `''` for any other. */
function hopsOf(header: string): readonly string[] {
  return header.split(',').map((element) => {
    const node = /(?:^|;)\s*for\s*=\s*("[^"]*"|[^;]*)/i.exec(element)?.[1] ?? element
    const text = node.trim().replace(/^"(.*)"$/, '$1')
    const bare = isIP(text) === 0 ? (/^\[([^\]]+)\](?::\d+)?$|^([\d.]+):\d+$/.exec(text) ?? []) : [text, text]
    const address = withoutMapping(bare[1] ?? bare[2] ?? '')
    return isIP(address) === 0 ? '' : address
  })
}

function addressGroup(address: string): string {
  return isIPv6(address) ? networkOf(address) : address
}

function isTrusted(address: string, trustedProxies: BlockList): boolean {
  return trustedProxies.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
}

/** An IPv4 address as dual-stack sockets print it, `::ffff:192.0.2.1`, is the IPv4 address. */
function withoutMapping(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '')
}

/** The first 64 bits in canonical form. */
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
