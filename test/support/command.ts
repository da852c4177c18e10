import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { vi } from 'vitest'
import { runCommand } from '../../src/cli/commands/run-command.ts'
import { bareEnvironment } from './product.ts'

const ROOT = join(import.meta.dirname, '../..')
const POLL_MS = 10

/** How a command ended, and everything it wrote. */
export interface CommandResult {
  readonly exitCode: number | null
  readonly stdout: string
  readonly stderr: string
}

/** `patchbay …` as a process of its own. */
export class CommandProcess implements AsyncDisposable {
  readonly child: ChildProcess
  readonly ended: Promise<CommandResult>
  #stdout = ''
  #stderr = ''

  constructor(
    args: readonly string[],
    environment: NodeJS.ProcessEnv = {},
    stdio: StdioOptions = ['ignore', 'pipe', 'pipe'],
  ) {
    this.child = spawn(process.execPath, [join(ROOT, 'src/main.ts'), ...args], {
      cwd: ROOT,
      env: { ...bareEnvironment(), ...environment },
      stdio,
    })
    this.child.stdout?.on('data', (chunk: Buffer) => (this.#stdout += chunk.toString()))
    this.child.stderr?.on('data', (chunk: Buffer) => (this.#stderr += chunk.toString()))
    this.ended = new Promise((resolve) =>
      this.child.once('close', (exitCode) => resolve({ exitCode, stdout: this.#stdout, stderr: this.#stderr })),
    )
  }

  /** Everything written so far. */
  get output(): string {
    return stripVTControlCharacters(this.#stdout + this.#stderr)
  }

  /** Waits until the text was written. @throws when the process ends before */
  async wrote(text: string): Promise<void> {
    while (!this.output.includes(text)) {
      if (this.child.exitCode !== null) throw new Error(`ended with ${this.child.exitCode}:\n${this.output}`)
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    }
  }

  async stop(): Promise<CommandResult> {
    this.child.kill('SIGTERM')
    return await this.ended
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }
}

/** Runs a command to its end. */
export function runToExit(args: readonly string[], environment: NodeJS.ProcessEnv = {}): Promise<CommandResult> {
  return new CommandProcess(args, environment).ended
}

/** Runs a command to its end within this process: in a tenth of the time, for promises that are not about processes. */
export async function runInProcess(
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
): Promise<CommandResult> {
  const [stdout, stderr] = [process.stdout, process.stderr].map((stream) =>
    vi.spyOn(stream, 'write').mockReturnValue(true),
  )
  try {
    const exitCode = await runCommand(args, { ...bareEnvironment(), ...environment })
    const [out = '', err = ''] = [stdout, stderr].map((each) => each?.mock.calls.map(([text]) => text).join(''))
    return { exitCode, stdout: out, stderr: err }
  } finally {
    stdout?.mockRestore()
    stderr?.mockRestore()
  }
}
