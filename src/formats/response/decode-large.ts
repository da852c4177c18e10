import { type Json, JsonTextError, parseJsonInSlices, WorkerThread } from '../../base/index.ts'
import { CharsetError, decodeText } from './charset.ts'
import { decodeUtf8, type ResponseFormat } from './response.ts'

/** Bodies up to this many bytes are decoded at once; XML and CSV cost up to a millisecond per KiB. */
const INLINE_BYTES_MAX = 16 * 1024

/** How long one body may take in the worker thread. */
const DECODE_MS_MAX = 20_000

/** Heap of the worker thread, enough for the largest body as objects. */
const HEAP_MEGABYTES_MAX = 512

/** A body that the worker thread is to decode. */
export interface DecodeTask {
  readonly format: string
  readonly body: Uint8Array
  readonly charset: string | undefined
}

/** What the worker thread answers: the decoded body as JSON, or why there is none. Errors lose their class on the way. */
export type DecodeResult =
  | { readonly kind: 'decoded'; readonly json: Uint8Array }
  | { readonly kind: 'failed'; readonly error: 'charset' | JsonTextError['kind'] | 'other'; readonly message: string }

/**
 * `ResponseFormat.decode` without holding the event loop: JSON is parsed in slices, other formats in a worker thread that is
 * ended when it takes too long or too much memory.
 *
 * @param charset the one that the content type names
 * @throws CharsetError, JsonTextError, or another Error when the body is not in this format
 */
export async function decodeLarge(format: ResponseFormat, body: Uint8Array, charset?: string): Promise<Json> {
  if (body.byteLength <= INLINE_BYTES_MAX || format.decodesInline === true) return format.decode(body, charset)
  if (format.format === 'json') return parseJsonInSlices(decodeText(body, charset))
  return parseJsonInSlices(decodeUtf8(await decodeInThread({ format: format.format, body, charset })))
}

const thread = new WorkerThread<DecodeTask, DecodeResult>(new URL('./decode-thread.ts', import.meta.url), {
  taskMs: DECODE_MS_MAX,
  heapMegabytes: HEAP_MEGABYTES_MAX,
})

async function decodeInThread(task: DecodeTask): Promise<Uint8Array> {
  const answer = await thread.run(task)
  if (answer.kind === 'failed') throw errorOf(answer)
  return answer.json
}

function errorOf({ error, message }: DecodeResult & { readonly kind: 'failed' }): Error {
  if (error === 'charset') return new CharsetError(message)
  return error === 'other' ? new Error(message) : new JsonTextError(error, message)
}
