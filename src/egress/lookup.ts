import { type LookupAddress, lookup as systemLookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { type EgressPolicy, egressBlocked } from './policy.ts'

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
export function createGuardedLookup(policy: EgressPolicy, resolveAll: ResolveAll): LookupFunction {
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
