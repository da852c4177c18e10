import { parseJson } from '../../base/index.ts'
import { decodeText } from './charset.ts'
import type { ResponseFormat } from './response.ts'

/** `ndjson`: one JSON value per line, read as a list; blank lines are skipped. */
export const ndjson: ResponseFormat = {
  format: 'ndjson',
  summary: 'One JSON value per line, read as a list.',
  accept: 'application/x-ndjson',
  decode: (body, charset) => {
    const lines = decodeText(body, charset).split('\n')
    return lines.filter((line) => line.trim() !== '').map((line) => parseJson(line))
  },
}
