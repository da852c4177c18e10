import type { Json } from '../../../src/base/index.ts'

/** One promise of a response format: these bytes are read like this; without a value they are refused. */
export interface ResponseRow {
  readonly promise: string
  readonly body: string | Uint8Array
  readonly value?: Json
}

export const RESPONSE_ROWS: Readonly<Record<string, readonly ResponseRow[]>> = {
  json: [
    { promise: 'reads JSON', body: '{"a":"ä"}', value: { a: 'ä' } },
    { promise: 'tolerates a byte order mark', body: '\ufeff[1]', value: [1] },
    { promise: 'refuses half of it', body: '{"a":' },
  ],
  ndjson: [
    { promise: 'reads one value per line, blank lines aside', body: '{"a":1}\r\n\n2\n', value: [{ a: 1 }, 2] },
    { promise: 'refuses a broken line', body: '{"a":1}\n{' },
  ],
  text: [{ promise: 'reads text', body: 'hä', value: 'hä' }],
  binary: [{ promise: 'reads bytes as base64', body: new Uint8Array([0, 255, 16]), value: 'AP8Q' }],
  xml: [{ promise: 'says that it is not available', body: '<a/>' }],
  csv: [{ promise: 'says that it is not available', body: 'a,b' }],
}
