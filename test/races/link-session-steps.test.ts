import { describe, expect, it } from 'vitest'
import { Failure } from '../../src/foundation/base/index.ts'
import { execute, query } from '../../src/foundation/database/index.ts'
import { AccountActivator } from '../../src/platform/accounts/account-activator.ts'
import { deleteIntegratedAccount } from '../../src/platform/accounts/index.ts'
import {
  cancelByBrowser,
  cancelLinkSession,
  chooseIntegration,
  findLinkSession,
  getLinkSession,
  type LinkSessionRef,
  openLinkSession,
  reopenChoice,
  submitForm,
} from '../../src/platform/links/index.ts'
import { LINK_TRANSITIONS, type LinkCause, type LinkStatus } from '../../src/platform/links/status.ts'
import { caseCount, runSeed } from '../support/case-count.ts'
import { fastClock } from '../support/fast-clock.ts'
import { interleavings, type Lane, type Operation } from '../support/interleavings.ts'
import { freshName } from '../support/seeded-tenant.ts'
import { KEY_CONFIG, linksFixture } from '../unit/platform/links/fixture.ts'
import { startThirdParty } from '../unit/platform/links/third-party.ts'

const { domain, links, database, target, scope, install, create } = await linksFixture()
const { expectAlways } = interleavings(target, fastClock())
const peer = await startThirdParty()
const [chosen, other] = [await install(peer.keys()), await install(KEY_CONFIG)]
const VALUES = { api_key: 'k-canary', subdomain: 'acme' }

/** A session, the browser that chose an integration in it, and its customer. */
interface Session {
  readonly ref: LinkSessionRef
  readonly token: string
  readonly tenantId: string
}

async function choose(): Promise<Session> {
  const tenantId = freshName('tenant')
  const { token, session } = await create({ subject: { tenantId } })
  const opened = await openLinkSession(links, token)
  if (opened.kind !== 'opened') throw new Error(opened.code)
  const ref = { id: session.id, browserKey: opened.browserKey }
  await chooseIntegration(links, ref, chosen.id)
  return { ref, token, tenantId }
}

async function submit(): Promise<Session> {
  const session = await choose()
  await submitForm(links, session.ref, VALUES)
  return session
}

const linksOf = ({ database }: Pick<Lane, 'database'>) => ({ ...links, database })
const accountsSql = 'select id, status from integrated_account where tenant_id = :tenantId'
const accountsOf = async ({ tenantId }: Session, { pool } = database) =>
  await query<{ readonly id: string; readonly status: string }>(pool, accountsSql, { tenantId })

const activate = async ({ database }: Pick<Lane, 'database'>) =>
  await new AccountActivator({ ...domain.accounts, database, proxy: domain.proxy }).runOnce()

/** Everything that changes a session, or what it is about. */
const STEPS: Readonly<Record<string, (session: Session) => Operation>> = {
  'another browser that opens the link':
    ({ token }) =>
    (lane) =>
      openLinkSession(linksOf(lane), token),
  'a choice of another integration':
    ({ ref }) =>
    (lane) =>
      chooseIntegration(linksOf(lane), ref, other.id),
  'a way back':
    ({ ref }) =>
    (lane) =>
      reopenChoice(linksOf(lane), ref),
  'a submit':
    ({ ref }) =>
    (lane) =>
      submitForm(linksOf(lane), ref, VALUES),
  'a cancellation in the browser':
    ({ ref }) =>
    (lane) =>
      cancelByBrowser(linksOf(lane), ref),
  'a cancellation by the application':
    ({ ref }) =>
    (lane) =>
      cancelLinkSession(linksOf(lane), scope, ref.id),
  'the end of its time':
    ({ ref }) =>
    async (lane) => {
      const sql = "update link_session set expires_at = now() - interval '1 s' where id = :id"
      await execute(lane.database.pool, sql, { id: ref.id })
      await findLinkSession(linksOf(lane), ref)
    },
  'a pause of the installation': () => async (lane) => {
    const sql = 'update environment_integration set is_enabled = :isEnabled where id = :id'
    for (const isEnabled of [false, true]) await execute(lane.database.pool, sql, { isEnabled, id: chosen.id })
  },
  'an activation of the account': () => (lane) => activate(lane),
  'a deletion of the account': (session) => async (lane) => {
    for (const { id } of await accountsOf(session, lane.database)) {
      const key = { environmentId: scope.environmentId }
      await lane.database.transaction((tx) => deleteIntegratedAccount(domain.accounts, tx, key, { id }))
    }
  },
}

const STARTS = { 'whose form is shown': choose, 'whose account is activated': submit }

/** Every two of the steps, also the same one twice, after each start; others with each seed where not all are tried. */
const names = Object.keys(STEPS)
const all = Object.entries(STARTS).flatMap(([start, arrange]) =>
  names.flatMap((one, index) => names.slice(index).map((two) => ({ start, arrange, one, two }))),
)
const count = caseCount(2, 10, all.length)
const cases = Array.from(
  { length: count },
  (_, index) => all[(runSeed() + Math.floor((index * all.length) / count)) % all.length],
)

/** The transitions of a session, each from the status to which the one before it led. */
function expectTransitions(transitions: readonly { readonly toStatus: LinkStatus; readonly cause: LinkCause }[]): void {
  let from: LinkStatus | 'new' = 'new'
  for (const { cause, toStatus } of transitions) {
    expect((LINK_TRANSITIONS[from] as Partial<Record<LinkCause, LinkStatus>>)[cause], `${from} ${cause}`).toBe(toStatus)
    from = toStatus
  }
}

async function expectConsistent(given: Session): Promise<void> {
  // A deleted account takes its session along.
  const stored = await getLinkSession(links, scope, given.ref.id).catch((error) => {
    if (error instanceof Failure && error.reason === 'RESOURCE_NOT_FOUND') return undefined
    throw error
  })
  if (stored === undefined) {
    expect(await accountsOf(given)).toEqual([])
    return
  }
  const { session, transitions } = stored
  const causes = transitions.map(({ cause }) => cause)
  expectTransitions(transitions)
  expect(transitions.at(-1)?.toStatus).toBe(session.status)
  // A browser that lost the session connects nothing any more: the other one made no step.
  expect(causes.slice(causes.lastIndexOf('token_opened'))).not.toContain(
    causes.filter((cause) => cause === 'token_opened').length > 1 ? 'account_connected' : undefined,
  )
  const accounts = await accountsOf(given)
  if (!causes.includes('account_connected')) expect(accounts.length).toBe(causes.includes('account_active') ? 1 : 0)
  expect(accounts.length).toBeLessThanOrEqual(1)
  for (const { id, status } of accounts) expect([id, status]).toEqual([session.integratedAccountId, 'active'])
  const sql = 'select type, count(*) as n from event where subject_id = :id group by type'
  const events = await query<{ readonly type: string; readonly n: number }>(database.pool, sql, { id: given.ref.id })
  const failures = causes.filter((cause) => cause === 'attempt_failed' || cause === 'connection_failed').length
  const expected = {
    'link_token:completed': session.status === 'completed' ? 1 : 0,
    'link_token:connection_error': failures,
  }
  expect(Object.fromEntries(events.map(({ type, n }) => [type, n]))).toEqual(
    Object.fromEntries(Object.entries(expected).filter(([, n]) => n > 0)),
  )
  const [secrets] = await query(database.pool, 'select sealed_values, sealed_ticket from link_session where id = :id', {
    id: given.ref.id,
  })
  expect(secrets).toEqual({ sealedValues: null, sealedTicket: null })
}

describe.each(cases.flatMap((each) => (each === undefined ? [] : [each])))(
  'a link session $start',
  ({ arrange, one, two }) => {
    it(`is as its history says after ${one} beside ${two}`, async () => {
      await expectAlways<Session>({
        arrange,
        operations: (session) => [STEPS[one]?.(session) ?? never, STEPS[two]?.(session) ?? never],
        async check(session) {
          await execute(
            database.pool,
            "update integrated_account set connecting_due_at = now() - interval '1 s' where connecting_due_at is not null",
          )
          while (await activate({ database }));
          await expectConsistent(session)
        },
      })
    })
  },
)

const never: Operation = () => Promise.reject(new Error('no such step'))
