import { Failure } from '../base/index.ts'
import type { IntegrationCache } from '../integrations/index.ts'
import type { Tx } from '../storage/index.ts'
import { changeAccountStatus } from './change-status.ts'
import type { IntegratedAccount } from './embedded.ts'
import { type EnvironmentRef, getIntegratedAccount } from './integrated-account.ts'

/**
 * Has the steps of an account repeated after they failed: it is `connecting` from then on, and every step runs again.
 *
 * @throws Failure RESOURCE_NOT_FOUND; ACCOUNT_STATUS_CONFLICT, with the status in its metadata, for an account whose steps have
 * not failed
 */
export async function runAccountActions(
  deps: { readonly integrations: IntegrationCache },
  tx: Tx,
  scope: EnvironmentRef,
  { id }: { readonly id: string },
): Promise<IntegratedAccount> {
  const change = await changeAccountStatus(tx, { environmentId: scope.environmentId, id }, 'steps_repeated')
  if (change.kind === 'impossible') throw stepsNotFailed(id, change.from)
  return await getIntegratedAccount(deps, tx, scope, id)
}

const ADVICE: Readonly<Record<string, string>> = {
  connecting: 'its steps are tried by themselves until they pass or fail; next_attempt_at says when',
  active: 'its steps have passed',
  needs_reauth: 'it needs new credentials, with which its steps run again',
}

function stepsNotFailed(id: string, status: string): Failure {
  const why = ADVICE[status] ?? 'its steps have not failed'
  const message = `the account is ${status}: ${why}; steps are repeated after post_install_error and validation_error`
  return new Failure('ACCOUNT_STATUS_CONFLICT', message, {
    resource: { type: 'integrated_account', id },
    metadata: { status },
  })
}
