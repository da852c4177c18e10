import type { Redaction } from '../vault/index.ts'
import type { AccountSign } from './account-keeper.ts'
import type { AnyAnswer } from './answer.ts'
import type { CallDependencies } from './dependencies.ts'
import type { Job } from './job.ts'
import { accountSecrets } from './redaction.ts'

const FORBIDDEN = 403

/**
 * Asks, once more with renewed credentials when the first ones were refused, and tells the keeper what the answer says about
 * the account. Without a keeper, and for the proof of a credential, the first answer is the answer.
 *
 * @param isRepeatable false when the body can be sent only once; the credentials are renewed all the same, for the next call
 * @throws Failure of `ask`; TOKEN_REQUEST_FAILED
 */
export async function keepAuthorised<A extends AnyAnswer>(
  { keeper, redaction }: Pick<CallDependencies, 'keeper' | 'redaction'>,
  job: Job,
  ask: () => Promise<A>,
  isRepeatable = true,
): Promise<A> {
  const first = await ask()
  const { request } = job
  if (keeper === undefined || request.target.kind === 'verification') return first
  const renewed = asksForRenewal(first) ? await keeper.renew(job.access, request.signal) : undefined
  if (renewed !== undefined) {
    job.access = renewed
    redaction.learn('renewed', () => accountSecrets(renewed))
  }
  if (renewed !== undefined && !isRepeatable) return first
  const answer = renewed === undefined ? first : await ask()
  const sign = signOf(job, answer, redaction)
  if (sign !== undefined) await keeper.note(job.access, sign)
  if (sign?.kind === 'worked') job.access = { ...job.access, needsReauth: false }
  return answer
}

function asksForRenewal(answer: AnyAnswer): boolean {
  return answer.kind === 'upstream_error' && answer.action === 'refresh_token'
}

/** What a final answer says about the account; most say nothing. */
function signOf({ access, target, request }: Job, answer: AnyAnswer, redaction: Redaction): AccountSign | undefined {
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
  { resource, method, verb }: Job['target']['method'],
  target: Job['request']['target'],
  redaction: Redaction,
): AccountSign {
  if (target.kind !== 'path') return { kind: 'forbidden', resource, method }
  const [path = ''] = target.path.split('?', 1)
  return { kind: 'forbidden', resource: redaction.text(path), method: verb }
}
