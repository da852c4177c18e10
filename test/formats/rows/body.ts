import type { Json } from '../../../src/base/index.ts'

/** One promise of a body format: this value is written like this, or refused. */
export interface BodyRow {
  readonly promise: string
  readonly value: Json
  readonly content?: string
  readonly contentType?: string
  readonly refusal?: string
}

export const BODY_ROWS: Readonly<Record<string, readonly BodyRow[]>> = {
  json: [
    { promise: 'writes JSON', value: { a: [1, null] }, content: '{"a":[1,null]}', contentType: 'application/json' },
  ],
  form: [
    {
      promise: 'writes fields, nested in brackets',
      value: { a: 'ä&=', b: { c: [1, true] }, gone: null },
      content: 'a=%C3%A4%26%3D&b[c][]=1&b[c][]=true',
      contentType: 'application/x-www-form-urlencoded',
    },
    { promise: 'refuses what has no fields', value: [1], refusal: 'INVALID_FIELD' },
  ],
  multipart: [
    {
      promise: 'repeats a field for each item of a list',
      value: { a: ['x', 2] },
      content:
        '--patchbay-n\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n--patchbay-n\r\nContent-Disposition: form-data; name="a"\r\n\r\n2\r\n--patchbay-n--\r\n',
      contentType: 'multipart/form-data; boundary=patchbay-n',
    },
    {
      promise: 'keeps names, file names and types inside their lines',
      value: { 'a"\r\nX: y': { filename: 'f"\n.txt', content: 'c', content_type: 'text/plain\r\nX: y' } },
      content:
        '--patchbay-n\r\nContent-Disposition: form-data; name="a%22%0D%0AX: y"; filename="f%22%0A.txt"\r\nContent-Type: text/plainX: y\r\n\r\nc\r\n--patchbay-n--\r\n',
      contentType: 'multipart/form-data; boundary=patchbay-n',
    },
    { promise: 'refuses what has no fields', value: 'x', refusal: 'INVALID_FIELD' },
  ],
  raw: [
    { promise: 'writes a text as it is', value: '<a/>', content: '<a/>', contentType: 'text/plain; charset=utf-8' },
    { promise: 'writes anything else as JSON', value: [1], content: '[1]', contentType: 'application/json' },
  ],
  xml: [{ promise: 'says that it is not available', value: {}, refusal: 'DEFINITION_INVALID' }],
}
