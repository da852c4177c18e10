import { isIP } from 'node:net'
import { buildConnector } from 'undici'
import { createGuardedLookup, type ResolveAll } from './lookup.ts'
import { type EgressPolicy, egressBlocked } from './policy.ts'

/** What a connector needs. */
export interface ConnectorOptions {
  readonly policy: EgressPolicy
  readonly resolveAll: ResolveAll
  readonly connectTimeoutMs: number
}

/**
 * Opens sockets for undici, each checked three times: a literal address before the socket exists (a literal never
 * reaches `lookup`), every resolved address before dialling, and the peer's address once connected, in case the first
 * two were talked past.
 *
 * HTTP/1.1 only: one protocol whose size limits are known.
 */
export function createGuardedConnector(options: ConnectorOptions): buildConnector.connector {
  const { policy } = options
  const connect = buildConnector({
    allowH2: false,
    timeout: options.connectTimeoutMs,
    lookup: createGuardedLookup(policy, options.resolveAll),
    autoSelectFamily: true,
  })
  return (target, callback) => {
    const { hostname } = target
    if (isIP(hostname) !== 0 && !policy.allows(hostname)) {
      return callback(egressBlocked(hostname, 'it is not a public address'), null)
    }
    connect(target, (...[error, socket]) => {
      if (error) return callback(error, null)
      if (socket.remoteAddress !== undefined && policy.allows(socket.remoteAddress)) return callback(null, socket)
      socket.destroy()
      callback(egressBlocked(hostname, 'it is not a public address'), null)
    })
  }
}
