import { Worker } from 'node:worker_threads'
import { type Json, JsonTextError, parseJsonInSlices } from '../../base/index.ts'
import { CharsetError, decodeText } from './charset.ts'
import { type ResponseFormat, utf8 } from './response.ts'

/** Bodies up to this many bytes are decoded at once; XML and CSV cost up to a millisecond per KiB. */
const INLINE_BYTES_MAX = 16 * 1024

/** How long one body may take in the worker thread. */
const DECODE_MS_MAX = 20_000

/** Heap of the worker thread, enough for the largest body as objects. */
const HEAP_MEGABYTES_MAX = 512

/** An unused thread is ended after this long. */
const IDLE_MS = 30_000

/** A body that the worker thread is to decode. */
export interface WorkerTask {
  readonly format: string
  readonly body: Uint8Array
  readonly charset: string | undefined
}

/** What the worker thread answers: the decoded body as JSON, or why there is none. Errors lose their class on the way. */
export type WorkerAnswer =
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
  if (body.byteLength <= INLINE_BYTES_MAX || format.isCheap === true) return format.decode(body, charset)
  if (format.format === 'json') return parseJsonInSlices(decodeText(body, charset))
  return parseJsonInSlices(utf8(await decodeInThread({ format: format.format, body, charset })))
}

let thread: Worker | undefined
let idleTimer: NodeJS.Timeout | undefined
let latest: Promise<unknown> = Promise.resolve()

/** One body after the other, since each may need the whole heap. */
function decodeInThread(task: WorkerTask): Promise<Uint8Array> {
  const decoded = latest.then(() => askThread(task))
  latest = decoded.catch(() => undefined)
  return decoded
}

function askThread(task: WorkerTask): Promise<Uint8Array> {
  clearTimeout(idleTimer)
  thread ??= startThread()
  const worker = thread
  return new Promise<Uint8Array>((resolve, reject) => {
    const end = (error: Error) => {
      void endThread()
      reject(error)
    }
    const timer = setTimeout(() => end(new Error(`takes longer than ${DECODE_MS_MAX} ms to read`)), DECODE_MS_MAX)
    const settle = () => {
      clearTimeout(timer)
      worker.removeAllListeners('message').removeAllListeners('error')
      worker.on('error', () => void endThread())
      idleTimer = setTimeout(() => void endThread(), IDLE_MS).unref()
    }
    worker.once('error', () => {
      settle()
      end(new Error('needs more memory to read than is allowed'))
    })
    worker.once('message', (answer: WorkerAnswer) => {
      settle()
      if (answer.kind === 'decoded') resolve(answer.json)
      else reject(errorOf(answer))
    })
    worker.postMessage(task)
  })
}

function errorOf({ error, message }: WorkerAnswer & { readonly kind: 'failed' }): Error {
  if (error === 'charset') return new CharsetError(message)
  return error === 'other' ? new Error(message) : new JsonTextError(error, message)
}

function startThread(): Worker {
  const worker = new Worker(new URL('./decode-thread.ts', import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MEGABYTES_MAX },
  })
  worker.unref()
  return worker
}

async function endThread(): Promise<void> {
  const ended = thread
  thread = undefined
  await ended?.terminate()
}
