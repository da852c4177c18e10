import { describe, expect, it } from 'vitest'
import { refreshDueTokens } from '../../../../src/platform/accounts/token-refresher.ts'
import { updateIntegration } from '../../../../src/platform/integrations/index.ts'
import { CLIENT_CREDENTIALS, errorResponse, tokensFixture } from './token-fixture.ts'

const fixture = await tokensFixture()
const {
  database,
  own,
  deps,
  tokenDeps,
  server,
  process,
  addClient,
  addConsent,
  installed,
  statusOf,
  tokenRow,
  alterToken,
} = fixture

const FIRST = { access_token: 'first-token', expires_in: 3600 }
const SECOND = { access_token: 'second-token', expires_in: 3600 }
const CONSENT = { access_token: 'first-token', refresh_token: 'first-refresh', expires_in: 3600 }
const DUE = `due_at = now() - interval '1 second'`

const worker = (regions?: readonly string[]) => ({ runOnce: () => refreshDueTokens({ ...tokenDeps, regions }) })

/** An active account with a token. */
async function addWithToken(...input: Parameters<typeof addClient>): Promise<string> {
  const id = await addClient(...input)
  server.answer(FIRST)
  await process().load(id)
  server.answer(SECOND)
  return id
}

/** How long before its token ends an account is due. */
async function earlyMs(id: string): Promise<number> {
  const { dueAt, expiresAt } = (await tokenRow(id)) as { dueAt: Date; expiresAt: Date }
  return expiresAt.getTime() - dueAt.getTime()
}

describe('the background', () => {
  it('comes before calls would have to ask', async () => {
    const id = await addWithToken()
    expect(await earlyMs(id)).toBe(300_000)
    await alterToken(id, DUE)
    await refreshDueTokens({ ...tokenDeps, random: () => 1 })
    expect(await earlyMs(id)).toBe(450_000)
  })

  it('refreshes what is due and nothing else', async () => {
    const [due, fresh] = [await addWithToken(), await addWithToken()]
    await alterToken(due, DUE)
    expect(await worker().runOnce()).toBe(false)
    expect(await tokenRow(due)).toMatchObject({ version: 2, leaseId: null })
    expect(await tokenRow(fresh)).toMatchObject({ version: 1 })
    expect(server.asked).toHaveLength(1)
    expect((await process().load(due)).access.credentials.oauth).toMatchObject({ token: SECOND })
  })

  it('looks once when nothing is due', async () => {
    const statements: string[] = []
    const knex = database.pool
    const note = ({ sql }: { sql: string }) => statements.push(sql)
    knex.on('query', note)
    expect(await worker().runOnce()).toBe(false)
    knex.removeListener('query', note)
    expect(statements).toHaveLength(1)
  })

  it('is shared by workers: each token is asked for once', async () => {
    const ids = [await addWithToken(), await addWithToken(), await addWithToken()]
    for (const id of ids) await alterToken(id, DUE)
    await Promise.all([worker().runOnce(), worker().runOnce(), worker().runOnce()])
    expect(server.asked).toHaveLength(3)
    for (const id of ids) expect(await tokenRow(id)).toMatchObject({ version: 2 })
  })

  it('goes on at once while a round is full', async () => {
    const ids: string[] = []
    for (let made = 0; made < 17; made++) ids.push(await addWithToken())
    for (const id of ids) await alterToken(id, DUE)
    const one = worker()
    expect(await one.runOnce()).toBe(true)
    expect(await one.runOnce()).toBe(false)
    expect(server.asked).toHaveLength(17)
  })

  it('leaves accounts of other regions to others', async () => {
    const id = await addWithToken(CLIENT_CREDENTIALS, { region: 'eu' })
    await alterToken(id, DUE)
    await worker(['wnam', 'apac']).runOnce()
    expect(server.asked).toEqual([])
    await worker(['eu']).runOnce()
    expect(server.asked).toHaveLength(1)
  })

  it('stops for an account whose grant is rejected, and continues with the others', async () => {
    const [gone, good] = [await addConsent(CONSENT), await addWithToken()]
    await alterToken(gone, `due_at = now() - interval '2 seconds'`)
    await alterToken(good, DUE)
    server.answer(errorResponse(400, { error: 'invalid_grant' }), SECOND)
    await worker().runOnce()
    const rows = [await tokenRow(gone), await tokenRow(good)]
    expect(rows.filter((row) => row?.version === 2)).toHaveLength(1)
    await worker().runOnce()
    expect(server.asked).toHaveLength(2)
  })

  it('retries after a back-off while the server is down', async () => {
    const id = await addWithToken()
    await alterToken(id, DUE)
    server.answer({ status: 503, text: '' }, SECOND)
    const one = worker()
    await one.runOnce()
    await one.runOnce()
    expect(server.asked).toHaveLength(1)
    expect(await statusOf(id)).toMatchObject({ status: 'active' })
    await alterToken(id, `${DUE}, retry_at = now() - interval '1 second'`)
    await one.runOnce()
    expect(await tokenRow(id)).toMatchObject({ version: 2, failures: 0 })
  })

  it('does not come for tokens that cannot be refreshed', async () => {
    const id = await addConsent({ access_token: 'first-token', expires_in: 3600 })
    expect(await tokenRow(id)).toMatchObject({ dueAt: null, version: 1 })
  })

  it('backs off where the definition no longer describes how to request a token', async () => {
    const environmentIntegrationId = await installed({ ...CLIENT_CREDENTIALS })
    const id = await addWithToken(CLIENT_CREDENTIALS, { environmentIntegrationId })
    const { account } = await process().load(id)
    const change = { id: account.integrationId, config: { credentials: null }, version: account.integrationVersion }
    await database.transaction((tx) => updateIntegration(deps, tx, own.teamId, change))
    await alterToken(id, DUE)
    const one = worker()
    await one.runOnce()
    await one.runOnce()
    expect(server.asked).toEqual([])
    expect(await tokenRow(id)).toMatchObject({ error: { kind: 'client_refused' }, failures: 1 })
  })
})
