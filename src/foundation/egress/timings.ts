import { subscribe } from 'node:diagnostics_channel'
import { Socket } from 'node:net'

/** Where the time of a request goes, in milliseconds; a phase that did not end has none. */
export interface RequestTimings {
  /** Name resolution, connecting and TLS handshake; absent when an open connection was used. */
  dnsMs?: number
  connectMs?: number
  tlsMs?: number
  /** From the beginning of the request, including waiting for a connection, to the head of the response. */
  firstByteMs?: number
  /** The address of the peer. */
  remoteAddress?: string
}

/** When the phases of opening a connection ended, on the scale of `performance.now()`. */
interface ConnectionPhases {
  readonly startedAt: number
  lookedUpAt?: number
  connectedAt?: number
  securedAt?: number
  /** Only the request for which the connection was opened has waited for it. */
  isCounted?: boolean
}

const phasesOf = new WeakMap<Socket, ConnectionPhases>()

/** Watches a socket that is connecting, before undici's listeners, which write the request; anything else is ignored. */
export function watchConnecting(socket: unknown): void {
  if (!(socket instanceof Socket)) return
  const phases: ConnectionPhases = { startedAt: performance.now() }
  phasesOf.set(socket, phases)
  socket.prependOnceListener('lookup', () => {
    phases.lookedUpAt = performance.now()
  })
  socket.prependOnceListener('connect', () => {
    phases.connectedAt = performance.now()
  })
  socket.prependOnceListener('secureConnect', () => {
    phases.securedAt = performance.now()
  })
}

/**
 * The timings of the request that undici is writing: it calls `onRequestStart` and publishes the socket on its diagnostics
 * channel in one synchronous function, which is what connects a request with its connection.
 */
let writing: RequestTimings | undefined

/** Connects the timings with the connection that the request is written to right after this call. */
export function awaitConnection(timings: RequestTimings | undefined): void {
  writing = timings
}

subscribe('undici:client:sendHeaders', (message) => {
  const timings = writing
  writing = undefined
  if (timings === undefined || typeof message !== 'object' || message === null || !('socket' in message)) return
  if (message.socket instanceof Socket) addConnection(timings, message.socket)
})

function addConnection(timings: RequestTimings, socket: Socket): void {
  if (socket.remoteAddress !== undefined) timings.remoteAddress = socket.remoteAddress
  const phases = phasesOf.get(socket)
  if (phases === undefined || phases.isCounted === true) return
  phases.isCounted = true
  const { startedAt, lookedUpAt, connectedAt, securedAt } = phases
  if (lookedUpAt !== undefined) timings.dnsMs = lookedUpAt - startedAt
  if (connectedAt !== undefined) timings.connectMs = connectedAt - (lookedUpAt ?? startedAt)
  if (securedAt !== undefined) timings.tlsMs = securedAt - (connectedAt ?? startedAt)
}
