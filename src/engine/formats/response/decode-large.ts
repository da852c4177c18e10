import { type TaskOwner, WorkerThreads } from '../../../foundation/fair/index.ts'
import { type Json, JsonTextError, parseJsonInSlices } from '../../../foundation/json/index.ts'
import type { FormatChoice } from '../format.ts'
import { CharsetError, decodeJsonText } from './charset.ts'
import { BodyFormatError, decodeUtf8, type ResponseFormat } from './response.ts'

/** Largest body that is decoded in this thread; XML and CSV take up to a millisecond per KiB. */
const INLINE_BYTES_MAX = 16 * 1024

/** Timeout of one body in the worker thread. */
const DECODE_MS_MAX = 20_000

/** Heap of a worker thread; the largest body as objects fits. */
const HEAP_MEGABYTES_MAX = 512

/** A task of a worker thread. */
export interface DecodeTask {
  readonly format: FormatChoice
  readonly body: Uint8Array
  readonly charset: string | undefined
}

/** The decoded body as JSON, or an error; errors lose their class between threads. */
export type DecodeResult =
  | { readonly kind: 'decoded'; readonly json: Uint8Array }
  | {
      readonly kind: 'failed'
      readonly error: 'charset' | 'format' | JsonTextError['kind'] | 'other'
      readonly message: string
    }

/**
 * `ResponseFormat.decode` without blocking the event loop: JSON is parsed in slices, other formats in a worker thread with
 * limits of time and memory.
 *
 * @param charset of the content type
 * @param owner whose tasks take turns with those of others
 * @throws CharsetError, JsonTextError, BodyFormatError, or another Error when the body is not in this format; Failure RATE_LIMITED, CANCELLED
 */
export async function decodeLarge(
  format: ResponseFormat,
  body: Uint8Array,
  charset: string | undefined,
  owner: TaskOwner,
): Promise<Json> {
  if (body.byteLength <= INLINE_BYTES_MAX || format.decodesInline === true) return format.decode(body, charset)
  if (format.format === 'json') return parseJsonInSlices(decodeJsonText(body, charset))
  const choice = { format: format.format, config: format.settings }
  return parseJsonInSlices(decodeUtf8(await decodeInThread({ format: choice, body, charset }, owner)))
}

const threads = new WorkerThreads<DecodeTask, DecodeResult>(new URL('./decode-thread.ts', import.meta.url), {
  threads: 2,
  taskMs: DECODE_MS_MAX,
  heapMegabytes: HEAP_MEGABYTES_MAX,
})

async function decodeInThread(task: DecodeTask, owner: TaskOwner): Promise<Uint8Array> {
  const answer = await threads.run(task, task.body.byteLength, owner)
  if (answer.kind === 'failed') throw errorOf(answer)
  return answer.json
}

function errorOf({ error, message }: DecodeResult & { readonly kind: 'failed' }): Error {
  if (error === 'charset') return new CharsetError(message)
  if (error === 'format') return new BodyFormatError(message)
  return error === 'other' ? new Error(message) : new JsonTextError(error, message)
}
