import { expect, it, onTestFinished, vi } from 'vitest'
import { runCommand } from '../../../../src/cli/commands/run-command.ts'
import { generateKeyRingText } from '../../../../src/foundation/secrets/index.ts'
import { bootstrap, createTeam } from '../../../../src/platform/tenancy/index.ts'
import { findTeam } from '../../../../src/platform/tenancy/sql/teams.ts'
import { testDatabase } from '../../../support/database.ts'

const { url, database } = await testDatabase()
const first = await bootstrap(database)
const operator = { teamId: first?.teamId ?? '', isOperator: true }
const other = await createTeam(database.pool, operator, { name: 'Other', domain: 'other.example' })
const environment = { DATABASE_URL: url, PATCHBAY_ENCRYPTION_KEYS: generateKeyRingText('test') }

async function run(...args: readonly string[]) {
  const [stdout, stderr] = [process.stdout, process.stderr].map((stream) =>
    vi.spyOn(stream, 'write').mockReturnValue(true),
  )
  onTestFinished(() => void vi.restoreAllMocks())
  const exitCode = await runCommand(['team', ...args], environment)
  const [out = '', err = ''] = [stdout, stderr].map((each) => each?.mock.calls.map(([text]) => text).join(''))
  vi.restoreAllMocks()
  return { exitCode, out, err }
}

it('verifies a team and takes the mark away, once each, and lists it', async () => {
  expect(await run('verify', other.id)).toEqual({ exitCode: 0, out: `Other (${other.id}) is verified\n`, err: '' })
  const verified = await findTeam(database.pool, other.id)
  expect(verified).toMatchObject({ isVerified: true, version: 2 })
  expect((await run('verify', other.id)).exitCode).toBe(0)
  expect(await findTeam(database.pool, other.id)).toEqual(verified)

  const { out } = await run('list')
  expect(out.trimEnd().split('\n')).toEqual([
    `${other.id}  verified    Other  other.example`,
    expect.stringMatching(new RegExp(`^${operator.teamId}  unverified  `)),
  ])
  expect(await run('unverify', other.id)).toMatchObject({ out: `Other (${other.id}) is not verified\n` })
  expect(await findTeam(database.pool, other.id)).toMatchObject({ isVerified: false })
})

it.each([
  ['an id that is none', 'x', 2],
  ['an unknown team', '01a1febe-108f-77e8-836b-f40b4a24d381', 1],
])('rejects %s in one line', async (_, id, code) => {
  const { exitCode, out, err } = await run('verify', id)
  expect({ exitCode, out, lines: err.trimEnd().split('\n').length }).toEqual({ exitCode: code, out: '', lines: 1 })
})
