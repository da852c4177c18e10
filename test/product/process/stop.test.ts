import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { isAlive } from '../../../src/foundation/database/postmaster.ts'
import { someCases } from '../../support/case-count.ts'
import { CommandProcess } from '../../support/command.ts'
import { EVENTUALLY } from '../../support/eventually.ts'
import { preparedDataDir } from '../../support/prepared-data-dir.ts'
import { freePort, removeDataDir, startProduct } from '../../support/product.ts'
import { expectJson } from '../../support/rest.ts'

const STARTED_AS: readonly (readonly [what: string, command: readonly string[] | undefined])[] = [
  ['the process itself', undefined],
  ['the npm that runs it, which does not forward signals', ['npm', 'start']],
]

describe('stopping', () => {
  it.each(someCases(STARTED_AS, 1))('by SIGTERM to %s ends the server and its database', async (_, command) => {
    const dataDir = preparedDataDir()
    onTestFinished(() => removeDataDir(dataDir))
    const product = await startProduct({ dataDir, ...(command === undefined ? {} : { command }) })
    await product.stop()
    await expect(fetch(`${product.url}/openapi.json`)).rejects.toThrow()
    expect(existsSync(join(dataDir, 'postgres/data/postmaster.pid'))).toBe(false)
  })

  it.each(someCases(['SIGHUP', 'SIGQUIT', 'SIGINT'] as const, 1))('by %s ends both as well', async (signal) => {
    const dataDir = preparedDataDir()
    onTestFinished(() => removeDataDir(dataDir))
    const product = await startProduct({ dataDir })
    product.child.kill(signal)
    expect((await once(product.child, 'exit'))[0]).toBe(0)
    expect(existsSync(join(dataDir, 'postgres/data/postmaster.pid'))).toBe(false)
  })

  it('during the start ends both', async () => {
    const dataDir = preparedDataDir()
    onTestFinished(() => removeDataDir(dataDir))
    const server = new CommandProcess(['start'], {
      PATCHBAY_DATA_DIR: dataDir,
      PATCHBAY_PORT: String(await freePort()),
    })
    const postmaster = join(dataDir, 'postgres/data/postmaster.pid')
    await vi.waitFor(() => expect(existsSync(postmaster)).toBe(true), EVENTUALLY)
    expect(await server.stop()).toMatchObject({ exitCode: 0 })
    expect(existsSync(postmaster)).toBe(false)
  })

  it('twice ends the process at once, and its database with it', async () => {
    const dataDir = preparedDataDir()
    onTestFinished(() => removeDataDir(dataDir))
    const product = await startProduct({ dataDir, environment: { PATCHBAY_DRAIN_GRACE_MS: '20000' } })
    const postmaster = Number.parseInt(readFileSync(join(dataDir, 'postgres/data/postmaster.pid'), 'utf8'), 10)
    const exited = product.stop()
    await vi.waitFor(async () => expect((await fetch(`${product.url}/healthz`)).status).toBe(503), EVENTUALLY)
    product.child.kill('SIGTERM')
    expect(await exited).toBe(130)
    await vi.waitFor(() => expect(isAlive(postmaster)).toBe(false), EVENTUALLY)
  })

  it('answers the long poll of a daemon with no runs, long before its time', async () => {
    const dataDir = preparedDataDir()
    onTestFinished(() => removeDataDir(dataDir))
    const product = await startProduct({ dataDir, environment: { PATCHBAY_DRAIN_MS: '15000' } })
    const { environment_token: token } = product.bootstrap
    const daemon = await expectJson('POST', `${product.url}/daemon`, token, { label: 'host', group_key: 'g' })
    const claim = `${product.url}/daemon/${daemon.daemon_id}/claim`
    const waiting = expectJson('POST', claim, token, { wait_seconds: 25 })
    // The answer to another call of the daemon shows that the server has read what was sent before.
    await expectJson('POST', `${product.url}/daemon/${daemon.daemon_id}/heartbeat`, token, {})

    // Its time is longer than a stop may last, which would end it without an answer.
    const exited = product.stop()

    expect(await waiting).toEqual({ runs: [] })
    expect(await exited).toBe(0)
  })
})
