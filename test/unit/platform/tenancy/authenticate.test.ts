import { describe, expect, it } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import { execute, queryOne } from '../../../../src/foundation/database/index.ts'
import {
  bootstrap,
  createApiToken,
  createAuthenticator,
  createEnvironment,
  createTeam,
  deleteApiToken,
  revokeApiToken,
} from '../../../../src/platform/tenancy/index.ts'
import { mintToken } from '../../../../src/platform/tenancy/token-format.ts'
import { testDatabase } from '../../../support/database.ts'
import { manualClock } from '../../../support/manual-clock.ts'
import { authenticateText } from './authenticate-text.ts'

const { database } = await testDatabase()
const tx = database.pool
const first = (await bootstrap(database))!
const operator = { teamId: first.teamId, isOperator: true, scopes: undefined }
const other = await createTeam(tx, operator, { name: 'other' })
const otherEnvironment = await createEnvironment(tx, other.id, { name: 'theirs' })
const second = await createEnvironment(tx, first.teamId, { name: 'second' })

const teamToken = (expiresAt?: Date) =>
  database.transaction((tx) =>
    createApiToken(tx, operator, { kind: 'team', name: 't', scopes: { preset: 'full' }, expiresAt }),
  )

describe('authentication', () => {
  it.each([
    ['unknown', async () => mintToken('team').token],
    ['revoked', revokedToken],
    ['expired', async () => (await teamToken(new Date('2025-12-31T23:59:59Z'))).token],
    ['mistyped', async () => `${first.teamToken.slice(0, -1)}${first.teamToken.endsWith('a') ? 'b' : 'a'}`],
    ['empty', async () => ''],
  ])('answers the same to every bad token: %s', async (_, make) => {
    await using authenticator = createAuthenticator({ database, clock: manualClock() })
    await expect(authenticateText(authenticator, await make())).rejects.toMatchObject({
      reason: 'TOKEN_INVALID',
      publicMessage: 'the API token is not valid: it is unknown, expired or revoked',
    })
  })

  it('rejects a revoked token within a second; until then the cache may accept it', async () => {
    const { apiToken, token } = await teamToken()
    const clock = manualClock()
    await using authenticator = createAuthenticator({ database, clock })
    await authenticateText(authenticator, token)
    await database.transaction((tx) => revokeApiToken(tx, first.teamId, apiToken.id))
    clock.move(499)
    expect(await authenticateText(authenticator, token)).toMatchObject({ tokenId: apiToken.id })
    clock.move(1)
    await expect(authenticateText(authenticator, token)).rejects.toMatchObject({ reason: 'TOKEN_INVALID' })
  })

  it('rejects a token from the moment it expires, also one in the cache', async () => {
    const clock = manualClock()
    const { token } = await teamToken(new Date(clock.now().getTime() + 100))
    await using authenticator = createAuthenticator({ database, clock })
    await authenticateText(authenticator, token)
    clock.move(100)
    await expect(authenticateText(authenticator, token)).rejects.toMatchObject({ reason: 'TOKEN_INVALID' })
  })

  it('keeps the cache TTL when the clock is set back', async () => {
    const { apiToken, token } = await teamToken()
    const clock = manualClock()
    await using authenticator = createAuthenticator({ database, clock })
    await authenticateText(authenticator, token)
    await database.transaction((tx) => deleteApiToken(tx, first.teamId, { id: apiToken.id }))
    clock.move(-3_600_000)
    clock.move(500)
    await expect(authenticateText(authenticator, token)).rejects.toMatchObject({ reason: 'TOKEN_INVALID' })
  })

  it('recognises a token before its next look-up, until a look-up does not find it', async () => {
    const { apiToken, token } = await teamToken()
    const clock = manualClock()
    await using authenticator = createAuthenticator({ database, clock })
    expect(authenticator.parseToken(token)?.knownId).toBeUndefined()
    await authenticateText(authenticator, token)
    clock.move(60_000)
    expect(authenticator.parseToken(token)?.knownId).toBe(apiToken.id)
    await database.transaction((tx) => revokeApiToken(tx, first.teamId, apiToken.id))
    await expect(authenticateText(authenticator, token)).rejects.toMatchObject({ reason: 'TOKEN_INVALID' })
    expect(authenticator.parseToken(token)?.knownId).toBeUndefined()
  })

  it('recognises the token of a request for a foreign environment', async () => {
    const { apiToken, token } = await teamToken()
    await using authenticator = createAuthenticator({ database, clock: manualClock() })
    await expect(authenticateText(authenticator, token, otherEnvironment.id)).rejects.toMatchObject({
      reason: 'RESOURCE_NOT_FOUND',
    })
    expect(authenticator.parseToken(token)?.knownId).toBe(apiToken.id)
  })

  it('looks a token up once for concurrent calls', async () => {
    let statements = 0
    const counting = {
      get pool() {
        statements++
        return database.pool
      },
    }
    await using authenticator = createAuthenticator({ database: counting, clock: manualClock() })
    await Promise.all(Array.from({ length: 50 }, () => authenticateText(authenticator, first.environmentToken)))
    expect(statements, 'one look-up and one write of last_used_at').toBe(2)
  })

  it('looks a token up again after the database failed', async () => {
    const { token } = await teamToken()
    await using authenticator = createAuthenticator({ database, clock: manualClock() })
    await execute(tx, 'alter table api_token rename column token_hash to hidden')
    try {
      await expect(authenticateText(authenticator, token)).rejects.toThrow('token_hash')
    } finally {
      await execute(tx, 'alter table api_token rename column hidden to token_hash')
    }
    expect(await authenticateText(authenticator, token)).toMatchObject({ kind: 'team' })
  })

  it.each([
    ['of the team', () => second.id, undefined],
    ['of the team in capitals', () => second.id.toUpperCase(), undefined],
    ['of another team', () => otherEnvironment.id, 'RESOURCE_NOT_FOUND'],
    ['that is unknown', () => newId(), 'RESOURCE_NOT_FOUND'],
    ['that is no uuid', () => 'default', 'INVALID_FIELD'],
  ])('lets a team token select an environment %s, or says why not', async (_, header, reason) => {
    await using authenticator = createAuthenticator({ database, clock: manualClock() })
    const principal = authenticateText(authenticator, first.teamToken, header())
    if (reason === undefined) expect(await principal).toMatchObject({ environmentId: second.id })
    else await expect(principal).rejects.toMatchObject({ reason })
  })

  it('keeps an environment token in its environment', async () => {
    await using authenticator = createAuthenticator({ database, clock: manualClock() })
    const own = await authenticateText(authenticator, first.environmentToken, first.environmentId)
    expect(own).toMatchObject({ kind: 'environment', environmentId: first.environmentId })
    const elsewhere = authenticateText(authenticator, first.environmentToken, second.id)
    await expect(elsewhere).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  })

  it('writes last_used_at at most once a minute, without changing the version', async () => {
    const { apiToken, token } = await teamToken()
    const clock = manualClock()
    const start = clock.now()
    const authenticator = createAuthenticator({ database, clock })
    await authenticateText(authenticator, token)
    clock.move(59_999)
    await authenticateText(authenticator, token)
    await authenticator[Symbol.asyncDispose]()
    expect(await usedAt(apiToken.id)).toEqual({ lastUsedAt: start, version: 1 })
    clock.move(1)
    await authenticateText(authenticator, token)
    await authenticator[Symbol.asyncDispose]()
    expect(await usedAt(apiToken.id)).toEqual({ lastUsedAt: clock.now(), version: 1 })
  })

  it('accepts a token also when last_used_at cannot be written, and reports that', async () => {
    const { token } = await teamToken()
    const problems: unknown[] = []
    const authenticator = createAuthenticator({
      database,
      clock: manualClock(),
      onWriteError: (error) => problems.push(error),
    })
    await execute(tx, 'alter table api_token rename column last_used_at to hidden')
    try {
      await authenticateText(authenticator, token)
      await authenticator[Symbol.asyncDispose]()
    } finally {
      await execute(tx, 'alter table api_token rename column hidden to last_used_at')
    }
    expect(problems).toHaveLength(1)
  })
})

async function revokedToken(): Promise<string> {
  const { apiToken, token } = await teamToken()
  await database.transaction((tx) => revokeApiToken(tx, first.teamId, apiToken.id))
  return token
}

async function usedAt(id: string) {
  return await queryOne(tx, 'select last_used_at, version from api_token where id = :id', { id })
}
