import { type LookupAddress, lookup as systemLookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { buildConnector } from 'undici'
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

/** Resolves a name to every address it has. */
export type ResolveAll = (hostname: string) => Promise<readonly LookupAddress[]>

/** The machine's resolver: hosts file, search domains and all. */
export const resolveWithSystem: ResolveAll = (hostname) =>
  new Promise((resolve, reject) => {
    systemLookup(hostname, { all: true }, (error, addresses) => (error ? reject(error) : resolve(addresses)))
  })

/**
 * A `lookup` for sockets that refuses a name as soon as one of its addresses is not allowed.
 *
 * One bad answer among good ones is how rebinding mixes its way in, so it refuses the whole name. The addresses that
 * were checked are the ones that are dialled: there is no second resolution. Callers that ask for the same name at the
 * same time share one query, because the system's resolver occupies a thread for as long as it takes.
 *
 * Ends in EGRESS_BLOCKED, or in the resolver's own error.
 */
function createGuardedLookup(policy: EgressPolicy, resolveAll: ResolveAll): LookupFunction {
  const inFlight = new Map<string, Promise<readonly LookupAddress[]>>()

  function resolveShared(hostname: string): Promise<readonly LookupAddress[]> {
    const running = inFlight.get(hostname)
    if (running) return running
    const started = resolveAll(hostname).finally(() => inFlight.delete(hostname))
    inFlight.set(hostname, started)
    return started
  }

  return (hostname, options, callback) => {
    resolveShared(hostname).then(
      (addresses) => {
        const [first] = addresses
        if (!first || !addresses.every(({ address }) => policy.allows(address))) {
          return callback(egressBlocked(hostname, 'it does not resolve to public addresses only'), '')
        }
        if (options.all) callback(null, [...addresses])
        else callback(null, first.address, first.family)
      },
      (error) => callback(error, ''),
    )
  }
}
