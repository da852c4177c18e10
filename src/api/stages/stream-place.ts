import { Failure } from '../../base/index.ts'
import type { Access } from '../call.ts'
import type { RequestContext } from '../open-call.ts'
import type { ServerContext } from './core.ts'

const RETRY_AFTER_SECONDS = 5

/**
 * Takes a place for a call that may last, until it is closed. To be called once the call is admitted.
 *
 * @throws Failure RATE_LIMITED when its environment (without a token: its client address) has its share of the places
 */
export function acquireStreamSlot(core: ServerContext, access: Access, call: RequestContext): void {
  const release =
    access === 'public'
      ? core.publicStreamPlaces.tryAcquire(call.clientAddress(core.gate.trustedProxies))
      : core.streamPlaces.tryAcquire(call.principal.environmentId ?? call.principal.teamId)
  if (release === undefined) {
    const who = access === 'public' ? 'this address' : 'this environment'
    const message = `${who} has as many streams open here as it may; close one, or try another server`
    throw new Failure('RATE_LIMITED', message, { retryAfterSeconds: RETRY_AFTER_SECONDS })
  }
  call.onClose(release)
}
