import { Failure, suggest } from '../../base/index.ts'
import { type ActionPlan, type MethodPlan, type Plan, RESERVED_ACTIONS } from '../../definition/index.ts'
import type { AccountAccess } from '../request.ts'
import { findVerification, sandboxReadOnly } from '../resolve-target.ts'
import type { ActionTarget } from './action-run.ts'

/** Actions that prove or renew the credential itself, which sandbox accounts need as any other. */
const CREDENTIAL_ACTIONS: readonly string[] = [
  'validation',
  'refresh_token',
] satisfies (typeof RESERVED_ACTIONS)[number][]

/**
 * The action that is meant, reserved or not, if this account may run it.
 *
 * @throws Failure METHOD_NOT_DEFINED; SANDBOX_ACCOUNT_READ_ONLY when a sandbox account would send anything but GET, HEAD or
 * OPTIONS, unless the action is about the credential itself
 */
export function findAction(plan: Plan, account: AccountAccess, target: ActionTarget): ActionPlan {
  if (target.kind === 'verification') return verificationAction(findVerification(plan, target.format))
  const action = plan.actions.get(target.action)
  if (action === undefined) throw actionNotDefined(target.action, [...plan.actions.keys()])
  if (account.isSandbox && action.isWrite && !CREDENTIAL_ACTIONS.includes(action.name)) throw sandboxReadOnly()
  return action
}

/** @throws Failure METHOD_NOT_DEFINED for an action that the life of an account runs, and nobody else */
export function assertNotReserved(name: string): void {
  if (!isReserved(name)) return
  throw new Failure('METHOD_NOT_DEFINED', `the action ${name} belongs to connecting an account: it cannot be called`)
}

function verificationAction(request: MethodPlan): ActionPlan {
  const step = { name: 'verification', type: 'request', runIf: undefined, request } as const
  return { name: step.name, steps: [step], isWrite: false, parentPaths: [] }
}

function isReserved(name: string): boolean {
  return RESERVED_ACTIONS.some((reserved) => reserved === name)
}

function actionNotDefined(name: string, names: readonly string[]): Failure {
  const callable = names.filter((known) => !isReserved(known))
  return new Failure('METHOD_NOT_DEFINED', `the definition has no action ${name}${suggest(name, callable)}`)
}
