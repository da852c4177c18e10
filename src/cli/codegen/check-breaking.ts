/**
 * Fails on changes that break callers of the contract on the branch `main` (or the branch given as argument), by the
 * rules of `buf.yaml`. Exits 0 with a note when that branch does not exist here or has no contract yet.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../../..')
const BUF = join(ROOT, 'node_modules', '.bin', 'buf')
const CONTRACT = 'proto/patchbay/'

function hasContract(branch: string): boolean {
  const tree = spawnSync('git', ['ls-tree', '--name-only', `refs/heads/${branch}`, CONTRACT], { cwd: ROOT })
  return tree.status === 0 && tree.stdout.length > 0
}

function main(branch: string): number {
  if (!hasContract(branch)) {
    process.stdout.write(`no contract on a branch ${branch} to compare with\n`)
    return 0
  }
  const result = spawnSync(BUF, ['breaking', '--against', `.git#branch=${branch}`], { cwd: ROOT, stdio: 'inherit' })
  return result.status ?? 1
}

process.exitCode = main(process.argv[2] ?? 'main')
