import type { ResponseFormat } from './response.ts'

/** `binary`: base64, where a JSON answer has to carry it. */
export const binary: ResponseFormat = {
  format: 'binary',
  summary: 'Bytes; where the answer is JSON they are base64.',
  accept: '*/*',
  isCheap: true,
  decode: (body) => Buffer.from(body).toString('base64'),
}
