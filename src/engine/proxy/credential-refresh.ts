import type { JsonObject } from '../../foundation/json/index.ts'
import type { Redactor } from '../../foundation/redaction/index.ts'
import type { CallContext } from './call-context.ts'
import type { AccountSignal, CallDependencies, CredentialRefresher } from './dependencies.ts'
import type { ClassifiedOutcome } from './outcome.ts'
import type { AccountAccess } from './request.ts'

const FORBIDDEN = 403

/**
 * Sends; when the credentials are rejected, refreshes them and sends once more. Then reports what the final response says
 * about the account. The verification of a credential does neither.
 *
 * @param isRepeatable false when the body can be sent only once; the credentials are refreshed for the next call
 * @throws Failure of `send`; TOKEN_REQUEST_FAILED
 */
export async function withCredentialRefresh<Outcome extends ClassifiedOutcome>(
  deps: Pick<CallDependencies, 'credentialRefresher' | 'accountReporter' | 'redaction' | 'secretsOf'>,
  context: CallContext,
  send: () => Promise<Outcome>,
  isRepeatable = true,
): Promise<Outcome> {
  const { credentialRefresher, accountReporter, redaction, secretsOf } = deps
  const first = await send()
  const { request } = context
  if (request.target.kind === 'verification') return first
  const refreshed = needsRefresh(first) ? await credentialRefresher?.refresh(context.access, request.signal) : undefined
  if (refreshed !== undefined) {
    context.access = { ...refreshed, cause: context.access.cause }
    redaction.setSecrets('renewed', () => secretsOf(refreshed))
    if (!isRepeatable) return first
  }
  const outcome = refreshed === undefined ? first : await send()
  const signal = accountReporter === undefined ? undefined : accountSignal(context, outcome, redaction)
  if (signal !== undefined) await accountReporter?.report(context.access, signal)
  if (signal?.kind === 'worked') context.access = { ...context.access, unauthorizedSince: undefined }
  return outcome
}

function needsRefresh(outcome: ClassifiedOutcome): boolean {
  return outcome.kind === 'upstream_error' && outcome.action === 'refresh_token'
}

/** The signal of a final response; most give none. */
function accountSignal(
  { access, target, request }: CallContext,
  outcome: ClassifiedOutcome,
  redaction: Redactor,
): AccountSignal | undefined {
  switch (outcome.kind) {
    case 'rate_limited':
      return undefined
    case 'success':
    case 'stream':
      return access.unauthorizedSince === undefined ? undefined : { kind: 'worked' }
    case 'upstream_error':
      switch (outcome.action) {
        case 'refresh_token':
        case 'needs_reauth':
          return { kind: 'unauthorized', message: outcome.message }
        case 'fail':
        case 'retry':
        case 'restart':
          return outcome.status === FORBIDDEN ? forbidden(target.method, request.target, redaction) : undefined
        case 'ignore':
        case 'stop':
          return undefined
      }
  }
}

/** A call to a path that no method describes is named by path and verb. */
function forbidden(
  { resource, method, verb }: CallContext['target']['method'],
  target: CallContext['request']['target'],
  redaction: Redactor,
): AccountSignal {
  if (target.kind !== 'path') return { kind: 'forbidden', resource, method }
  const [path = ''] = target.path.split('?', 1)
  return { kind: 'forbidden', resource: redaction.redactText(path), method: verb }
}

/** The reserved action that refreshes credentials. */
const REFRESH_ACTION = 'refresh_token'

/**
 * The dependencies for one step of an action. Credentials that are refreshed between steps come with the stored context, which
 * lacks the changes of this action: they are merged in. The refresh action itself neither refreshes nor reports.
 *
 * @param patch changes of the context by the steps before
 */
export function dependenciesForStep(deps: CallDependencies, action: string, patch: JsonObject): CallDependencies {
  const { credentialRefresher } = deps
  if (action === REFRESH_ACTION) return { ...deps, credentialRefresher: undefined, accountReporter: undefined }
  if (credentialRefresher === undefined) return deps
  const refresh: CredentialRefresher['refresh'] = async (access, signal) => {
    const refreshed = await credentialRefresher.refresh(access, signal)
    return refreshed === undefined ? undefined : withContextPatch(refreshed, patch)
  }
  return { ...deps, credentialRefresher: { refresh } }
}

/** The account with a change of its context, merged like the stored one: a given key replaces, null removes. */
export function withContextPatch(access: AccountAccess, patch: JsonObject): AccountAccess {
  const merged = Object.entries({ ...access.context, ...patch })
  const kept = merged.filter(([key, value]) => value !== null || !Object.hasOwn(patch, key))
  return { ...access, context: Object.fromEntries(kept) }
}
