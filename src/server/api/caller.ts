import { createContextKey, type HandlerContext } from '@connectrpc/connect'
import type { JsonObject } from '../../foundation/json/index.ts'
import type { AccountRef } from '../../platform/accounts/index.ts'
import type { Principal } from '../../platform/tenancy/index.ts'

export type { Principal }

/** A caller that acts in one environment. */
export interface EnvironmentPrincipal extends Principal {
  readonly environmentId: string
}

/** Context value of a call: its authenticated caller; absent for operations with access `public`. */
export const callerKey = createContextKey<Principal | undefined>(undefined, { description: 'caller' })

/** Context value of a request: its `x-request-id`. */
export const requestIdKey = createContextKey('', { description: 'request id' })

/** Context value of a request that goes through an account: it ends when the account is deleted or its installation disabled. */
export const accountKey = createContextKey<AccountRef | undefined>(undefined, { description: 'account' })

/** Context value of a request with a token of another kind than API tokens: looks the token up again. @throws Failure when it ended */
export const lookUpAgainKey = createContextKey<(() => Promise<unknown>) | undefined>(undefined, {
  description: 'look up again',
})

/** What identifies the caller: a `HandlerContext` of an RPC, or the context of another request. */
type CallerContext = Pick<HandlerContext, 'values'>

/** The authenticated caller. @throws Error in an operation with access `public`, which has none */
export function callerOf({ values }: CallerContext): Principal {
  const caller = values.get(callerKey)
  if (caller === undefined) throw new Error('an operation with public access has no caller')
  return caller
}

/** The caller of an operation with access `environment`. */
export function environmentCallerOf(context: CallerContext): EnvironmentPrincipal {
  // The access rule was enforced before the handler runs: the environment is known.
  return callerOf(context) as EnvironmentPrincipal
}

/** The environment in which an operation with access `environment` acts. */
export function environmentIdOf(context: CallerContext): string {
  return environmentCallerOf(context).environmentId
}

/** Who may use a value that was sealed for the caller: callers of the same team that act in the same environment. */
export function holderOf({ teamId, environmentId }: Principal): JsonObject {
  return { team: teamId, environment: environmentId ?? null }
}

/** The team whose token the caller has. */
export function teamIdOf(context: CallerContext): string {
  return callerOf(context).teamId
}
