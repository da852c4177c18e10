import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { bareEnvironment } from '../../../../support/product.ts'

const MAIN = join(import.meta.dirname, '../../../../../src/main.ts')

/** `patchbay daemon` in its own process. */
export class DaemonProcess implements AsyncDisposable {
  readonly child: ChildProcess
  /** Exit code; `null` after a signal. */
  readonly ended: Promise<number | null>
  readonly #waiting = new Set<() => void>()
  #output = ''

  /** @param args after `daemon` */
  constructor(args: readonly string[], environment: NodeJS.ProcessEnv = {}, nodeArgs: readonly string[] = []) {
    this.child = spawn(process.execPath, [...nodeArgs, MAIN, 'daemon', ...args], {
      env: { ...bareEnvironment(), ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [this.child.stdout, this.child.stderr])
      stream?.on('data', (chunk: Buffer) => {
        this.#output += chunk.toString()
        for (const look of this.#waiting) look()
      })
    this.ended = once(this.child, 'close').then(([code]) => code)
  }

  /** Standard output and error so far. */
  get output(): string {
    return this.#output
  }

  /** Resolves once its output contains the text. */
  async waitForOutput(text: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const look = () => this.#output.includes(text) && resolve()
    this.#waiting.add(look)
    look()
    await promise
    this.#waiting.delete(look)
  }

  /** Sends the signal and waits for the end. */
  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null> {
    this.child.kill(signal)
    return await this.ended
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end('SIGKILL')
  }
}
