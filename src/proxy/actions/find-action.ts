import { Failure, suggest } from '../../base/index.ts'
import { type ActionPlan, type Plan, RESERVED_ACTIONS } from '../../definition/index.ts'
import type { AccountAccess } from '../request.ts'
import { sandboxReadOnly } from '../resolve-target.ts'

/** Actions that prove or renew the credential itself, which sandbox accounts need as any other. */
const OF_CREDENTIALS: readonly string[] = ['validation', 'refresh_token'] satisfies (typeof RESERVED_ACTIONS)[number][]

/**
 * The action of that name, reserved or not, if this account may run it.
 *
 * @throws Failure METHOD_NOT_DEFINED; SANDBOX_ACCOUNT_READ_ONLY when a sandbox account would send anything but GET, HEAD or
 * OPTIONS, unless the action is about the credential itself
 */
export function findAction({ actions }: Plan, account: AccountAccess, name: string): ActionPlan {
  const action = actions.get(name)
  if (action === undefined) throw notDefined(name, [...actions.keys()])
  if (account.isSandbox && action.isWrite && !OF_CREDENTIALS.includes(name)) throw sandboxReadOnly()
  return action
}

/** @throws Failure METHOD_NOT_DEFINED for an action that the life of an account runs, and nobody else */
export function refuseReserved(name: string): void {
  if (!isReserved(name)) return
  throw new Failure('METHOD_NOT_DEFINED', `the action ${name} belongs to connecting an account: it cannot be called`)
}

function isReserved(name: string): boolean {
  return RESERVED_ACTIONS.some((reserved) => reserved === name)
}

function notDefined(name: string, names: readonly string[]): Failure {
  const callable = names.filter((known) => !isReserved(known))
  return new Failure('METHOD_NOT_DEFINED', `the definition has no action ${name}${suggest(name, callable)}`)
}
