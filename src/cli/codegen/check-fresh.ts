/**
 * Tells whether `gen/` is what `buf generate` makes of `proto/`: generates into a temporary directory, compares, and
 * leaves both as they were. Prints one line per stale file and exits 1; prints nothing and exits 0 when fresh.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'

const ROOT = join(import.meta.dirname, '../../..')
const BINARIES = join(ROOT, 'node_modules', '.bin')
const GENERATE_TIMEOUT_MS = 600_000

/** One file of `gen/` that differs from what would be generated now. */
export interface StaleFile {
  /** Relative to `gen/`. */
  readonly path: string
  readonly state: 'missing' | 'changed' | 'left over'
}

/** The differences between a committed and a fresh directory, by path. Both hold text files and folders only. */
export function staleFiles(committedDir: string, freshDir: string): StaleFile[] {
  const [committed, fresh] = [textFiles(committedDir), textFiles(freshDir)]
  const paths = [...new Set([...committed.keys(), ...fresh.keys()])].sort()
  return paths.flatMap((path): StaleFile[] => {
    if (!committed.has(path)) return [{ path, state: 'missing' }]
    if (!fresh.has(path)) return [{ path, state: 'left over' }]
    return committed.get(path) === fresh.get(path) ? [] : [{ path, state: 'changed' }]
  })
}

function textFiles(dir: string): Map<string, string> {
  const entries = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return new Map(
    entries.map((entry) => {
      const path = join(entry.parentPath, entry.name)
      return [path.slice(dir.length + 1), readFileSync(path, 'utf8')]
    }),
  )
}

/** Runs the generators of `buf.gen.yaml` into `outDir`, without the network. */
function generateInto(outDir: string): void {
  execFileSync(join(BINARIES, 'buf'), ['generate', '--output', outDir], {
    cwd: ROOT,
    env: { ...process.env, PATH: `${BINARIES}${delimiter}${process.env.PATH ?? ''}` },
    timeout: GENERATE_TIMEOUT_MS,
    stdio: ['ignore', 'inherit', 'inherit'],
  })
}

function main(): void {
  const dir = mkdtempSync(join(tmpdir(), 'patchbay-gen-'))
  try {
    generateInto(dir)
    const stale = staleFiles(join(ROOT, 'gen'), join(dir, 'gen'))
    for (const { path, state } of stale) process.stderr.write(`gen/${path} is ${state}: run npm run generate\n`)
    if (stale.length > 0) process.exitCode = 1
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

if (import.meta.main) main()
