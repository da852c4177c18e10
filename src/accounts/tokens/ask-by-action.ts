import type { Clock } from '../../base/index.ts'
import { readStandardTokenResponse, type TokenResult } from '../../formats/index.ts'
import type { ActionOutcome, Proxy as Engine } from '../../proxy/index.ts'
import type { ResolvedAccount } from '../ready-account.ts'

/** What renewing a token in steps needs. */
export interface TokenActionDeps {
  /** One that asks nobody to renew credentials: that is what is being done. */
  readonly engine: Pick<Engine, 'runAction'>
  readonly clock: Clock
}

/** The action of a definition that asks for the next token. */
export const REFRESH_ACTION = 'refresh_token'

/**
 * Asks for the next token by the action `refresh_token`; its result is read as the answer of a token endpoint
 * (`access_token`, `refresh_token`, `expires_in`). The message of a refusal holds nothing that was sent.
 *
 * @throws Failure of a step that was not answered; METHOD_NOT_DEFINED
 */
export async function requestTokenByAction(
  { engine, clock }: TokenActionDeps,
  { plan, access, token }: ResolvedAccount,
  signal: AbortSignal,
): Promise<TokenResult> {
  const target = { kind: 'action', action: REFRESH_ACTION } as const
  const { outcome: end, steps } = await engine.runAction(plan, access, { target, signal })
  if (end.kind === 'refused') throw end.failure
  const rules = { clientOwner: 'integration', now: clock.now(), previous: token } as const
  const answer = readStandardTokenResponse(responseOf(end), rules)
  return answer.kind === 'granted' ? answer : { ...answer, message: steps.at(-1)?.error ?? answer.message }
}

function responseOf(end: Exclude<ActionOutcome, { readonly kind: 'refused' }>) {
  switch (end.kind) {
    case 'ok':
      return { status: 200, headers: {}, body: end.result }
    case 'rate_limited':
      return { status: end.status, headers: { 'retry-after': String(end.retryAfterSeconds) }, body: end.body }
    case 'upstream_error':
      return { status: end.status, headers: end.headers, body: end.result ?? end.body }
  }
}
