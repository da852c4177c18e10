import { describe, expect, it } from 'vitest'
import { query } from '../../src/database/database.ts'
import { Database } from '../../src/database/index.ts'
import { bootstrap, createAuthenticator, type FirstStart } from '../../src/tenancy/index.ts'
import { testDatabase } from '../support/database.ts'
import { manualClock } from '../support/manual-clock.ts'
import { authenticateText } from './authenticate-text.ts'

const CHOSEN = 'a-team-token-of-the-operators-choosing'

describe('bootstrap', () => {
  it('makes one team, environment and pair of tokens when 16 processes start at the same moment', async () => {
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

  it('makes tokens that are admitted, the team one as the operator', async () => {
    const { database } = await testDatabase()
    const made = await bootstrap(database)
    await using admission = createAuthenticator({ database, clock: manualClock() })
    const { teamId, environmentId } = made!
    expect(await authenticateText(admission, made!.teamToken)).toMatchObject({ kind: 'team', teamId, isOperator: true })
    expect(await authenticateText(admission, made!.environmentToken)).toMatchObject({
      kind: 'environment',
      teamId,
      environmentId,
    })
  })

  it('changes nothing when there is an operator', async () => {
    const { database } = await testDatabase()
    await bootstrap(database)
    expect(await bootstrap(database, { teamToken: CHOSEN })).toBeUndefined()
    await using admission = createAuthenticator({ database, clock: manualClock() })
    await expect(authenticateText(admission, CHOSEN)).rejects.toMatchObject({ reason: 'TOKEN_INVALID' })
  })

  it('takes the team token of the operator', async () => {
    const { database } = await testDatabase()
    const made = await bootstrap(database, { teamToken: CHOSEN })
    expect(made!.teamToken).toBe(CHOSEN)
    await using admission = createAuthenticator({ database, clock: manualClock() })
    expect(await authenticateText(admission, CHOSEN)).toMatchObject({ teamId: made!.teamId })
  })

  it('refuses a chosen token that is too short, and makes nothing', async () => {
    const { database } = await testDatabase()
    await expect(bootstrap(database, { teamToken: 'short' })).rejects.toThrow('32 to 256')
    expect(await query(database.pool, 'select id from team')).toEqual([])
  })

  it('makes nothing when what it made could not be kept, and all of it at the next start', async () => {
    const { database } = await testDatabase()
    const failing = bootstrap(database, { persist: () => Promise.reject(new Error('disk full')) })
    await expect(failing).rejects.toThrow('disk full')
    const kept: FirstStart[] = []
    const made = await bootstrap(database, { persist: async (first) => void kept.push(first) })
    expect(kept).toEqual([made])
  })
})
