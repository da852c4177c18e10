import { expect, it } from 'vitest'
import { generateKeyRingText } from '../../../../src/foundation/secrets/index.ts'
import { bootstrap, createApiToken, createTeam, listApiTokens } from '../../../../src/platform/tenancy/index.ts'
import { runInProcess } from '../../../support/command.ts'
import { testDatabase } from '../../../support/database.ts'

const { url, database } = await testDatabase()
const operator = { teamId: (await bootstrap(database))?.teamId ?? '', isOperator: true, scopes: undefined }
const environment = { DATABASE_URL: url, PATCHBAY_ENCRYPTION_KEYS: generateKeyRingText('test') }
const run = (...args: readonly string[]) => runInProcess(['token', ...args], environment)
const stored = async (teamId: string, name: string) => {
  const tokens = await listApiTokens(database.pool, teamId, { before: undefined, limit: 100 })
  return tokens.find((token) => token.name === name)
}

it('creates a token, lists it, revokes it once and shows it as revoked', async () => {
  const created = await run('create', '--name', 'deploys', '--preset', 'deploy')
  expect(created).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^pbt_\S+\n$/), stderr: '' })
  const { id = '', hint } = (await stored(operator.teamId, 'deploys')) ?? {}
  expect(created.stdout.trimEnd().endsWith(hint ?? '')).toBe(true)
  expect((await run('list')).stdout).toContain(`${id}  team         …${hint}  valid    deploy    deploys\n`)

  expect(await run('revoke', id)).toMatchObject({ exitCode: 0, stdout: `${id} is revoked\n`, stderr: '' })
  const revoked = await stored(operator.teamId, 'deploys')
  expect(revoked?.revokedAt).toBeInstanceOf(Date)
  expect((await run('list')).stdout).toContain(`${id}  team         …${hint}  revoked  deploy    deploys\n`)
  expect((await run('revoke', id)).exitCode).toBe(0)
  expect(await stored(operator.teamId, 'deploys')).toEqual(revoked)
})

it('revokes no token of another team', async () => {
  const other = await createTeam(database.pool, operator, { name: 'Other', domain: 'other.example' })
  const actor = { teamId: other.id, isOperator: false, scopes: undefined }
  const { apiToken } = await database.transaction((tx) =>
    createApiToken(tx, actor, { kind: 'team', name: 'theirs', scopes: { preset: 'full' } }),
  )
  const { exitCode, stdout, stderr } = await run('revoke', apiToken.id)
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
  expect(stderr).toMatch(/no .*token/)
  expect(await stored(other.id, 'theirs')).toEqual(apiToken)
})

it('creates a token that ends when it is said', async () => {
  const create = (expires: string) =>
    run('create', '--name', `until ${expires}`, '--preset', 'read', '--expires', expires)
  expect(await create('soon')).toMatchObject({ exitCode: 2, stdout: '' })
  expect(await create('2031-05-01T00:00:00Z')).toMatchObject({ exitCode: 0 })
  expect((await run('list')).stdout).toMatch(/until 2031-05-01T00:00:00.000Z {2}read .*until 2031-05-01/)
})
