import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, describe, expect, inject, it } from 'vitest'
import { someCases } from '../../support/case-count.ts'
import { runInProcess, runToExit } from '../../support/command.ts'
import { preparedDataDir } from '../../support/prepared-data-dir.ts'
import { freePort, removeDataDir, temporaryDataDir } from '../../support/product.ts'
import { TLS_KEYS } from '../../unit/server/api/support/tls-keys.ts'

const dataDir = temporaryDataDir()
const other = temporaryDataDir()
const file = join(dataDir, 'file')
const certificate = join(dataDir, 'cert.pem')
writeFileSync(file, 'not a directory, and no PEM')
writeFileSync(certificate, TLS_KEYS.cert)
const KEYS = `k1:${randomBytes(32).toString('base64')}`
/** Accepts connections and never says a word. */
const silent = createServer()
await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
const { port: silentPort } = silent.address() as { readonly port: number }
const deadPort = await freePort()
const linked = temporaryDataDir()
symlinkSync(other, join(linked, 'postgres'))

afterAll(() => {
  silent.close()
  for (const dir of [dataDir, other, linked]) removeDataDir(dir)
})

const postgres = (port: number) => ({
  DATABASE_URL: `postgres://patchbay@127.0.0.1:${port}/patchbay`,
  PATCHBAY_ENCRYPTION_KEYS: KEYS,
})

describe('a start that cannot succeed ends with one line that names the setting', () => {
  it.each<[string, NodeJS.ProcessEnv, RegExp]>([
    ['a data directory that is a file', { PATCHBAY_DATA_DIR: file }, /PATCHBAY_DATA_DIR .*\/file is a file/],
    ['a data directory below a file', { PATCHBAY_DATA_DIR: join(file, 'x') }, /PATCHBAY_DATA_DIR .*\/file is a file/],
    ['a data directory below /proc', { PATCHBAY_DATA_DIR: '/proc/x' }, /PATCHBAY_DATA_DIR \/proc\/x cannot be made/],
    ['a data directory that cannot be written', { PATCHBAY_DATA_DIR: '/proc' }, /PATCHBAY_DATA_DIR \/proc cannot be/],
    [
      'a symbolic link in place of its PostgreSQL',
      { PATCHBAY_DATA_DIR: linked },
      /PATCHBAY_DATA_DIR .*\/postgres is not a directory of this server: set PATCHBAY_DATA_DIR/,
    ],
    ['a port that is taken', { PATCHBAY_PORT: String(silentPort) }, new RegExp(`PATCHBAY_PORT ${silentPort} .*in use`)],
    ['an address of another machine', { PATCHBAY_HOST: '192.0.2.1' }, /PATCHBAY_HOST 192\.0\.2\.1/],
    ['a metrics port that is taken', { PATCHBAY_METRICS_PORT: String(silentPort) }, /PATCHBAY_METRICS_PORT/],
    ['a database of another kind', { DATABASE_URL: 'mysql://x' }, /DATABASE_URL takes postgres:/],
    ['an unreachable database', postgres(deadPort), /DATABASE_URL.*ECONNREFUSED/],
    [
      'a database without keys',
      { DATABASE_URL: postgres(deadPort).DATABASE_URL },
      /PATCHBAY_ENCRYPTION_KEYS is required/,
    ],
    ['a certificate that is not there', tls('/nowhere.pem', certificate), /PATCHBAY_TLS_CERT.*nowhere/],
    ['a certificate that is none', tls(file, certificate), /PATCHBAY_TLS_CERT and PATCHBAY_TLS_KEY/],
    ['a key that is none', tls(certificate, certificate), /PATCHBAY_TLS_CERT and PATCHBAY_TLS_KEY/],
    ['a misspelt variable', { PATCHBAY_PROT: '9' }, /PATCHBAY_PROT is no setting, did you mean PATCHBAY_PORT\?/],
  ])('%s', async (_, environment, line) => {
    await expectRejected(runInProcess, environment, line)
  })

  // Nothing that was begun by then may keep a process alive.
  const places: readonly [string, NodeJS.ProcessEnv, RegExp][] = [
    ['a setting', { PATCHBAY_PROT: '9' }, /PATCHBAY_PROT/],
    ['its address', { PATCHBAY_PORT: String(silentPort) }, /in use/],
    ['its database', postgres(deadPort), /ECONNREFUSED/],
    ['its database, which does not answer', postgres(silentPort), /DATABASE_URL.*does not answer/],
  ]
  it.each(someCases(places, 1))('as a process too, which exits, where it fails at %s', async (_, environment, line) => {
    await expectRejected(runToExit, environment, line)
  })

  async function expectRejected(run: typeof runToExit, environment: NodeJS.ProcessEnv, line: RegExp): Promise<void> {
    const unused = join(other, 'unused')
    const settings = { PATCHBAY_PORT: String(await freePort()), PATCHBAY_DATA_DIR: unused, ...environment }
    const { exitCode, stdout, stderr } = await run(['start'], settings)
    expect({ exitCode, stdout, lines: stderr.trimEnd().split('\n').length }, stderr).toEqual({
      exitCode: 1,
      stdout: '',
      lines: 1,
    })
    expect(stderr).toMatch(line)
    expect([existsSync(unused), readdirSync(other)]).toEqual([false, []])
  }

  it('keys of another data directory', async () => {
    const kept = preparedDataDir()
    const environment = { PATCHBAY_DATA_DIR: kept, PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8' }
    const override = join(kept, 'override.json')
    writeFileSync(override, JSON.stringify({ environment_variables: { SIGNING_SECRET: 'hidden' } }))
    expect(await runInProcess(['install', 'github', '--override', override], environment)).toMatchObject({
      exitCode: 0,
    })
    const { exitCode, stderr } = await runInProcess(['start'], {
      ...environment,
      PATCHBAY_PORT: String(await freePort()),
      PATCHBAY_ENCRYPTION_KEYS: KEYS,
    })
    removeDataDir(kept)
    expect(stderr).toMatch(
      /^patchbay: PATCHBAY_ENCRYPTION_KEYS lacks the key local that secrets in .* are encrypted under\n$/,
    )
    expect(exitCode).toBe(1)
  })
})

describe('the first start', () => {
  it('prints no token when its output is not a terminal', () => {
    const [output, file] = [inject('firstOutput'), join(inject('dataDir'), 'bootstrap.json')]
    const { team_token, environment_token } = JSON.parse(readFileSync(file, 'utf8'))
    expect(output).toContain(file)
    for (const token of [team_token, environment_token]) {
      expect(token).toMatch(/^\w{20,}/)
      expect(output).not.toContain(token)
    }
  })
})

function tls(cert: string, key: string): NodeJS.ProcessEnv {
  return { PATCHBAY_TLS_CERT: cert, PATCHBAY_TLS_KEY: key }
}
