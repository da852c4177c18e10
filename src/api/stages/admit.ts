import { type Clock, Failure } from '../../base/index.ts'
import type { Access, Admission, Principal } from '../call.ts'
import type { OpenCall } from '../open-call.ts'
import type { RateLimiter } from './rate-limiter.ts'

/** What the gate asks. */
export interface Gate {
  readonly admission: Admission
  readonly rateLimiter: RateLimiter
  readonly clock: Clock
}

/**
 * Lets a call in or refuses it, before a byte of its body is read: token, then budget, then what the operation asks.
 *
 * @throws Failure TOKEN_MISSING, TOKEN_INVALID, RATE_LIMITED, ENVIRONMENT_REQUIRED, TEAM_TOKEN_REQUIRED
 */
export async function admit(gate: Gate, access: Access, call: OpenCall): Promise<void> {
  if (access === 'public') return
  const token = bearerToken(call.requestHeader('authorization'))
  const principal = await gate.admission.admit(token, call.requestHeader('patchbay-environment'))
  call.admitAs(principal)
  takeFromBudget(gate, principal, call)
  requireAccess(access, principal)
}

const BEARER = /^bearer +([\x21-\x7e]+)$/i

function bearerToken(header: string | undefined): string {
  const token = BEARER.exec(header ?? '')?.[1]
  if (token !== undefined) return token
  throw new Failure('TOKEN_MISSING', 'send an API token in the header "Authorization: Bearer <token>"')
}

function takeFromBudget({ rateLimiter, clock }: Gate, { tokenId }: Principal, call: OpenCall): void {
  const budget = rateLimiter.take(tokenId, clock.now().getTime())
  if (budget === undefined) return
  call.setHeader('ratelimit-limit', String(budget.limit))
  call.setHeader('ratelimit-remaining', String(budget.remaining))
  call.setHeader('ratelimit-reset', String(budget.resetSeconds))
  if (budget.isAllowed) return
  const message = `this token sent more than ${budget.limit} requests in the window; wait before the next one`
  throw new Failure('RATE_LIMITED', message, { retryAfterSeconds: budget.resetSeconds })
}

function requireAccess(access: Access, principal: Principal): void {
  if (access === 'team' && principal.kind !== 'team')
    throw new Failure('TEAM_TOKEN_REQUIRED', 'this operation needs a team token')
  if (access === 'environment' && principal.environmentId === undefined)
    throw new Failure('ENVIRONMENT_REQUIRED', 'a team token names its environment in the header "patchbay-environment"')
}
