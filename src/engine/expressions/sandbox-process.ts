import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { decodeResponse, LineReader, type SandboxResponse, WALL_FACTOR } from './sandbox/protocol.ts'

/** An evaluation in the pool. */
export interface PooledEvaluation {
  readonly owner: string
  /** The request line, with its line end. */
  readonly line: string
  /** Inputs of the request: so many responses come. */
  readonly inputCount: number
  /** For all inputs; counted from the start of the evaluation. CPU time where the system reports it, see `WALL_FACTOR`. */
  readonly timeoutMs: number
  /** Expected to be slow: such an evaluation gets a sandbox of its own, from half of the pool. May change while it waits. */
  isSlow(): boolean
  /** On the scale of `performance.now()`. */
  readonly queuedAt: number
  settle(outcome: EvaluationOutcome): void
}

/** Why an evaluation was killed. */
export type KillCause = 'time' | 'memory' | 'crash'

/** Outcome of an evaluation in the pool; one that was killed has the responses to the inputs before the one at fault. */
export type EvaluationOutcome =
  | { readonly kind: 'answered'; readonly answers: readonly SandboxResponse[] }
  | { readonly kind: 'killed'; readonly cause: KillCause; readonly answers: readonly SandboxResponse[] }
  | { readonly kind: 'rejected'; readonly cause: 'queue_full' | 'waited_too_long' | 'closed' | 'no_sandbox' }

/** Pipelining: most requests sent to one sandbox, so that it continues without waiting for this process. */
const SENT_MAX = 8

/** Total length of the requests sent to one sandbox, in characters. */
const SENT_LENGTH_MAX = 1_048_576

/** When an evaluation runs longer, the ones sent after it are requeued. */
const STALL_MS = 100

/** A sandbox is replaced after so many evaluations, or so much time in them. */
const SERVED_MAX = 100_000
const BUSY_MS_MAX = 20_000

/** One sandbox of the pool and the evaluations sent to it, the running one first. */
export class PoolMember {
  readonly process: SandboxProcess
  readonly #sent: PooledEvaluation[] = []
  /** Responses to the running evaluation. */
  #answers: SandboxResponse[] = []
  #isReady = false
  #isRetiring = false
  #runningSince = 0
  /** CPU time of the process when the running evaluation was first checked. */
  #checkedCpuMs: number | undefined
  #served = 0
  #busyMs = 0

  constructor(process: SandboxProcess) {
    this.process = process
  }

  get running(): PooledEvaluation | undefined {
    return this.#sent[0]
  }

  get isReady(): boolean {
    return this.#isReady
  }

  get isIdle(): boolean {
    return this.#sent.length === 0
  }

  get load(): number {
    return this.#sent.length
  }

  get hasSlowEvaluation(): boolean {
    return this.#sent.some((job) => job.isSlow())
  }

  /** The process has done its share, or has reclaimed requests in its input: it is replaced once idle. */
  get shouldRetire(): boolean {
    return this.#isRetiring || this.#served >= SERVED_MAX || this.#busyMs >= BUSY_MS_MAX
  }

  /** Another evaluation may be sent; none is sent after a slow one. */
  canAccept(nowMs: number): boolean {
    if (!this.#isReady || this.shouldRetire || this.hasSlowEvaluation || this.isStalled(nowMs)) return false
    if (this.#sent.length >= SENT_MAX) return false
    return this.#sent.reduce((length, job) => length + job.line.length, 0) < SENT_LENGTH_MAX
  }

  /** How long the running evaluation has taken so far. */
  runningMs(nowMs: number): number {
    return this.isIdle ? 0 : nowMs - this.#runningSince
  }

  /** Whether the running evaluation has used up its time. Called at intervals, of which the first one sets the start of its CPU time. */
  isOutOfTime(nowMs: number): boolean {
    if (this.running === undefined) return false
    const cpuMs = this.process.cpuMs()
    this.#checkedCpuMs ??= cpuMs
    const wallMs = this.runningMs(nowMs)
    const { timeoutMs } = this.running
    if (wallMs <= timeoutMs) return false
    const isBusy = cpuMs === undefined || cpuMs - (this.#checkedCpuMs ?? 0) > timeoutMs
    return isBusy || wallMs > timeoutMs * WALL_FACTOR
  }

  /** The running evaluation takes too long for others to wait for it. */
  isStalled(nowMs: number): boolean {
    return this.runningMs(nowMs) > STALL_MS
  }

  markReady(): void {
    this.#isReady = true
    this.process.keepsAlive(false)
  }

  send(job: PooledEvaluation): void {
    if (this.isIdle) {
      this.#runningSince = performance.now()
      this.process.keepsAlive(true)
    }
    this.#sent.push(job)
    this.process.send(job.line)
  }

  /**
   * Adds a response to the running evaluation; the last one settles it, and the next evaluation runs from now.
   *
   * @returns how long the evaluation ran, in milliseconds; 0 when it still runs
   */
  receiveResponse(answer: SandboxResponse): number {
    this.#answers.push(answer)
    if (this.#answers.length < (this.running?.inputCount ?? 1)) return 0
    const now = performance.now()
    const ranMs = this.runningMs(now)
    this.#busyMs += ranMs
    const job = this.#sent.shift()
    this.#served++
    this.#runningSince = now
    this.#checkedCpuMs = undefined
    if (this.isIdle) this.process.keepsAlive(false)
    job?.settle({ kind: 'answered', answers: this.#takeAnswers() })
    return ranMs
  }

  /** Reclaims every evaluation, the running one too; for a process that is replaced. */
  reclaimAll(): PooledEvaluation[] {
    this.#answers = []
    return this.#sent.splice(0)
  }

  /** Reclaims the evaluations after the running one; the process retires, because their requests are in its input. */
  reclaimWaiting(): PooledEvaluation[] {
    const waiting = this.#sent.splice(1)
    if (waiting.length > 0) this.#isRetiring = true
    return waiting
  }

  /** Kills the process and settles the running evaluation. */
  stop(cause: KillCause | 'closed'): void {
    this.process.kill()
    const answers = this.#takeAnswers()
    this.#sent.shift()?.settle(cause === 'closed' ? { kind: 'rejected', cause } : { kind: 'killed', cause, answers })
  }

  #takeAnswers(): readonly SandboxResponse[] {
    const answers = this.#answers
    this.#answers = []
    return answers
  }
}

/** Heap limit of the child (old generation): a runaway evaluation crashes only the child. */
const HEAP_MEGABYTES = 96

/**
 * CPU time limit of the child, enforced by the kernel. Children are replaced long before; the limit ends a child in an
 * endless loop whose parent was killed.
 */
const CPU_SECONDS_MAX = 60

/** Longest response line; no result is longer. */
const RESPONSE_LENGTH_MAX = 16 * 1024 * 1024

/** Events of a child process. */
export interface SandboxEvents {
  onReady(): void
  /** In the order of the requests. */
  onResponse(answer: SandboxResponse): void
  /** The process has exited; not called after `kill`. */
  onExit(): void
}

/** A child process that evaluates expressions; see `sandbox/main.ts` for its side. */
export interface SandboxProcess {
  /** Sends a request line; responses arrive later, in order. */
  send(line: string): void
  /** Kills the process. */
  kill(): void
  /** Whether the process keeps the event loop of this one alive. */
  keepsAlive(value: boolean): void
  /** Resident memory in bytes, `undefined` where the system does not report it. */
  residentBytes(): number | undefined
  /** CPU time that the process has used, `undefined` where the system does not report it. */
  cpuMs(): number | undefined
}

/** Starts a child. */
export type StartSandbox = (events: SandboxEvents) => SandboxProcess

/**
 * Starts a child that may read its own code and nothing else, has no environment, cannot start processes or threads, and
 * cannot compile text to code.
 *
 * It ends with its parent: its standard input closes, also when the parent is killed.
 */
export const startSandbox: StartSandbox = (events) => {
  const child = spawnLimited([...sandboxFlags(), MAIN_FILE])
  let isGone = false
  const end = () => {
    isGone = true
    child.kill('SIGKILL')
  }
  const fail = () => {
    if (isGone) return
    end()
    events.onExit()
  }
  const reader = new LineReader((line) => {
    if (isGone) return
    const answer = decodeResponse(line)
    if (!answer) fail()
    else if (answer.kind === 'ready') events.onReady()
    else events.onResponse(answer)
  })
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    reader.push(chunk)
    if (reader.pendingLength > RESPONSE_LENGTH_MAX) fail()
  })
  child.on('exit', fail).on('error', fail)
  child.stdin.on('error', fail)
  return {
    send: createWriter(child.stdin),
    kill: end,
    keepsAlive: (value) => keepAlive(child, value),
    residentBytes: () => residentBytesOf(child.pid),
    cpuMs: () => cpuMsOf(child.pid),
  }
}

const MAIN_FILE = fileURLToPath(new URL('./sandbox/main.ts', import.meta.url))
const CODE_DIRECTORY = dirname(MAIN_FILE)

/** Node flags of the child: file permissions and memory. */
export function sandboxFlags(): string[] {
  const jsonataDirectory = dirname(createRequire(import.meta.url).resolve('jsonata'))
  return [
    '--permission',
    `--allow-fs-read=${CODE_DIRECTORY}/*`,
    `--allow-fs-read=${jsonataDirectory}/*`,
    `--max-old-space-size=${HEAP_MEGABYTES}`,
    '--disallow-code-generation-from-strings',
    '--disable-proto=delete',
  ]
}

type Child = ChildProcessByStdio<Writable, Readable, null>

const SHELL = '/bin/sh'

/** `ulimit` sets the CPU time limit; without a shell the child runs without that limit. */
function spawnLimited(args: readonly string[]): Child {
  const limited = `ulimit -t ${CPU_SECONDS_MAX} 2>/dev/null; unset PWD OLDPWD; exec "$@"`
  const [command, ...rest] = existsSync(SHELL)
    ? [SHELL, '-c', limited, SHELL, process.execPath, ...args]
    : [process.execPath, ...args]
  return spawn(command ?? process.execPath, rest, {
    cwd: CODE_DIRECTORY,
    // Times without a zone mean the same on every machine.
    env: { TZ: 'UTC' },
    stdio: ['pipe', 'pipe', 'ignore'],
  })
}

/** Batches the requests of one turn of the event loop into one write: many small writes take several times as long. */
function createWriter(stdin: Writable): (line: string) => void {
  let lines = ''
  const flush = () => {
    const text = lines
    lines = ''
    stdin.write(text)
  }
  return (line) => {
    if (lines === '') queueMicrotask(flush)
    lines += line
  }
}

function keepAlive(child: Child, value: boolean): void {
  for (const handle of [child, child.stdin, child.stdout]) {
    if (value && 'ref' in handle && typeof handle.ref === 'function') handle.ref()
    if (!value && 'unref' in handle && typeof handle.unref === 'function') handle.unref()
  }
}

function residentBytesOf(pid: number | undefined): number | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]
    return kilobytes === undefined ? undefined : Number(kilobytes) * 1_024
  } catch {
    return undefined
  }
}

/** Linux counts CPU time in hundredths of a second. */
const TICK_MS = 10

function cpuMsOf(pid: number | undefined): number | undefined {
  try {
    // The name of the program, in parentheses, may hold anything: the fields after it are counted.
    const [, fields = ''] = /^.*\) (.*)$/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? []
    const [user, system] = fields.split(' ').slice(11, 13).map(Number)
    return user === undefined || system === undefined ? undefined : (user + system) * TICK_MS
  } catch {
    return undefined
  }
}
