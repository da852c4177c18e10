import { describe, expect, it } from 'vitest'
import { newId } from '../../src/base/index.ts'
import { execute, queryOne } from '../../src/database/database.ts'
import {
  bootstrap,
  createApiToken,
  createAuthenticator,
  createEnvironment,
  createTeam,
  deleteApiToken,
  revokeApiToken,
} from '../../src/tenancy/index.ts'
import { mintToken } from '../../src/tenancy/token-format.ts'
import { testDatabase } from '../support/database.ts'
import { manualClock } from '../support/manual-clock.ts'
import { authenticateText } from './authenticate-text.ts'

const { database } = await testDatabase()
const tx = database.pool
const first = (await bootstrap(database))!
const operator = { teamId: first.teamId, isOperator: true }
const other = await createTeam(tx, operator, { name: 'other' })
const otherEnvironment = await createEnvironment(tx, other.id, { name: 'theirs' })
const second = await createEnvironment(tx, first.teamId, { name: 'second' })

const teamToken = (expiresAt?: Date) => createApiToken(tx, operator, { kind: 'team', name: 't', expiresAt })

describe('admission', () => {
  it.each([
    ['unknown', async () => mintToken('team').token],
    ['revoked', revokedToken],
    ['expired', async () => (await teamToken(new Date('2025-12-31T23:59:59Z'))).token],
    ['misspelt', async () => `${first.teamToken.slice(0, -1)}${first.teamToken.endsWith('a') ? 'b' : 'a'}`],
    ['empty', async () => ''],
  ])('answers the same to every bad token: %s', async (_, make) => {
    await using admission = createAuthenticator({ database, clock: manualClock() })
    await expect(authenticateText(admission, await make())).rejects.toMatchObject({
      reason: 'TOKEN_INVALID',
      publicMessage: 'the API token is not valid: it is unknown, expired or revoked',
    })
  })

  it('refuses a revoked token within a second, and until then may believe what it read', async () => {
    const { apiToken, token } = await teamToken()
    const clock = manualClock()
    await using admission = createAuthenticator({ database, clock })
    await authenticateText(admission, token)
    await revokeApiToken(tx, first.teamId, apiToken.id)
    clock.move(499)
    expect(await authenticateText(admission, token)).toMatchObject({ tokenId: apiToken.id })
    clock.move(1)
    await expect(authenticateText(admission, token)).rejects.toMatchObject({ reason: 'TOKEN_INVALID' })
  })

  it('refuses a token on the moment it expires, whatever it read before', async () => {
    const clock = manualClock()
    const { token } = await teamToken(new Date(clock.now().getTime() + 100))
    await using admission = createAuthenticator({ database, clock })
    await authenticateText(admission, token)
    clock.move(100)
    await expect(authenticateText(admission, token)).rejects.toMatchObject({ reason: 'TOKEN_INVALID' })
  })

  it('keeps what it read no longer when the clock is set back', async () => {
    const { apiToken, token } = await teamToken()
    const clock = manualClock()
    await using admission = createAuthenticator({ database, clock })
    await authenticateText(admission, token)
    await deleteApiToken(tx, first.teamId, { id: apiToken.id })
    clock.move(-3_600_000)
    clock.move(500)
    await expect(authenticateText(admission, token)).rejects.toMatchObject({ reason: 'TOKEN_INVALID' })
  })

  it('knows a token before it is looked up again, until a look-up does not find it', async () => {
    const { apiToken, token } = await teamToken()
    const clock = manualClock()
    await using admission = createAuthenticator({ database, clock })
    expect(admission.parseToken(token)?.knownId).toBeUndefined()
    await authenticateText(admission, token)
    clock.move(60_000)
    expect(admission.parseToken(token)?.knownId).toBe(apiToken.id)
    await revokeApiToken(tx, first.teamId, apiToken.id)
    await expect(authenticateText(admission, token)).rejects.toMatchObject({ reason: 'TOKEN_INVALID' })
    expect(admission.parseToken(token)?.knownId).toBeUndefined()
  })

  it('knows the token of a request that names a foreign environment', async () => {
    const { apiToken, token } = await teamToken()
    await using admission = createAuthenticator({ database, clock: manualClock() })
    await expect(authenticateText(admission, token, otherEnvironment.id)).rejects.toMatchObject({
      reason: 'RESOURCE_NOT_FOUND',
    })
    expect(admission.parseToken(token)?.knownId).toBe(apiToken.id)
  })

  it('looks a token up once for calls that come together', async () => {
    let statements = 0
    const counting = {
      get pool() {
        statements++
        return database.pool
      },
    }
    await using admission = createAuthenticator({ database: counting, clock: manualClock() })
    await Promise.all(Array.from({ length: 50 }, () => authenticateText(admission, first.environmentToken)))
    expect(statements, 'one look-up and one note of use').toBe(2)
  })

  it('asks again after the database failed', async () => {
    const { token } = await teamToken()
    await using admission = createAuthenticator({ database, clock: manualClock() })
    await execute(tx, 'alter table api_token rename column token_hash to hidden')
    try {
      await expect(authenticateText(admission, token)).rejects.toThrow('token_hash')
    } finally {
      await execute(tx, 'alter table api_token rename column hidden to token_hash')
    }
    expect(await authenticateText(admission, token)).toMatchObject({ kind: 'team' })
  })

  it.each([
    ['of the team', () => second.id, undefined],
    ['of the team in capitals', () => second.id.toUpperCase(), undefined],
    ['of another team', () => otherEnvironment.id, 'RESOURCE_NOT_FOUND'],
    ['that is unknown', () => newId(), 'RESOURCE_NOT_FOUND'],
    ['that is no uuid', () => 'default', 'INVALID_FIELD'],
  ])('lets a team token name an environment %s, or says why not', async (_, header, reason) => {
    await using admission = createAuthenticator({ database, clock: manualClock() })
    const admitted = authenticateText(admission, first.teamToken, header())
    if (reason === undefined) expect(await admitted).toMatchObject({ environmentId: second.id })
    else await expect(admitted).rejects.toMatchObject({ reason })
  })

  it('keeps an environment token in its environment', async () => {
    await using admission = createAuthenticator({ database, clock: manualClock() })
    const own = await authenticateText(admission, first.environmentToken, first.environmentId)
    expect(own).toMatchObject({ kind: 'environment', environmentId: first.environmentId })
    const elsewhere = authenticateText(admission, first.environmentToken, second.id)
    await expect(elsewhere).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  })

  it('notes a use at most once a minute, without changing the version', async () => {
    const { apiToken, token } = await teamToken()
    const clock = manualClock()
    const start = clock.now()
    const admission = createAuthenticator({ database, clock })
    await authenticateText(admission, token)
    clock.move(59_999)
    await authenticateText(admission, token)
    await admission[Symbol.asyncDispose]()
    expect(await usedAt(apiToken.id)).toEqual({ last_used_at: start, version: 1 })
    clock.move(1)
    await authenticateText(admission, token)
    await admission[Symbol.asyncDispose]()
    expect(await usedAt(apiToken.id)).toEqual({ last_used_at: clock.now(), version: 1 })
  })

  it('admits all the same when a use cannot be noted, and says so', async () => {
    const { token } = await teamToken()
    const problems: unknown[] = []
    const admission = createAuthenticator({
      database,
      clock: manualClock(),
      onWriteError: (error) => problems.push(error),
    })
    await execute(tx, 'alter table api_token rename column last_used_at to hidden')
    try {
      await authenticateText(admission, token)
      await admission[Symbol.asyncDispose]()
    } finally {
      await execute(tx, 'alter table api_token rename column hidden to last_used_at')
    }
    expect(problems).toHaveLength(1)
  })
})

async function revokedToken(): Promise<string> {
  const { apiToken, token } = await teamToken()
  await revokeApiToken(tx, first.teamId, apiToken.id)
  return token
}

async function usedAt(id: string) {
  return await queryOne(tx, 'select last_used_at, version from api_token where id = ?', [id])
}
