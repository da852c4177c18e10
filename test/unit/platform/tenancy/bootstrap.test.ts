import { describe, expect, it } from 'vitest'
import { Database, query } from '../../../../src/foundation/database/index.ts'
import { bootstrap, createAuthenticator, type FirstStart } from '../../../../src/platform/tenancy/index.ts'
import { testDatabase } from '../../../support/database.ts'
import { manualClock } from '../../../support/manual-clock.ts'
import { authenticateText } from './authenticate-text.ts'

const CHOSEN = 'a-team-token-of-the-operators-choosing'

describe('bootstrap', () => {
  it('creates one team, environment and pair of tokens when 16 processes start at the same moment', async () => {
    const { target } = await testDatabase()
    const starters = Array.from({ length: 16 }, () => new Database({ target, poolMax: 1 }))
    const results = await Promise.all(starters.map((starter) => bootstrap(starter)))
    for (const starter of starters.slice(1)) await starter[Symbol.asyncDispose]()
    await using database = starters[0]!
    expect(results.filter((result) => result !== undefined)).toHaveLength(1)
    const counts = await query(
      database.pool,
      `select (select count(*) from team) as teams, (select count(*) from environment) as environments,
         (select count(*) from api_token) as tokens`,
    )
    expect(counts).toEqual([{ teams: 1, environments: 1, tokens: 2 }])
  })

  it('creates tokens that authenticate, the team token as the operator', async () => {
    const { database } = await testDatabase()
    const created = await bootstrap(database)
    await using authenticator = createAuthenticator({ database, clock: manualClock() })
    const { teamId, environmentId } = created!
    expect(await authenticateText(authenticator, created!.teamToken)).toMatchObject({
      kind: 'team',
      teamId,
      isOperator: true,
    })
    expect(await authenticateText(authenticator, created!.environmentToken)).toMatchObject({
      kind: 'environment',
      teamId,
      environmentId,
    })
  })

  it('changes nothing when there is an operator', async () => {
    const { database } = await testDatabase()
    await bootstrap(database)
    expect(await bootstrap(database, { teamToken: CHOSEN })).toBeUndefined()
    await using authenticator = createAuthenticator({ database, clock: manualClock() })
    await expect(authenticateText(authenticator, CHOSEN)).rejects.toMatchObject({ reason: 'TOKEN_INVALID' })
  })

  it('takes the team token of the operator', async () => {
    const { database } = await testDatabase()
    const created = await bootstrap(database, { teamToken: CHOSEN })
    expect(created!.teamToken).toBe(CHOSEN)
    await using authenticator = createAuthenticator({ database, clock: manualClock() })
    expect(await authenticateText(authenticator, CHOSEN)).toMatchObject({ teamId: created!.teamId })
  })

  it('rejects a chosen token that is too short, and creates nothing', async () => {
    const { database } = await testDatabase()
    await expect(bootstrap(database, { teamToken: 'short' })).rejects.toThrow('32 to 256')
    expect(await query(database.pool, 'select id from team')).toEqual([])
  })

  it('creates nothing when the tokens could not be stored, and everything at the next start', async () => {
    const { database } = await testDatabase()
    const failing = bootstrap(database, { persist: () => Promise.reject(new Error('disk full')) })
    await expect(failing).rejects.toThrow('disk full')
    const stored: FirstStart[] = []
    const created = await bootstrap(database, { persist: async (first) => void stored.push(first) })
    expect(stored).toEqual([created])
  })
})
