import { afterAll, expect, it } from 'vitest'
import { removeDataDir, startProduct, temporaryDataDir } from '../support/product.ts'
import { expectJson } from '../support/rest.ts'

const dataDir = temporaryDataDir()
afterAll(() => removeDataDir(dataDir))

it('SIGTERM ends the wait of a daemon with an empty answer, long before its time', { timeout: 30_000 }, async () => {
  const product = await startProduct({ dataDir })
  const { environment_token: token } = product.bootstrap
  const daemon = await expectJson('POST', `${product.url}/daemon`, token, { label: 'host', group_key: 'g' })
  const claim = `${product.url}/daemon/${daemon.daemon_id}/claim`
  const waiting = expectJson('POST', claim, token, { wait_seconds: 25 })
  // The answer to another call of the daemon shows that the server has read what was sent before.
  await expectJson('POST', `${product.url}/daemon/${daemon.daemon_id}/heartbeat`, token, {})

  const startedMs = performance.now()
  const exited = product.stop()

  expect(await waiting).toEqual({ runs: [] })
  expect(await exited).toBe(0)
  expect(performance.now() - startedMs).toBeLessThan(10_000)
})
