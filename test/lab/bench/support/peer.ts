import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

/** A program of this folder as a process of its own, which says one thing after another. */
export class Peer<Message> implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #exited: Promise<unknown>

  /** @param file beside this one */
  constructor(file: string, args: readonly string[] = []) {
    this.#child = fork(join(import.meta.dirname, file), [...args])
    this.#exited = once(this.#child, 'exit')
  }

  /** Asks it to do what it does. */
  go(): void {
    this.#child.send('go')
  }

  /** What it says next. @throws Error when it ends without a word */
  async next(): Promise<Message> {
    const [said] = await Promise.race([once(this.#child, 'message'), this.#exited.then(() => [undefined])])
    if (said === undefined) throw new Error('the process ended')
    return said
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#exited
  }
}
