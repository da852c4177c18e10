import { writeSync } from 'node:fs'

/** More than a burst of lines while the reader of a pipe is busy; what comes on top is dropped. */
const WAITING_BYTES_MAX = 1024 * 1024
/** Pause before a sink that is full or failed is tried again. */
const RETRY_MS = 250
const STANDARD_ERROR = 2

/**
 * Writes without waiting.
 *
 * @returns how many bytes were written
 * @throws an error of the operating system; EAGAIN when there is no room at the moment
 */
export type WriteBytes = (bytes: Buffer) => number

/**
 * Sink of log lines that neither blocks nor fails. Lines that a full disk, a closed pipe or a pipe that is not read does not take
 * are dropped and counted, and one line says how many once lines are taken again.
 *
 * A pipe that is full for a moment keeps up to 1 MiB waiting, in order.
 */
export class LogSink {
  readonly #writeBytes: WriteBytes
  #waiting: Buffer[] = []
  #waitingBytes = 0
  /** Whether the last line was written in part. */
  #isCut = false
  #dropped = 0
  /** How many dropped lines the log has told of, and will have told of when the notice at the head of the queue is written. */
  #reported = 0
  #reporting: number | undefined
  #retry: NodeJS.Timeout | undefined

  /** @param writeBytes default: to standard error */
  constructor(writeBytes: WriteBytes = nonBlockingStandardError()) {
    this.#writeBytes = writeBytes
  }

  /** How many lines were dropped. */
  get dropped(): number {
    return this.#dropped
  }

  /** Writes a line that ends with its line break. Named as pino calls it. */
  write(line: string): void {
    const bytes = Buffer.from(line)
    if (this.#waitingBytes + bytes.length > WAITING_BYTES_MAX) this.#dropped++
    else this.#push(bytes)
    // A sink that did not take the last line is tried after a pause, and not once a line.
    if (this.#retry === undefined) this.#flush()
  }

  #push(bytes: Buffer): void {
    this.#waiting.push(bytes)
    this.#waitingBytes += bytes.length
  }

  #flush(): void {
    this.#retry = undefined
    try {
      for (let bytes = this.#next(); bytes !== undefined; bytes = this.#next()) this.#advance(this.#writeBytes(bytes))
    } catch (error) {
      if (!isWithoutRoom(error)) this.#dropWaiting()
      this.#retry = setTimeout(() => this.#flush(), RETRY_MS).unref()
    }
  }

  /** The oldest line; after the last one, the notice of what was dropped. */
  #next(): Buffer | undefined {
    if (this.#waiting.length === 0 && this.#dropped > this.#reported) {
      this.#reporting = this.#dropped
      this.#push(this.#notice(this.#dropped - this.#reported))
    }
    return this.#waiting[0]
  }

  #notice(lines: number): Buffer {
    const notice = { level: 'warn', time: new Date().toISOString(), lines, msg: `${lines} log lines were dropped` }
    return Buffer.from(`${this.#isCut ? '\n' : ''}${JSON.stringify(notice)}\n`)
  }

  #advance(written: number): void {
    const [first = Buffer.alloc(0)] = this.#waiting
    this.#waitingBytes -= written
    this.#isCut = written < first.length
    if (this.#isCut) {
      this.#waiting[0] = first.subarray(written)
      return
    }
    this.#waiting.shift()
    this.#reported = this.#reporting ?? this.#reported
    this.#reporting = undefined
  }

  #dropWaiting(): void {
    this.#dropped += this.#waiting.length - (this.#reporting === undefined ? 0 : 1)
    this.#reporting = undefined
    this.#waiting = []
    this.#waitingBytes = 0
  }
}

function isWithoutRoom(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EAGAIN'
}

/**
 * Makes writing to a terminal that is not read (Ctrl-S, `docker run -t`) fail instead of waiting, which would stop the process. Node
 * makes a pipe or a socket non-blocking when it makes the stream, but leaves a terminal blocking; a file is not worth waiting for.
 */
export function writeWithoutWaiting(stream: NodeJS.WriteStream): void {
  const { _handle: handle } = stream as { readonly _handle?: { setBlocking?(isBlocking: boolean): void } }
  if (stream.isTTY) handle?.setBlocking?.(false)
}

function nonBlockingStandardError(): WriteBytes {
  writeWithoutWaiting(process.stderr)
  return (bytes) => writeSync(STANDARD_ERROR, bytes)
}
