import { parseJson } from '../../base/index.ts'
import { decodeText } from './charset.ts'
import type { ResponseFormat } from './response.ts'

/** `json`: the default. A byte order mark is tolerated. Numbers keep their text, see `JsonNumber`. */
export const json: ResponseFormat = {
  format: 'json',
  summary: 'JSON, up to 256 levels deep; every number is kept as it is written.',
  accept: 'application/json',
  decode: (body, charset) => parseJson(decodeText(body, charset)),
}
