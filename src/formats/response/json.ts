import type { Json } from '../../base/index.ts'
import { type ResponseFormat, utf8 } from './response.ts'

/** `json`: the default. A byte order mark is tolerated. */
export const json: ResponseFormat = {
  format: 'json',
  summary: 'JSON.',
  accept: 'application/json',
  decode: (body) => JSON.parse(utf8(body)) as Json,
}
