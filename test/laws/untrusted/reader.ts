import { Failure } from '../../../src/foundation/base/index.ts'

/** One reader of bytes or texts that others wrote: a parser, decoder, scanner or check. */
export interface Reader {
  readonly name: string
  /** The exported functions of `src` that it covers, as `<file below src>#<function>`. */
  readonly covers: readonly string[]
  /** Longest input that reaches it, characters; what is longer is rejected before. */
  readonly lengthMax: number
  /** Reads one input. Inputs of byte decoders are given with one character per byte (latin1). */
  readonly read: (input: string) => unknown
  /** Whether the error is how it rejects an input; anything else it throws is a defect. */
  readonly rejects: (error: unknown) => boolean
  /** Valid inputs, which the fuzzer mutates. */
  readonly seeds: readonly string[]
  /** Inputs made to be expensive, of about that many characters. */
  readonly attacks: Readonly<Record<string, (length: number) => string>>
  /** Large inputs are read in a worker thread, so that only turns of the event loop can be measured. */
  readonly isOffLoop?: boolean
  /** Whether what was read says the same as the input, by its printer or by another reader. */
  readonly isFaithful?: (input: string, result: unknown) => boolean
}

export const KIB = 1024
export const MIB = 1024 * 1024

/** Bytes with one character each. */
export function bytes(input: string): Buffer {
  return Buffer.from(input, 'latin1')
}

/** The unit repeated to that length, between a beginning and an end. */
export function repeated(unit: string, before = '', after = ''): (length: number) => string {
  return (length) => before + unit.repeat(Math.max(0, Math.floor((length - before.length) / unit.length))) + after
}

/** Different units, numbered, joined to that length. */
export function numbered(unit: (index: number) => string, before = '', after = ''): (length: number) => string {
  return (length) => {
    const parts: string[] = []
    for (let size = before.length; size < length; size += parts.at(-1)?.length ?? 1) parts.push(unit(parts.length))
    return before + parts.join('') + after
  }
}

/** Rejects with an error of the caller, the definition or the upstream. */
export function withFailure(error: unknown): boolean {
  return error instanceof Failure
}

/** Formats throw what their caller turns into a failure. */
export function withError(error: unknown): boolean {
  return error instanceof Error && !(error instanceof TypeError) && !(error instanceof RangeError)
}

/** Accepts every input. */
export function never(): boolean {
  return false
}
