import type { Reporter, TestModule, TestSpecification } from 'vitest/node'

declare module 'vitest' {
  interface TaskMeta {
    /** CPU time of a file, in milliseconds: of its worker and of the processes that it started and that ended. */
    cpuMs?: number
  }
}

const LINE_EVERY_MS = 15_000
const SLOWEST_MAX = 12
const FOLDERS_MAX = 12

/** Says how far the run is: on a terminal in one line that it rewrites, else every 15 s; at the end which files took the CPU time, beside time on the clock, and what failed. */
export class ProgressReporter implements Reporter {
  #startedMs = 0
  #saidMs = 0
  #files = 0
  #tests = 0
  readonly #failures: string[] = []
  readonly #queuedMs = new Map<string, number>()
  readonly #tookMs = new Map<string, number>()
  readonly #cpuMs = new Map<string, number>()

  onTestRunStart(specifications: readonly TestSpecification[]): void {
    this.#startedMs = this.#saidMs = performance.now()
    this.#files = specifications.length
  }

  onTestModuleQueued({ moduleId }: TestModule): void {
    this.#queuedMs.set(moduleId, performance.now())
  }

  onTestModuleEnd(module: TestModule): void {
    const queuedMs = this.#queuedMs.get(module.moduleId) ?? this.#startedMs
    this.#tookMs.set(module.relativeModuleId, performance.now() - queuedMs)
    this.#cpuMs.set(module.relativeModuleId, module.meta().cpuMs ?? 0)
    for (const test of module.children.allTests()) {
      this.#tests += 1
      if (test.result().state === 'failed') this.#failures.push(`${module.relativeModuleId} > ${test.fullName}`)
    }
    if (module.errors().length > 0) this.#failures.push(module.relativeModuleId)
    this.#sayProgress()
  }

  onTestRunEnd(): void {
    if (process.stdout.isTTY) process.stdout.write('\r\x1b[K')
    process.stdout.write(`${this.#timesAsText()}\n`)
    // Again at the end, which is the part of a long output that is kept.
    for (const failure of this.#failures) process.stdout.write(`FAILED  ${failure}\n`)
  }

  #sayProgress(): void {
    const nowMs = performance.now()
    const isTerminal = process.stdout.isTTY
    if (!isTerminal && nowMs - this.#saidMs < LINE_EVERY_MS) return
    this.#saidMs = nowMs
    const failed = this.#failures.length === 0 ? '' : `, ${this.#failures.length} failed`
    const done = `${this.#tookMs.size} of ${this.#files} files`
    const line = `${seconds(nowMs - this.#startedMs)}  ${done}, ${this.#tests} tests${failed}`
    process.stdout.write(isTerminal ? `\r\x1b[K${line}` : `${line}\n`)
  }

  #timesAsText(): string {
    const totalMs = sum(this.#cpuMs.values())
    const folders = Map.groupBy(this.#cpuMs, ([file]) => file.split('/').slice(0, 2).join('/'))
    const shares = [...folders].map(([folder, files]) => [folder, sum(files.map(([, ms]) => ms))] as const)
    const seed = process.env.TEST_SEED
    return [
      `Where the time went: ${seconds(totalMs)} of CPU time in files${seed === undefined ? '' : `, TEST_SEED=${seed}`}`,
      ...longest([...this.#cpuMs], SLOWEST_MAX).map(
        ([file, ms]) => `${seconds(ms)}  ${file}, in ${seconds(this.#tookMs.get(file) ?? 0).trim()}`,
      ),
      ...longest(shares, FOLDERS_MAX).map(([folder, ms]) => `${percent(ms / (totalMs || 1))}  ${folder}`),
    ].join('\n')
  }
}

function longest<Entry extends readonly [string, number]>(entries: readonly Entry[], count: number): readonly Entry[] {
  return entries.toSorted(([, one], [, other]) => other - one).slice(0, count)
}

function sum(values: Iterable<number>): number {
  return [...values].reduce((total, value) => total + value, 0)
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1).padStart(6)} s`
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1).padStart(6)} %`
}
