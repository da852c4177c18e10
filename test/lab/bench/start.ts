import { removeDataDir, startProduct, temporaryDataDir } from '../../support/product.ts'
import { reportAtMost } from './support/report.ts'

const FIRST_SECONDS_MAX = 6
const SECOND_SECONDS_MAX = 2

/** Times `npm start` from the command to the first healthy answer: on an empty directory, and again on the same one. */
export async function run(): Promise<void> {
  const dataDir = temporaryDataDir()
  try {
    reportAtMost('start/first', await secondsToHealthy(dataDir), 's', FIRST_SECONDS_MAX)
    reportAtMost('start/second', await secondsToHealthy(dataDir), 's', SECOND_SECONDS_MAX)
  } finally {
    removeDataDir(dataDir)
  }
}

async function secondsToHealthy(dataDir: string): Promise<number> {
  const from = performance.now()
  const product = await startProduct({ dataDir, command: ['npm', 'start'] })
  const seconds = (performance.now() - from) / 1_000
  await product.stop()
  return seconds
}
