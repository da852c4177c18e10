/** Entry point of the worker thread of `decodeLarge`: parsers of libraries cannot yield to the event loop. */
import { parentPort } from 'node:worker_threads'
import { JsonTextError } from '../../../foundation/json/index.ts'
import { CharsetError } from './charset.ts'
import type { DecodeResult, DecodeTask } from './decode-large.ts'
import { responseFormat } from './registry.ts'
import { BodyFormatError } from './response.ts'

parentPort?.on('message', (task: DecodeTask) => {
  const answer = decode(task)
  parentPort?.postMessage(answer, answer.kind === 'decoded' ? [answer.json.buffer as ArrayBuffer] : [])
})

function decode({ format, body, charset }: DecodeTask): DecodeResult {
  try {
    const json = new TextEncoder().encode(JSON.stringify(responseFormat(format).decode(body, charset)))
    return { kind: 'decoded', json }
  } catch (error) {
    return { kind: 'failed', error: kindOf(error), message: error instanceof Error ? error.message : 'cannot be read' }
  }
}

function kindOf(error: unknown): (DecodeResult & { readonly kind: 'failed' })['error'] {
  if (error instanceof JsonTextError) return error.kind
  if (error instanceof BodyFormatError) return 'format'
  return error instanceof CharsetError ? 'charset' : 'other'
}
