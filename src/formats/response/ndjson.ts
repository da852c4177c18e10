import type { Json } from '../../base/index.ts'
import { type ResponseFormat, utf8 } from './response.ts'

/** `ndjson`: one JSON value per line, read as a list; blank lines are skipped. */
export const ndjson: ResponseFormat = {
  format: 'ndjson',
  summary: 'One JSON value per line, read as a list.',
  accept: 'application/x-ndjson',
  decode: (body) => {
    const lines = utf8(body).split('\n')
    return lines.filter((line) => line.trim() !== '').map((line) => JSON.parse(line) as Json)
  },
}
