import { Failure, suggestOneOf } from '../../foundation/base/index.ts'
import { RESERVED_ACTIONS } from '../definitions/actions.ts'
import { isWritingVerb } from '../definitions/compile.ts'
import type { ActionPlan, ConnectPlan, MethodPlan, Plan } from '../definitions/plan.ts'
import { assertNoDotSegments } from '../expressions/url-template.ts'
import type { AccountAccess, ActionTarget, CallTarget } from './request.ts'

type VerificationTarget = Extract<CallTarget, { readonly kind: 'verification' }>

/** The method of a call, compiled from the definition. */
export interface ResolvedTarget {
  readonly method: MethodPlan
  /** Path of the caller, appended to the base URL; empty for methods of the definition. */
  readonly path: string
}

/**
 * Finds the method and checks that the account may call it.
 *
 * @throws Failure METHOD_NOT_DEFINED; SANDBOX_ACCOUNT_READ_ONLY, METHOD_NOT_ALLOWED as `findWriteError` returns them
 */
export function resolveTarget(plan: Plan, account: AccountAccess, target: CallTarget): ResolvedTarget {
  const resolved = findTarget(plan, target)
  const error = findWriteError(account, resolved.method)
  if (error !== undefined) throw error
  return resolved
}

/**
 * The error of a write, if it is one: that of a caller who may not write, METHOD_NOT_ALLOWED through an access that only reads, SANDBOX_ACCOUNT_READ_ONLY through a
 * sandbox account.
 */
export function findWriteError(
  { isSandbox, isReadOnly = false, writeError }: AccountAccess,
  { isWrite }: Pick<MethodPlan | ActionPlan, 'isWrite'>,
): Failure | undefined {
  if (!isWrite) return undefined
  if (writeError !== undefined) return writeError
  if (isReadOnly)
    return new Failure(
      'METHOD_NOT_ALLOWED',
      'this call may only read, and a method that its definition or mapping names would change something upstream',
    )
  const message = 'sandbox accounts only read: this call would change something upstream'
  return isSandbox ? new Failure('SANDBOX_ACCOUNT_READ_ONLY', message) : undefined
}

/** Finds the method. @throws Failure METHOD_NOT_DEFINED */
export function findTarget(plan: Plan, target: CallTarget): ResolvedTarget {
  switch (target.kind) {
    case 'method':
      return { method: findMethod(plan, target.resource, target.method), path: '' }
    case 'path':
      return { method: passthroughMethod(plan, target.verb), path: normalizePath(target.path) }
    case 'verification':
      return { method: findVerification(plan, target), path: '' }
    case 'action':
    case 'subscription':
      throw new Failure(
        'METHOD_NOT_DEFINED',
        `an action cannot be tried in a dry run: it is run step by step, and each step needs the answer before`,
      )
  }
}

/** The request that verifies a credential, or names its owner. @throws Failure METHOD_NOT_DEFINED */
function findVerification(plan: Plan, { credential, of }: VerificationTarget): MethodPlan {
  const connect = plan.credentials.find(({ key }) => key === credential)
  const request = of === 'identity' ? identityRequest(connect) : connect?.verification
  if (request !== undefined) return request
  throw new Failure('METHOD_NOT_DEFINED', `the definition has no verification request for ${credential}`)
}

function identityRequest(connect: ConnectPlan | undefined): MethodPlan | undefined {
  return connect?.identity?.kind === 'response' ? connect.identity.request : undefined
}

function findMethod(plan: Plan, resource: string, name: string): MethodPlan {
  const methods = plan.resources.get(resource)
  if (methods === undefined)
    throw new Failure(
      'METHOD_NOT_DEFINED',
      `the definition has no resource ${resource}${suggestOneOf(resource, plan.resources.keys())}`,
    )
  const method = methods.get(name)
  if (method === undefined)
    throw new Failure(
      'METHOD_NOT_DEFINED',
      `the resource ${resource} has no method ${name}${suggestOneOf(name, methods.keys())}`,
    )
  return method
}

function passthroughMethod(plan: Plan, verb: string): MethodPlan {
  return { ...plan.passthrough, verb: verb.toUpperCase(), isWrite: isWritingVerb(verb) }
}

/** The caller's path below the base URL: with one leading slash, without dot segments. */
function normalizePath(path: string): string {
  const rooted = `/${path.replace(/^\/+/, '')}`
  assertNoDotSegments(rooted)
  if (/[\s#]/.test(rooted))
    throw new Failure('INVALID_FIELD', 'the path must be percent-encoded: it holds a blank or a "#"')
  return rooted
}

/** Actions about the credential itself; accounts that only read may run them although they write. */
const CREDENTIAL_ACTIONS: readonly string[] = [
  'validation',
  'refresh_token',
] satisfies (typeof RESERVED_ACTIONS)[number][]

/**
 * The named, reserved or verification action, if the account may run it.
 *
 * @throws Failure METHOD_NOT_DEFINED; as `findWriteError` returns when the action sends anything but GET, HEAD or OPTIONS, unless
 * it is about the credential itself
 */
export function findAction(plan: Plan, account: AccountAccess, target: ActionTarget): ActionPlan {
  if (target.kind === 'verification') return verificationAction(target, findVerification(plan, target))
  const action = target.kind === 'subscription' ? findSubscriptionAction(plan, target) : findNamedAction(plan, target)
  const error = CREDENTIAL_ACTIONS.includes(action.name) ? undefined : findWriteError(account, action)
  if (error !== undefined) throw error
  return action
}

/** @throws Failure METHOD_NOT_DEFINED for a reserved action, which only the activation of an account runs */
export function assertNotReserved(name: string): void {
  if (!isReserved(name)) return
  throw new Failure('METHOD_NOT_DEFINED', `the action ${name} belongs to connecting an account: it cannot be called`)
}

function findNamedAction(plan: Plan, { action: name }: Extract<CallTarget, { readonly kind: 'action' }>): ActionPlan {
  const action = plan.actions.get(name)
  if (action === undefined) throw actionNotDefined(name, [...plan.actions.keys()])
  return action
}

function findSubscriptionAction(plan: Plan, { verb }: Extract<CallTarget, { readonly kind: 'subscription' }>) {
  const action = plan.webhookSubscription?.actions[verb]
  if (action === undefined)
    throw new Failure('METHOD_NOT_DEFINED', `the definition has no webhook.subscription.${verb}`)
  return action
}

function verificationAction({ of }: VerificationTarget, request: MethodPlan): ActionPlan {
  const step = { name: of ?? 'verification', type: 'request', runIf: undefined, request } as const
  return { name: step.name, steps: [step], isWrite: false, parentPaths: [] }
}

/** Whether an action belongs to connecting an account. */
export function isReserved(name: string): boolean {
  return RESERVED_ACTIONS.some((reserved) => reserved === name)
}

function actionNotDefined(name: string, names: readonly string[]): Failure {
  const callable = names.filter((known) => !isReserved(known))
  return new Failure('METHOD_NOT_DEFINED', `the definition has no action ${name}${suggestOneOf(name, callable)}`)
}
