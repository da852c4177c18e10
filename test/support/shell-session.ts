import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bareEnvironment } from './product.ts'

const ROOT = join(import.meta.dirname, '../..')

/** What commands printed on both streams, and how they ended. */
export interface ShellResult {
  readonly exitCode: number
  readonly output: string
}

/**
 * A terminal in the directory of the repository: one bash in which later commands see the variables and functions of earlier
 * ones. A command that fails ends its block.
 */
export class ShellSession implements Disposable {
  readonly #shell: ChildProcess
  readonly #folder = mkdtempSync(join(tmpdir(), 'patchbay-shell-'))
  readonly #ended = new Map<number, (exitCode: number) => void>()
  readonly #replaced: readonly (readonly [string, string])[]
  #blocks = 0

  /** @param replaced texts of the commands that are different here, such as the address of the server */
  constructor(environment: Readonly<Record<string, string>>, replaced: Readonly<Record<string, string>>) {
    this.#replaced = Object.entries(replaced)
    this.#shell = spawn('bash', ['-uo', 'pipefail'], {
      cwd: ROOT,
      env: { ...bareEnvironment(), ...environment },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    this.#shell.once('close', () => {
      for (const settle of this.#ended.values()) settle(-1)
    })
    let printed = ''
    this.#shell.stdout?.on('data', (chunk: Buffer) => {
      const lines = `${printed}${chunk}`.split('\n')
      printed = lines.pop() ?? ''
      for (const line of lines) this.#settle(line)
    })
  }

  /** Runs commands whose variables later ones see; the first that fails ends the session. */
  run(commands: string): Promise<ShellResult> {
    return this.#start(
      (file, block) => `{ set -e\n${commands}\nset +e; } > ${file} 2>&1 < /dev/null\necho "${block} $?"\n`,
    )
  }

  /** Runs commands beside others, after those of `run`; nothing sees their variables. */
  runApart(commands: string): Promise<ShellResult> {
    return this.#start(
      (file, block) => `{ ( set -e\n${commands}\n) > ${file} 2>&1 < /dev/null; echo "${block} $?"; } &\n`,
    )
  }

  /** What a block has printed so far; the first is 1. */
  printed(block: number): string {
    return readFileSync(this.#file(block), { encoding: 'utf8', flag: 'a+' })
  }

  [Symbol.dispose](): void {
    this.#shell.stdin?.end('kill $(jobs -p) 2> /dev/null\n')
    rmSync(this.#folder, { recursive: true, force: true })
  }

  async #start(write: (file: string, block: number) => string): Promise<ShellResult> {
    const block = ++this.#blocks
    const exitCode = await new Promise<number>((resolve) => {
      this.#ended.set(block, resolve)
      const text = write(this.#file(block), block)
      this.#shell.stdin?.write(this.#replaced.reduce((script, [from, to]) => script.replaceAll(from, to), text))
    })
    return { exitCode, output: this.printed(block) }
  }

  #settle(line: string): void {
    const [block = 0, exitCode = -1] = line.split(' ').map(Number)
    this.#ended.get(block)?.(exitCode)
    this.#ended.delete(block)
  }

  #file(block: number): string {
    return join(this.#folder, `${block}.txt`)
  }
}
