import { type LookupAddress, lookup as systemLookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { buildConnector } from 'undici'
import { type EgressPolicy, egressBlocked, hostOf } from './address-policy.ts'
import type { ConnectTo } from './connect-to.ts'
import { watchConnecting } from './timings.ts'

/** Options of `createGuardedConnector`. */
export interface ConnectorOptions {
  readonly policy: EgressPolicy
  readonly resolveAll: ResolveAll
  readonly connectTimeoutMs: number
  readonly connectTo: ConnectTo
}

/**
 * The connector of undici, with three address checks: a literal address before the socket exists (a literal never
 * reaches `lookup`), every resolved address before connecting, and the peer's address once connected, in case the first
 * two were bypassed. What `connectTo` names is checked like a literal address.
 *
 * HTTP/1.1 only: one protocol whose size limits are known.
 */
export function createGuardedConnector(options: ConnectorOptions): buildConnector.connector {
  const { policy, connectTo } = options
  const connect = buildConnector({
    allowH2: false,
    timeout: options.connectTimeoutMs,
    lookup: createGuardedLookup(policy, options.resolveAll),
    autoSelectFamily: true,
  })
  return (target, callback) => {
    const { hostname } = target
    const other = connectTo(hostname, portOf(target))
    const host = other?.address ?? hostname
    if (isIP(host) !== 0 && !policy.allows(host)) {
      return callback(egressBlocked(hostname, `it is not a public address: ${policy.advice}`), null)
    }
    // `host`, with the name and port of the URL, stays: the server name of TLS is taken from it.
    const destination =
      other === undefined ? target : { ...target, hostname: host, port: String(other.port ?? portOf(target)) }
    const connecting: unknown = connect(destination, (...[error, socket]) => {
      if (error) return callback(error, null)
      if (socket.remoteAddress !== undefined && policy.allows(socket.remoteAddress)) return callback(null, socket)
      socket.destroy()
      callback(egressBlocked(hostname, `it is not a public address: ${policy.advice}`), null)
    })
    watchConnecting(connecting)
  }
}

function portOf({ port, protocol }: buildConnector.Options): number {
  return Number(port) || (protocol === 'https:' ? 443 : 80)
}

/** Resolves a name to every address it has. */
export type ResolveAll = (hostname: string) => Promise<readonly LookupAddress[]>

/** The resolver of the operating system, with hosts file and search domains. */
export const resolveWithSystem: ResolveAll = (hostname) =>
  new Promise((resolve, reject) => {
    systemLookup(hostname, { all: true }, (error, addresses) => (error ? reject(error) : resolve(addresses)))
  })

/** Asks the policy about the addresses of a name that a proxy connects to. @throws Failure EGRESS_BLOCKED */
export async function assertAllowedName(policy: EgressPolicy, resolveAll: ResolveAll, url: URL): Promise<void> {
  const host = hostOf(url)
  if (isIP(host) !== 0) return
  const addresses = await resolveAll(host).catch(() => [])
  if (!addresses.every(({ address }) => policy.allows(address)))
    throw egressBlocked(host, `it does not resolve to public addresses only: ${policy.advice}`)
}

/**
 * A `lookup` for sockets that rejects a name when one of its addresses is not allowed.
 *
 * DNS rebinding mixes one internal address among public ones, so the whole name is rejected. The socket connects to the
 * checked addresses: there is no second resolution. Concurrent look-ups of a name share one query, because the resolver of
 * the system occupies a thread for each.
 *
 * Fails with EGRESS_BLOCKED, or the error of the resolver.
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
          return callback(egressBlocked(hostname, `it does not resolve to public addresses only: ${policy.advice}`), '')
        }
        if (options.all) callback(null, [...addresses])
        else callback(null, first.address, first.family)
      },
      (error) => callback(error, ''),
    )
  }
}
