import { execFileSync } from 'node:child_process'
import { inject } from 'vitest'
import { temporaryDataDir } from './product.ts'

/**
 * A data directory of a product that was started before and stopped: for tests that are not about the first start, which takes
 * longer than most of them. Removed by `removeDataDir`.
 */
export function preparedDataDir(): string {
  const dataDir = temporaryDataDir()
  // Unlike `fs.cp` it keeps the owner: the database of root's data directory belongs to another uid.
  execFileSync('cp', ['-a', `${inject('dataDir')}/.`, dataDir])
  return dataDir
}
