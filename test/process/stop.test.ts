import { describe, expect, it, onTestFinished } from 'vitest'
import { removeDataDir, startProduct, temporaryDataDir } from '../support/product.ts'

describe('stopping', () => {
  it.each([
    ['the process itself', undefined],
    ['the npm that runs it, which passes no signal on', ['npm', 'start']],
  ])(
    'by SIGTERM to %s ends the server and its database',
    async (_, command) => {
      const dataDir = temporaryDataDir()
      onTestFinished(() => removeDataDir(dataDir))
      const product = await startProduct({ dataDir, ...(command === undefined ? {} : { command }) })
      await product.stop()
      await expect(fetch(`${product.url}/openapi.json`)).rejects.toThrow()
      // A second start on the same directory finds no server to adopt: it starts its own and stops it again.
      const again = await startProduct({ dataDir })
      expect(await again.stop()).toBe(0)
    },
    60_000,
  )
})
