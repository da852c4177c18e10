import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Figure, report } from './support/report.ts'

/** Each measures both trees once, in alternating order. */
const ROUNDS = Number(process.env.BENCH_COMPARE_ROUNDS ?? 3)
/** One benchmark of one tree; the longest of the default ones takes two minutes on a quiet machine. */
const RUN_MS_MAX = 15 * 60_000
/** Benchmarks without names on the command line. */
const DEFAULT_NAMES = ['rpc-patch', 'rpc-get', 'proxy-hop', 'sync-store']
/** What a figure may lose and still counts as kept: neighbours on the machine alone make such a difference. */
const KEPT = 0.9

const ROOT = join(import.meta.dirname, '../../..')

/** Values of one run by name of the figure. */
type Run = ReadonlyMap<string, Figure>

/**
 * `npm run bench compare <commit> [name…]`: measures another commit and this working tree by turns, and prints for each figure
 * that both have the ratio of this tree to the commit: the median of the rounds, and how far the rounds are apart.
 *
 * Each tree runs its own benchmarks against its own product: scripts of one do not fit the database and the modules of the other.
 * A benchmark that was changed in between compares the measures too.
 */
export async function run(commit: string | undefined, asked: readonly string[]): Promise<void> {
  if (commit === undefined) throw new Error('npm run bench compare <commit> [name…]')
  const directory = mkdtempSync(join(tmpdir(), 'patchbay-compare-'))
  const other = join(directory, 'tree')
  const removeTree = () => {
    git('worktree', 'remove', '--force', other)
    rmSync(directory, { recursive: true, force: true })
  }
  process.once('SIGINT', () => process.exit(130))
  git('worktree', 'add', '--detach', other, commit)
  process.once('exit', removeTree)
  installPackages(other)
  for (const name of asked.length > 0 ? asked : DEFAULT_NAMES) await compare(name, commit, other)
}

async function compare(name: string, commit: string, other: string): Promise<void> {
  const before: Run[] = []
  const after: Run[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const turns = [
      { tree: other, runs: before },
      { tree: ROOT, runs: after },
    ]
    for (const { tree, runs } of round % 2 === 0 ? turns : turns.toReversed()) runs.push(await measureTree(tree, name))
  }
  for (const figure of after[0]?.values() ?? []) reportRatio(figure, commit, before, after)
}

function reportRatio(
  { name, unit, target }: Figure,
  commit: string,
  before: readonly Run[],
  after: readonly Run[],
): void {
  const ratios = after
    .map((run, round) => (run.get(name)?.value ?? Number.NaN) / (before[round]?.get(name)?.value ?? Number.NaN))
    .filter((ratio) => Number.isFinite(ratio))
    .toSorted((one, another) => one - another)
  const [least = Number.NaN, median = Number.NaN, most = Number.NaN] = [0, Math.floor(ratios.length / 2), -1].map(
    (at) => ratios.at(at),
  )
  // A figure that one of the trees does not have.
  if (ratios.length < ROUNDS) return
  const rounded = (value: number) => Number(value.toPrecision(4))
  const common = { unit: `x ${commit}` }
  const isCost = target.startsWith('<=') || /^(?:ms|s|µs|MB)$/.test(unit)
  const bound = isCost
    ? { target: `<= ${rounded(1 / KEPT)}`, ok: median <= 1 / KEPT }
    : { target: `>= ${KEPT}`, ok: median >= KEPT }
  const isFloor = /floor|connect-node/.test(name)
  report({
    name: `compare/${name}`,
    value: rounded(median),
    ...common,
    ...(isFloor ? { target: 'floor', ok: true } : bound),
  })
  report({
    name: `compare/${name}/spread`,
    value: rounded(most / least),
    unit: 'x slowest round',
    target: 'floor',
    ok: true,
  })
}

/** One that ends without figures, as on a machine too busy to start a server in time, is measured once more. */
async function measureTree(tree: string, name: string): Promise<Run> {
  return await runBenchmark(tree, name).catch(() => runBenchmark(tree, name))
}

/** The figures that a tree's benchmark prints. One that misses a target of its own ends with 1, which means nothing here. */
async function runBenchmark(tree: string, name: string): Promise<Run> {
  const child = spawn('npm', ['run', '-s', 'bench', name], {
    cwd: tree,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk) => (output.stdout += chunk))
  child.stderr.on('data', (chunk) => (output.stderr += chunk))
  const stop = () => child.pid !== undefined && child.exitCode === null && process.kill(-child.pid, 'SIGTERM')
  const timer = setTimeout(stop, RUN_MS_MAX)
  process.once('exit', stop)
  const code = await new Promise((resolve) => child.once('close', resolve))
  process.removeListener('exit', stop)
  clearTimeout(timer)
  const lines = output.stdout.split('\n').filter((line) => line.startsWith('{'))
  if (lines.length === 0 || (code !== 0 && code !== 1))
    throw new Error(`the benchmark ${name} of ${tree} ended with ${code}\n${output.stdout}${output.stderr}`)
  return new Map(lines.map((line): [string, Figure] => [JSON.parse(line).name, JSON.parse(line)]))
}

/** The packages of this tree when the other one locks the same, else its own. */
function installPackages(tree: string): void {
  const isSame =
    git('diff', '--stat', 'HEAD', gitIn(tree, 'rev-parse', 'HEAD').trim(), '--', 'package-lock.json') === ''
  if (isSame) symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'))
  else execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: tree, stdio: ['ignore', 'ignore', 'inherit'] })
}

function git(...args: readonly string[]): string {
  return gitIn(ROOT, ...args)
}

function gitIn(cwd: string, ...args: readonly string[]): string {
  return execFileSync('git', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
}
