import { globSync } from 'node:fs'

/** `npm test` runs so many of so many files below the folders of `test/`; each seed begins elsewhere. */
const TAKEN = 2
const TURNS = 5

/**
 * Files that a run leaves to other runs: `npm test` takes four minutes, and all files take ten. None where TEST_CASES=many is set, as CI
 * does, and where files or tests are named.
 *
 * @param args of the command line, after the program
 */
export function filesOfOtherTurns(args: readonly string[]): readonly string[] {
  const isWhole = args.every((arg) => arg === 'run')
  if (process.env.TEST_CASES !== undefined || !isWhole) return []
  const seed = Number(process.env.TEST_SEED)
  const files = globSync('test/*/**/*.test.ts', { exclude: ['test/lab/browser/**'] }).sort()
  return files.filter((_file, index) => (index + seed) % TURNS >= TAKEN)
}
