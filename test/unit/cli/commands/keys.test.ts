import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import { execute } from '../../../../src/foundation/database/index.ts'
import { createSecretStore, generateKeyRingText, parseKeyRing } from '../../../../src/foundation/secrets/index.ts'
import { runInProcess } from '../../../support/command.ts'
import { testDatabase } from '../../../support/database.ts'

const { url, database } = await testDatabase()
const { pool } = database
const directory = await mkdtemp(join(tmpdir(), 'patchbay-keys-'))
const file = join(directory, 'keys')
const [K1, K2] = ['k1', 'k2'].map(generateKeyRingText)
const ref = { ownerId: newId(), subjectType: 'webhook' as const, subjectId: newId() }

afterAll(() => rm(directory, { recursive: true, force: true }))

const storage = { DATABASE_URL: url, PATCHBAY_OBJECT_STORE_DIRECTORY: join(directory, 'objects') }
const run = (keys: Record<string, string>, ...args: readonly string[]) =>
  runInProcess(['keys', ...args], { ...storage, ...keys })
const withSetting = (...keys: (string | undefined)[]) => ({ PATCHBAY_ENCRYPTION_KEYS: keys.join(',') })
const storeOf = (...keys: (string | undefined)[]) => createSecretStore(parseKeyRing(keys.join(',')))

/** A process that runs, as it announces itself. */
async function announce(name: string, writesWith: string, ...keys: (string | undefined)[]): Promise<void> {
  const { names } = parseKeyRing(keys.join(','))
  await execute(
    pool,
    `insert into key_ring_process (id, name, known_keys, writes_with) values (gen_random_uuid(), :name, :names::text[], :writesWith)`,
    { name, names, writesWith },
  )
}
const endAll = () => execute(pool, 'delete from key_ring_process')

describe('keys in the setting', () => {
  it('are added, rotated and retired in deploys, each refused until the one before has reached every process', async () => {
    await storeOf(K1).put(pool, ref, { token: 'x' })
    const added = await run(withSetting(K1), 'add')
    expect(added.stdout).toMatch(/^PATCHBAY_ENCRYPTION_KEYS="k2:[\w+/=]{44},\$PATCHBAY_ENCRYPTION_KEYS"\n$/)

    await announce('patchbay serve a:1', 'k1', K1)
    const tooEarly = await run(withSetting(K2, K1), 'rotate')
    expect(tooEarly).toMatchObject({ exitCode: 1, stdout: '' })
    expect(tooEarly.stderr).toMatch(/serve a:1 could not read: give every process k2/)
    const unchecked = await run(withSetting(K2, K1), 'check')
    expect(unchecked).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/serve a:1 lacks k2: give it/) })
    const lacking = await run(withSetting(K2, K1), 'retire', 'k1')
    expect(lacking.stderr).toMatch(/k1 cannot be retired: patchbay serve a:1 writes with it.*counts for a minute/)

    await endAll()
    await announce('patchbay serve a:2', 'k1', K1, K2)
    const rotated = await run(withSetting(K2, K1), 'rotate')
    expect(rotated).toMatchObject({ exitCode: 0, stderr: '' })
    expect(rotated.stdout).toMatch(
      /1 data keys were wrapped under k2\npatchbay serve a:2 still writes with k1: make k2 the/,
    )
    await endAll()
    await announce('patchbay serve a:3', 'k2', K2, K1)
    expect((await run(withSetting(K2, K1), 'check')).stdout).toMatch(/every process has the keys it needs/)
    expect((await run(withSetting(K2, K1), 'list')).stdout).toMatch(
      /^k2 +first +1 data keys +1 rows +0 objects\nk1 +reads +0 data keys +0 rows +0 objects\n$/,
    )
    const retired = await run(withSetting(K2, K1), 'retire', 'k1')
    expect(retired).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/^k1 is retired.*every process\nBackups/),
    })
    await endAll()
    expect(await storeOf(K2).get(pool, ref)).toEqual({ token: 'x' })
  })

  it('cannot be retired while something is under them: the refusal counts it and names the command', async () => {
    const refused = await run(withSetting(K1, K2), 'retire', 'k2')
    expect(refused).toMatchObject({ exitCode: 1, stdout: '' })
    expect(refused.stderr).toMatch(/1 data keys \(1 rows, 0 objects\) are under it\. Run patchbay keys rotate/)
    expect((await run(withSetting(K2, K1), 'retire', 'k2')).stderr).toMatch(/first key here\. Make another one/)
    expect((await run(withSetting(K2, K1), 'retire', 'k9')).stderr).toMatch(/there is no key k9: patchbay keys list/)
  })

  it('that are missing are named by the check, which a start refuses', async () => {
    const checked = await run(withSetting(K1), 'check')
    expect(checked).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/the key k2 is missing here.*add it/) })
    expect(checked.stdout).toMatch(/^k1 +first .*\nk2 +missing /)
    const rotated = await run(withSetting(K1), 'rotate')
    expect(rotated).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/data keys under k2 were left.*add them/),
    })
    const wrong = await run(withSetting(generateKeyRingText('k2'), K1), 'check')
    expect(wrong.stderr).toMatch(/the key k2 here has other bytes.*put that one back/)
    expect((await run(withSetting(K1), 'rotate', '--data-keys')).stderr).toMatch(/key k2 is missing here.*add it/)
  })
})

describe('keys in a file', () => {
  const inFile = { PATCHBAY_ENCRYPTION_KEYS_FILE: file }

  it('are added to it, rotated, and taken out of it', async () => {
    await writeFile(file, `${K2}\n`, { mode: 0o640 })
    expect((await run(inFile, 'add', 'next')).stdout).toMatch(/^next is the first key in .*keys check\n$/)
    const text = await readFile(file, 'utf8')
    expect(text).toMatch(/^next:\S+,k2:\S+\n$/)
    expect((await stat(file)).mode & 0o777).toBe(0o640)
    expect((await run(inFile, 'add', 'next')).stderr).toMatch(/there is a key next: take another id/)
    expect((await run(inFile, 'rotate')).exitCode).toBe(0)
    expect((await run(inFile, 'retire', 'k2')).stdout).toMatch(/^k2 is retired and no longer in /)
    const [left = ''] = (await readFile(file, 'utf8')).split('\n')
    expect(text).toContain(left)
    expect(left).toMatch(/^next:[^,]+$/)
    expect(await storeOf(left).get(pool, ref)).toEqual({ token: 'x' })
    expect((await run(inFile, 'retire', 'next')).stderr).toMatch(/first key here/)
  })

  it('and in the setting at once are refused', async () => {
    expect((await run({ ...inFile, ...withSetting(K2) }, 'list')).stderr).toMatch(
      /takes the place of .*: set one of them/,
    )
  })
})

describe('data keys', () => {
  const inFile = { PATCHBAY_ENCRYPTION_KEYS_FILE: file }

  it('of one owner or of all are replaced, and the values under them encrypted anew', async () => {
    const one = await run(inFile, 'rotate', '--data-keys', '--environment', ref.ownerId)
    expect(one).toMatchObject({ exitCode: 0, stderr: '' })
    expect(one.stdout).toMatch(
      /all values are under new data keys; workers delete the replaced ones within the hour\n$/,
    )
    expect((await run(inFile, 'list')).stdout).toMatch(
      /1 replaced data keys have no values and are deleted within the hour/,
    )
    expect((await run(inFile, 'rotate', '--data-keys')).exitCode).toBe(0)
    expect((await run(inFile, 'list')).stdout).toMatch(/2 replaced data keys have no values/)
    expect(await storeOf((await readFile(file, 'utf8')).trim()).get(pool, ref)).toEqual({ token: 'x' })
  })

  it('of an environment that is none are not', async () => {
    expect((await run(inFile, 'rotate', '--environment', newId())).stderr).toMatch(/no environment|environment .*not/)
    expect((await run(inFile, 'rotate', '--data-keys', '--environment', 'x')).exitCode).toBe(2)
  })
})
