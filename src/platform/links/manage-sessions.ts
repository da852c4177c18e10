import { notFound } from '../../foundation/base/index.ts'
import type { IdPage } from '../../foundation/database/index.ts'
import type { EnvironmentScope } from '../tenancy/sql/environments.ts'
import { commitLinkStatus, linkError } from './change-status.ts'
import { type SessionDependencies, settleSession, toLinkSession } from './load-session.ts'
import type { LinkSession, LinkTransition } from './session.ts'
import { listLinkTransitions } from './sql/link-change.ts'
import {
  findLinkSessionRecord,
  type LinkSessionFilter,
  type LinkSessionRecord,
  selectLinkSessions,
} from './sql/link-session.ts'

type Scope = Pick<EnvironmentScope, 'environmentId'>

/** A session with every change of its status, oldest first. */
export interface LinkSessionHistory {
  readonly session: LinkSession
  readonly transitions: readonly LinkTransition[]
}

/** A session as it is at the moment. @throws Failure RESOURCE_NOT_FOUND */
export async function getLinkSession(
  deps: SessionDependencies,
  { environmentId }: Scope,
  id: string,
): Promise<LinkSessionHistory> {
  const { pool } = deps.database
  const record = await findLinkSessionRecord(pool, { environmentId, id })
  if (record === undefined) throw notFound('link_token', id)
  const session = await settleSession(deps, record)
  const transitions = await listLinkTransitions(pool, environmentId, [id])
  return { session: toLinkSession(session), transitions: transitions.get(session.id) ?? [] }
}

/** At most `limit` sessions below the id `before`, newest first, as they are at the moment. */
export async function listLinkSessions(
  deps: SessionDependencies,
  { environmentId }: Scope,
  filter: LinkSessionFilter,
  page: IdPage,
): Promise<readonly LinkSessionHistory[]> {
  const { pool } = deps.database
  const sessions: LinkSessionRecord[] = []
  for (const record of await selectLinkSessions(pool, environmentId, filter, page))
    sessions.push(await settleSession(deps, record))
  const transitions = await listLinkTransitions(
    pool,
    environmentId,
    sessions.map(({ id }) => id),
  )
  return sessions.map((session) => ({
    session: toLinkSession(session),
    transitions: transitions.get(session.id) ?? [],
  }))
}

/**
 * Ends a session that has not ended. One that has ended stays as it is, and so does one whose account is stored and being
 * activated: it ends as the activation does. @throws Failure RESOURCE_NOT_FOUND
 */
export async function cancelLinkSession(
  deps: SessionDependencies,
  scope: Scope,
  id: string,
): Promise<LinkSessionHistory> {
  const key = { environmentId: scope.environmentId, id }
  await commitLinkStatus(deps, key, 'session_cancelled', { error: linkError('cancelled') })
  return await getLinkSession(deps, scope, id)
}
