import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { bareEnvironment, freePort, removeDataDir, temporaryDataDir } from '../../../support/product.ts'

const MAIN = join(import.meta.dirname, '../../../../src/main.ts')
const POLL_MS = 20
const START_MS_MAX = 90_000

/** How a process is run. */
export interface SurroundedOptions {
  readonly command?: 'start' | 'worker'
  readonly environment?: NodeJS.ProcessEnv
  readonly stdio?: StdioOptions
  /** Runs the command line instead of the shell's `exec`, such as below a terminal of its own. */
  readonly wrap?: (commandLine: string) => readonly [file: string, ...args: string[]]
  /** Of an earlier process. Default: a new one. */
  readonly dataDir?: string
}

/** `patchbay start` whose surroundings the script controls: output, limits, terminal. */
export class Surrounded implements AsyncDisposable {
  readonly child: ChildProcess
  readonly ended: Promise<number | null>
  readonly url: string
  readonly metricsUrl: string
  readonly dataDir: string
  output = ''

  private constructor(port: number, metricsPort: number, options: SurroundedOptions) {
    this.dataDir = options.dataDir ?? temporaryDataDir()
    this.url = `http://127.0.0.1:${port}`
    this.metricsUrl = `http://127.0.0.1:${metricsPort}`
    const { command = 'start', wrap = (line) => ['sh', '-c', `exec ${line}`] } = options
    const [file, ...args] = wrap(`${process.execPath} ${MAIN} ${command}`)
    this.child = spawn(file, args, {
      env: {
        ...bareEnvironment(),
        PATCHBAY_DATA_DIR: this.dataDir,
        PATCHBAY_PORT: String(port),
        PATCHBAY_METRICS_PORT: String(metricsPort),
        PATCHBAY_RATE_LIMIT_ADDRESS: '0',
        ...options.environment,
      },
      stdio: options.stdio ?? ['ignore', 'pipe', 'pipe'],
    })
    if (options.stdio === undefined)
      for (const stream of [this.child.stdout, this.child.stderr])
        stream?.on('data', (chunk: Buffer) => (this.output += chunk.toString()))
    this.ended = new Promise((resolve) => this.child.once('exit', (code) => resolve(code)))
  }

  /** Starts one and waits until it is ready. */
  static async start(options: SurroundedOptions = {}): Promise<Surrounded> {
    const started = new Surrounded(await freePort(), await freePort(), options)
    await started.until(async () => (await started.probe('/readyz')).status === 200)
    return started
  }

  /** Starts one that is not expected to become ready. */
  static async begin(options: SurroundedOptions = {}): Promise<Surrounded> {
    return new Surrounded(await freePort(), await freePort(), options)
  }

  /** Polls until it is so, or for a minute and a half. @returns how long that took, ms */
  async until(isSo: () => boolean | Promise<boolean>): Promise<number> {
    const startedMs = performance.now()
    for (const endMs = startedMs + START_MS_MAX; performance.now() < endMs; await sleep(POLL_MS))
      if (await isSo()) return performance.now() - startedMs
    throw new Error(`not within ${START_MS_MAX} ms:\n${this.output}`)
  }

  /** One request to the port of metrics. @returns status 0 without an answer within 10 s */
  async probe(path: string, base = this.metricsUrl): Promise<{ status: number; ms: number; text: string }> {
    const startedMs = performance.now()
    const signal = AbortSignal.timeout(10_000)
    const found = await fetch(`${base}${path}`, { signal }).then(
      async (answer) => ({ status: answer.status, text: await answer.text() }),
      () => ({ status: 0, text: '' }),
    )
    return { ...found, ms: performance.now() - startedMs }
  }

  async metric(name: string): Promise<number | undefined> {
    const { text } = await this.probe('/metrics')
    const line = text.split('\n').find((each) => each.startsWith(`${name} `))
    return line === undefined ? undefined : Number(line.slice(name.length))
  }

  /** Sends signals to the process, and waits for its end. @returns ms from the first one, and the exit code */
  async end(...signals: readonly NodeJS.Signals[]): Promise<{ readonly ms: number; readonly exitCode: number | null }> {
    const startedMs = performance.now()
    for (const signal of signals) {
      this.child.kill(signal)
      await sleep(POLL_MS)
    }
    const exitCode = await this.ended
    return { ms: performance.now() - startedMs, exitCode }
  }

  /** Processes of the embedded PostgreSQL: the server itself and its own. */
  postgres(): readonly number[] {
    return postgresProcesses(join(this.dataDir, 'postgres/data'))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.kill('SIGKILL')
    await this.ended
    for (const pid of this.postgres()) process.kill(pid, 'SIGKILL')
    removeDataDir(this.dataDir)
  }
}

/** Ids of the server of a data directory and of its processes. */
export function postgresProcesses(dataDir: string): readonly number[] {
  const file = join(dataDir, 'postmaster.pid')
  if (!existsSync(file)) return []
  const server = Number.parseInt(readFileSync(file, 'utf8'), 10)
  const isOfServer = (pid: number): boolean => {
    try {
      const [, name = '', state = '', parent = ''] =
        /\((.*)\) (\S) (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? []
      return name === 'postgres' && state !== 'Z' && (pid === server || Number(parent) === server)
    } catch {
      return false
    }
  }
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0 && isOfServer(pid))
}

/** Suspends a server with its processes, so that it accepts connections (the kernel does) and never answers. */
export function suspend(dataDir: string): Disposable {
  const pids = postgresProcesses(dataDir)
  for (const pid of pids) process.kill(pid, 'SIGSTOP')
  return {
    [Symbol.dispose]() {
      for (const pid of postgresProcesses(dataDir)) process.kill(pid, 'SIGCONT')
    },
  }
}
