import type { JsonObject } from '../base/index.ts'
import type { Redactor } from '../redaction/index.ts'
import type { CallContext } from './call-context.ts'
import type { AccountSignal, CallDependencies, CredentialRefresher } from './dependencies.ts'
import type { ClassifiedOutcome } from './outcome.ts'
import { accountSecrets } from './redaction.ts'
import type { AccountAccess } from './request.ts'

const FORBIDDEN = 403

/**
 * Asks, once more with renewed credentials when the first ones were refused, and tells the keeper what the answer says about
 * the account. Without a keeper, and for the proof of a credential, the first answer is the answer.
 *
 * @param isRepeatable false when the body can be sent only once; the credentials are renewed all the same, for the next call
 * @throws Failure of `ask`; TOKEN_REQUEST_FAILED
 */
export async function withCredentialRefresh<A extends ClassifiedOutcome>(
  { keeper, redaction }: Pick<CallDependencies, 'keeper' | 'redaction'>,
  job: CallContext,
  send: () => Promise<A>,
  isRepeatable = true,
): Promise<A> {
  const first = await send()
  const { request } = job
  if (keeper === undefined || request.target.kind === 'verification') return first
  const renewed = needsRefresh(first) ? await keeper.refresh(job.access, request.signal) : undefined
  if (renewed !== undefined) {
    job.access = renewed
    redaction.setSecrets('renewed', () => accountSecrets(renewed))
  }
  if (renewed !== undefined && !isRepeatable) return first
  const answer = renewed === undefined ? first : await send()
  const sign = accountSignal(job, answer, redaction)
  if (sign !== undefined) await keeper.report(job.access, sign)
  if (sign?.kind === 'worked') job.access = { ...job.access, needsReauth: false }
  return answer
}

function needsRefresh(answer: ClassifiedOutcome): boolean {
  return answer.kind === 'upstream_error' && answer.action === 'refresh_token'
}

/** What a final answer says about the account; most say nothing. */
function accountSignal(
  { access, target, request }: CallContext,
  answer: ClassifiedOutcome,
  redaction: Redactor,
): AccountSignal | undefined {
  switch (answer.kind) {
    case 'rate_limited':
      return undefined
    case 'success':
    case 'stream':
      return access.needsReauth === true ? { kind: 'worked' } : undefined
    case 'upstream_error':
      switch (answer.action) {
        case 'refresh_token':
        case 'needs_reauth':
          return { kind: 'unauthorized', message: answer.message }
        case 'fail':
        case 'retry':
          return answer.status === FORBIDDEN ? forbidden(target.method, request.target, redaction) : undefined
        case 'ignore':
        case 'stop':
          return undefined
      }
  }
}

/** Calls to paths that no method describes are named by path and verb. */
function forbidden(
  { resource, method, verb }: CallContext['target']['method'],
  target: CallContext['request']['target'],
  redaction: Redactor,
): AccountSignal {
  if (target.kind !== 'path') return { kind: 'forbidden', resource, method }
  const [path = ''] = target.path.split('?', 1)
  return { kind: 'forbidden', resource: redaction.redactText(path), method: verb }
}

/** The action by which a keeper renews credentials. */
const REFRESH_ACTION = 'refresh_token'

/**
 * The keeper as the steps of an action see it: credentials that are renewed in mid-step come with the stored context, which
 * has nothing of this action yet. While the action is itself the renewal there is nobody to ask for another.
 *
 * @param patch what the steps before have changed of the context
 */
export function scopedRefresher(keeper: CredentialRefresher, action: string, patch: JsonObject): CredentialRefresher {
  const updateContext: CredentialRefresher['updateContext'] = (access, change) => keeper.updateContext(access, change)
  if (action === REFRESH_ACTION) return { refresh: async () => undefined, report: async () => {}, updateContext }
  return {
    async refresh(access, signal) {
      const renewed = await keeper.refresh(access, signal)
      return renewed === undefined ? undefined : withContextPatch(renewed, patch)
    },
    report: (access, sign) => keeper.report(access, sign),
    updateContext,
  }
}

/** The account with a change of its context, merged as the stored one will be: a key given replaces, null removes. */
export function withContextPatch(access: AccountAccess, patch: JsonObject): AccountAccess {
  const merged = Object.entries({ ...access.context, ...patch })
  const kept = merged.filter(([key, value]) => value !== null || !Object.hasOwn(patch, key))
  return { ...access, context: Object.fromEntries(kept) }
}
