import { Failure, suggest } from '../base/index.ts'
import { isWritingVerb, type MethodPlan, type Plan } from '../definition/index.ts'
import { assertNoDotSegments } from '../expression/index.ts'
import type { AccountAccess, CallTarget } from './request.ts'

/** What is to be called, with everything the definition decides. */
export interface ResolvedTarget {
  readonly method: MethodPlan
  /** Appended to the address as the caller wrote it; empty for described methods. */
  readonly path: string
}

/**
 * Stage 1: finds the method and refuses what this account may not do.
 *
 * @throws Failure METHOD_NOT_DEFINED; SANDBOX_ACCOUNT_READ_ONLY when a sandbox account would change something upstream
 */
export function resolveTarget(plan: Plan, account: AccountAccess, target: CallTarget): ResolvedTarget {
  const resolved = findTarget(plan, target)
  const error = findSandboxError(account, resolved)
  if (error !== undefined) throw error
  return resolved
}

/** Why the account may not call the target; `undefined` when it may. */
export function findSandboxError({ isSandbox }: AccountAccess, { method }: ResolvedTarget): Failure | undefined {
  return isSandbox && method.isWrite ? sandboxReadOnly() : undefined
}

/** The refusal of whatever would change something upstream through a sandbox account. */
export function sandboxReadOnly(): Failure {
  const message = 'sandbox accounts only read: this call would change something upstream'
  return new Failure('SANDBOX_ACCOUNT_READ_ONLY', message)
}

/** Finds the method, without a look at the account. @throws Failure METHOD_NOT_DEFINED */
export function findTarget(plan: Plan, target: CallTarget): ResolvedTarget {
  switch (target.kind) {
    case 'method':
      return { method: findMethod(plan, target.resource, target.method), path: '' }
    case 'path':
      return { method: passthroughMethod(plan, target.verb), path: normalizePath(target.path) }
    case 'verification':
      return { method: findVerification(plan, target.format), path: '' }
    case 'action':
      throw new Failure(
        'METHOD_NOT_DEFINED',
        `an action cannot be tried in a dry run: it is run step by step, and each step needs the answer before`,
      )
  }
}

/** The request that proves a credential. @throws Failure METHOD_NOT_DEFINED */
export function findVerification(plan: Plan, format: string): MethodPlan {
  const verification = plan.credentials.find((credential) => credential.format === format)?.verification
  if (verification !== undefined) return verification
  throw new Failure('METHOD_NOT_DEFINED', `the definition has no verification request for ${format}`)
}

function findMethod(plan: Plan, resource: string, name: string): MethodPlan {
  const methods = plan.resources.get(resource)
  if (methods === undefined)
    throw new Failure(
      'METHOD_NOT_DEFINED',
      `the definition has no resource ${resource}${suggest(resource, [...plan.resources.keys()])}`,
    )
  const method = methods.get(name)
  if (method === undefined)
    throw new Failure(
      'METHOD_NOT_DEFINED',
      `the resource ${resource} has no method ${name}: it has ${[...methods.keys()].join(', ')}`,
    )
  return method
}

function passthroughMethod(plan: Plan, verb: string): MethodPlan {
  return { ...plan.passthrough, verb: verb.toUpperCase(), isWrite: isWritingVerb(verb) }
}

/** A caller's path stays below the base address: it starts with one slash and climbs nowhere. */
function normalizePath(path: string): string {
  const rooted = `/${path.replace(/^\/+/, '')}`
  assertNoDotSegments(rooted.replaceAll('\\', '/'))
  if (/[\s#]/.test(rooted))
    throw new Failure('INVALID_FIELD', 'the path must be percent-encoded: it holds a blank or a "#"')
  return rooted
}
