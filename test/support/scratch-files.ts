import { accessSync, constants, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'

/** The file system in memory that Linux offers to every user. */
const MEMORY = '/dev/shm'
/** Databases of a run of all tests take half of it. */
const FREE_BYTES_MIN = 2 * 2 ** 30

/**
 * Where a run of tests keeps its databases and other files: in memory when there is room. A disk costs a third of the run,
 * since every test file creates a database of a thousand files and drops it.
 */
export function scratchDirectory(): string {
  try {
    accessSync(MEMORY, constants.W_OK)
    const { bavail, bsize } = statfsSync(MEMORY)
    return bavail * bsize >= FREE_BYTES_MIN ? MEMORY : tmpdir()
  } catch {
    return tmpdir()
  }
}
