import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { decodeResponse, LineReader, type SandboxResponse } from './sandbox/protocol.ts'

/** An evaluation on its way through the pool. */
export interface PooledEvaluation {
  readonly owner: string
  /** The request as the sandbox reads it, with the line end. */
  readonly line: string
  /** From the moment the sandbox takes it up. */
  readonly timeoutMs: number
  /** Whether it is expected to take long: it then shares no sandbox, and only part of the pool. May change as it waits. */
  isSlow(): boolean
  /** On the scale of `performance.now()`. */
  readonly queuedAt: number
  settle(outcome: EvaluationOutcome): void
}

/** Why an evaluation was stopped from outside. */
export type KillCause = 'time' | 'memory' | 'crash'

/** What became of a job. */
export type EvaluationOutcome =
  | { readonly kind: 'answer'; readonly answer: SandboxResponse }
  | { readonly kind: 'killed'; readonly cause: KillCause }
  | { readonly kind: 'refused'; readonly cause: 'queue_full' | 'waited_too_long' | 'closed' | 'no_sandbox' }

/** Requests sent ahead, so that a sandbox goes on to the next without waiting for this process. */
const SENT_MAX = 8

/** Length of the requests sent ahead. */
const SENT_LENGTH_MAX = 1_048_576

/** A job that runs longer gives the ones sent behind it back to the queue. */
const STALL_MS = 100

/** A sandbox is replaced after so many evaluations, or so much time spent in them. */
const SERVED_MAX = 100_000
const BUSY_MS_MAX = 20_000

/** One sandbox of the pool and the jobs it was sent, the running one first. */
export class PoolMember {
  readonly process: SandboxProcess
  readonly #sent: PooledEvaluation[] = []
  #isReady = false
  #isRetiring = false
  #runningSince = 0
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

  /** Whether the process has done its share, or has jobs in its input that were taken back, and must go once idle. */
  get shouldRetire(): boolean {
    return this.#isRetiring || this.#served >= SERVED_MAX || this.#busyMs >= BUSY_MS_MAX
  }

  /** Whether another job may be sent; nothing is sent behind one that is known to be slow, or turns out to be. */
  canAccept(nowMs: number): boolean {
    if (!this.#isReady || this.shouldRetire || this.hasSlowEvaluation || this.isStalled(nowMs)) return false
    if (this.#sent.length >= SENT_MAX) return false
    return this.#sent.reduce((length, job) => length + job.line.length, 0) < SENT_LENGTH_MAX
  }

  /** How long the running job has been at it. */
  runningMs(nowMs: number): number {
    return this.isIdle ? 0 : nowMs - this.#runningSince
  }

  /** Whether the running job takes so long that none should wait behind it. */
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

  /** Takes the answer of the running job, which is settled; the next one counts as running from now. @returns how long it ran */
  receiveResponse(answer: SandboxResponse): number {
    const now = performance.now()
    const ranMs = this.runningMs(now)
    this.#busyMs += ranMs
    const job = this.#sent.shift()
    this.#served++
    this.#runningSince = now
    if (this.isIdle) this.process.keepsAlive(false)
    job?.settle({ kind: 'answer', answer })
    return ranMs
  }

  /** Every job, the running one too, for a process that is ended. */
  reclaimAll(): PooledEvaluation[] {
    return this.#sent.splice(0)
  }

  /** The jobs behind the running one, taken back; the process retires, because it has them in its input. */
  reclaimWaiting(): PooledEvaluation[] {
    const waiting = this.#sent.splice(1)
    if (waiting.length > 0) this.#isRetiring = true
    return waiting
  }

  /** Ends the process and settles the running job. */
  stop(outcome: EvaluationOutcome): void {
    this.process.kill()
    this.#sent.shift()?.settle(outcome)
  }
}

/** Old generation of the child's heap; with it a runaway evaluation ends the child, and only the child. */
const HEAP_MEGABYTES = 96

/**
 * The kernel ends a child after this much processor time. Children are replaced long before; the limit is for the one
 * that was in an endless loop when its parent was killed and could not see its input end.
 */
const CPU_SECONDS_MAX = 60

/** An answer line longer than any result is not an answer. */
const RESPONSE_LENGTH_MAX = 16 * 1024 * 1024

/** What happens to a child, told to whoever started it. */
export interface SandboxEvents {
  onReady(): void
  /** Answers come in the order of the requests. */
  onResponse(answer: SandboxResponse): void
  /** The process is gone and answers nothing more; not told after `kill`. */
  onExit(): void
}

/** A child process that evaluates expressions; see `sandbox/main.ts` for its side. */
export interface SandboxProcess {
  /** Sends a request line; answers come later, in order. */
  send(line: string): void
  /** Ends the process now. */
  kill(): void
  /** Whether the process counts as a reason for this one to keep running. */
  keepsAlive(value: boolean): void
  /** Resident memory in bytes, `undefined` where the system does not tell. */
  residentBytes(): number | undefined
}

/** Starts a child. */
export type StartSandbox = (events: SandboxEvents) => SandboxProcess

/**
 * Starts a child that may read its own code and nothing else, has no environment, cannot start processes or threads, and
 * cannot turn text into code.
 *
 * It ends with its parent: its standard input closes, whatever way the parent goes.
 */
export const startSandbox: StartSandbox = (events) => {
  const child = spawnLimited([...sandboxFlags(), join(CODE_DIRECTORY, 'main.ts')])
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
  }
}

const CODE_DIRECTORY = join(import.meta.dirname, 'sandbox')

/** What the child is started with: what it may read, and how much memory it has. */
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

/** `ulimit` is the only way to a processor time limit; without a shell the child runs without that limit. */
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

/** Writes the requests of one turn as one text: the stream takes several times as long for a list of them. */
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
