/** A request: one line of JSON. The inputs are the last member, so that the parent can append their texts. */
export interface EvaluationRequest {
  readonly text: string
  /** For all inputs together, see `WALL_FACTOR`; the parent kills the process somewhat later. */
  readonly timeoutMs: number
  /** Of each result. */
  readonly resultBytesMax: number
  /** Of all results together. */
  readonly totalBytesMax: number
  /** Values of variables by name. */
  readonly bindings?: Readonly<Record<string, unknown>>
  /** Evaluated in this order; each has a response of its own. */
  readonly inputs: readonly unknown[]
}

/**
 * A timeout is CPU time: on a busy machine an evaluation mostly waits for its turn, which is not its fault. On the clock it may
 * take so many times as long.
 */
export const WALL_FACTOR = 4

/** Why an evaluation gave no result. */
export interface EvaluationError {
  /** JSONata's code (`T2001`) or one of ours (`RESULT_TOO_LARGE`). */
  readonly code: string
  /** Without values of the input: they may be secrets. */
  readonly message: string
  /** Characters from the start of the expression; absent when the error has no position. */
  readonly position?: number
}

/** The sandbox is ready, or an evaluation ended with a value, with none, or with an error, or had no time left to start. */
type SandboxResponseKind = 'ready' | 'value' | 'nothing' | 'error' | 'skipped'

/** One response. */
export interface SandboxResponse {
  readonly kind: SandboxResponseKind
  /** CPU time of the evaluation; independent of the load of the machine, unlike wall time. */
  readonly cpuMs: number
  /** JSON of the value or of an `EvaluationError`; empty otherwise. */
  readonly payload: string
}

/** The response as a line, without its line end. */
export function encodeResponse(answer: SandboxResponse): string {
  return `${answer.kind} ${answer.cpuMs} ${answer.payload}`
}

/** Parses a line; `undefined` when it is not a response. */
export function decodeResponse(line: string): SandboxResponse | undefined {
  const kindEnd = line.indexOf(' ')
  const timeEnd = line.indexOf(' ', kindEnd + 1)
  const kind = KINDS.find((known) => known === line.slice(0, kindEnd))
  const cpuMs = Number(line.slice(kindEnd + 1, timeEnd))
  if (kind === undefined || timeEnd === -1 || !Number.isFinite(cpuMs)) return undefined
  return { kind, cpuMs, payload: line.slice(timeEnd + 1) }
}

const KINDS: readonly SandboxResponseKind[] = ['ready', 'value', 'nothing', 'error', 'skipped']

/** Splits a stream of text into lines; linear, also for very long lines. */
export class LineReader {
  readonly #onLine: (line: string) => void
  #pending: string[] = []
  #pendingLength = 0

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine
  }

  /** Characters of the unfinished line. */
  get pendingLength(): number {
    return this.#pendingLength
  }

  push(chunk: string): void {
    let start = 0
    for (let end = chunk.indexOf('\n'); end !== -1; end = chunk.indexOf('\n', start)) {
      const tail = chunk.slice(start, end)
      const line = this.#pending.length === 0 ? tail : this.#pending.join('') + tail
      this.#pending = []
      this.#pendingLength = 0
      start = end + 1
      this.#onLine(line)
    }
    if (start === chunk.length) return
    const rest = chunk.slice(start)
    this.#pending.push(rest)
    this.#pendingLength += rest.length
  }
}
