import type { Plan } from '../../engine/definitions/index.ts'
import { Failure } from '../../foundation/base/index.ts'
import type { Db, Tx } from '../../foundation/database/index.ts'
import type { AccountDependencies, ActivationChange, LinkSessionPort } from '../accounts/dependencies.ts'
import { causeOfError, changeLinkStatus, linkError } from './change-status.ts'
import { hasSettings } from './post-connect-form.ts'
import { listLinkTransitions } from './sql/link-change.ts'
import { type LinkSessionRecord, listActivatingSessions } from './sql/link-session.ts'
import type { LinkCause } from './status.ts'

/** What follows when the account of a session is active: its settings form, or the end. */
export function causeOfActive(
  { skipPostConnectForm, context }: Pick<LinkSessionRecord, 'skipPostConnectForm' | 'context'>,
  plan: Pick<Plan, 'actions' | 'choicesBeforeActive'>,
): LinkCause {
  return !skipPostConnectForm && hasSettings(plan, context) ? 'settings_required' : 'account_active'
}

/** Records in link sessions how the activation of their account proceeds, in the transaction of each step. */
export function createLinkSessionPort({ definitions }: Pick<AccountDependencies, 'definitions'>): LinkSessionPort {
  return {
    async recordActivation(tx, account, change) {
      for (const session of await listActivatingSessions(tx, account))
        await recordInSession({ definitions }, tx, session, change)
    },
  }
}

async function recordInSession(
  { definitions }: Pick<AccountDependencies, 'definitions'>,
  tx: Tx,
  session: LinkSessionRecord,
  change: ActivationChange,
): Promise<void> {
  switch (change.kind) {
    case 'post_install_passed':
      await changeLinkStatus(tx, session, 'post_install_passed')
      return
    case 'choice_needed': {
      const isSupplied = change.fields.every((name) => Object.hasOwn(session.context, name))
      const error = linkError('validation_error', `the grant is not for the given ${change.fields.join(', ')}`)
      if (isSupplied) await changeLinkStatus(tx, session, causeOfError(error), { error })
      else await changeLinkStatus(tx, session, 'settings_required')
      return
    }
    case 'failed': {
      const error = linkError(change.code, change.message)
      await changeLinkStatus(tx, session, causeOfError(error), { error })
      return
    }
    case 'active':
      await changeLinkStatus(tx, session, await causeByDefinition({ definitions }, tx, session))
  }
}

/** Whether the form was submitted before the account was active, which waited for a choice. */
async function hasChosen(
  tx: Db,
  { environmentId, id }: LinkSessionRecord,
  { choicesBeforeActive }: Pick<Plan, 'choicesBeforeActive'>,
): Promise<boolean> {
  if (choicesBeforeActive.length === 0) return false
  const transitions = (await listLinkTransitions(tx, environmentId, [id])).get(id) ?? []
  return transitions.some(({ cause }) => cause === 'choice_submitted')
}

/** The end, where the definition no longer compiles: the account is active all the same. */
async function causeByDefinition(
  { definitions }: Pick<AccountDependencies, 'definitions'>,
  tx: Db,
  session: LinkSessionRecord,
): Promise<LinkCause> {
  const { environmentId, environmentIntegrationId } = session
  if (environmentIntegrationId === null) return 'account_active'
  try {
    const { plan } = await definitions.get(tx, environmentId, environmentIntegrationId)
    return (await hasChosen(tx, session, plan)) ? 'account_active' : causeOfActive(session, plan)
  } catch (error) {
    if (error instanceof Failure) return 'account_active'
    throw error
  }
}
