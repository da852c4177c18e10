import type { Redactor } from '../vault/index.ts'
import type { AccountSignal } from './account-keeper.ts'
import type { ClassifiedOutcome } from './answer.ts'
import type { CallDependencies } from './dependencies.ts'
import type { CallContext } from './job.ts'
import { accountSecrets } from './redaction.ts'

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
