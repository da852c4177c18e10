import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { decodeResponse, LineReader, type SandboxResponse } from './sandbox/protocol.ts'

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
