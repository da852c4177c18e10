import { type Json, type JsonObject, parseJson } from '../../../src/base/index.ts'

const NUMBERS = parseJson('{"a":12345678901234567890,"b":[1.10]}') as JsonObject

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
    {
      promise: 'writes numbers as they came',
      value: NUMBERS,
      content: '{"a":12345678901234567890,"b":[1.10]}',
      contentType: 'application/json',
    },
    { promise: 'writes JSON', value: { a: [1, null] }, content: '{"a":[1,null]}', contentType: 'application/json' },
  ],
  form: [
    {
      promise: 'writes fields, nested in brackets',
      value: { a: 'ä&=', b: { c: [1, true] }, gone: null },
      content: 'a=%C3%A4%26%3D&b[c][]=1&b[c][]=true',
      contentType: 'application/x-www-form-urlencoded',
    },
    {
      promise: 'keeps the fields of objects in a list together',
      value: { items: [{ price: 'p1', quantity: 1 }, { price: 'p2' }] },
      content: 'items[0][price]=p1&items[0][quantity]=1&items[1][price]=p2',
      contentType: 'application/x-www-form-urlencoded',
    },
    {
      promise: 'writes numbers as they came',
      value: NUMBERS,
      content: 'a=12345678901234567890&b[]=1.10',
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
      promise: 'writes numbers as they came',
      value: NUMBERS,
      content:
        '--patchbay-n\r\nContent-Disposition: form-data; name="a"\r\n\r\n12345678901234567890\r\n--patchbay-n\r\nContent-Disposition: form-data; name="b"\r\n\r\n1.10\r\n--patchbay-n--\r\n',
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
    {
      promise: 'writes a number as it came',
      value: parseJson('1.10'),
      content: '1.10',
      contentType: 'application/json',
    },
    { promise: 'writes anything else as JSON', value: [1], content: '[1]', contentType: 'application/json' },
  ],
  xml: [
    {
      promise: 'writes elements, attributes, text, lists and nothing',
      value: {
        order: {
          '@id': 7,
          '@gone': null,
          'n:item': [{ '@sku': 'a' }, { '#text': 'b', '@sku': 'c' }, 'd'],
          empty: null,
          none: [],
          paid: true,
        },
      },
      content:
        '<?xml version="1.0" encoding="UTF-8"?><order id="7"><n:item sku="a"/><n:item sku="c">b</n:item><n:item>d</n:item><empty/><paid>true</paid></order>',
      contentType: 'application/xml',
    },
    {
      promise: 'keeps texts inside their element or attribute',
      value: { a: { '@b': '"<&>\'\n\t', '#text': '</a><!-- & ]]> \r' } },
      content:
        '<?xml version="1.0" encoding="UTF-8"?><a b="&quot;&lt;&amp;&gt;\'&#10;&#9;">&lt;/a&gt;&lt;!-- &amp; ]]&gt; &#13;</a>',
      contentType: 'application/xml',
    },
    {
      promise: 'writes numbers as they came',
      value: { r: { '@n': parseJson('1E5'), ...NUMBERS } },
      content: '<?xml version="1.0" encoding="UTF-8"?><r n="1E5"><a>12345678901234567890</a><b>1.10</b></r>',
      contentType: 'application/xml',
    },
    { promise: 'refuses what is no object', value: 'a', refusal: 'INVALID_FIELD' },
    { promise: 'refuses an object without a root', value: {}, refusal: 'one key, the root element' },
    { promise: 'refuses two roots', value: { a: 1, b: 2 }, refusal: 'one key, the root element' },
    { promise: 'refuses a list of roots', value: { a: [1] }, refusal: 'one key, the root element' },
    { promise: 'refuses a key that is no name', value: { 'a b': 1 }, refusal: 'no element can have: "a b"' },
    { promise: 'refuses a key that would close the tag', value: { 'a><b': 1 }, refusal: 'no element can have' },
    { promise: 'refuses an attribute that is no name', value: { a: { '@b c': 1 } }, refusal: '"@b c"' },
    { promise: 'refuses a list within a list', value: { a: { b: [[1]] } }, refusal: 'a list within a list at b' },
    {
      promise: 'refuses an object as an attribute',
      value: { a: { '@b': {} } },
      refusal: 'at @b, where a text belongs',
    },
    { promise: 'refuses a list as a text', value: { a: { '#text': [1] } }, refusal: 'at #text, where a text belongs' },
    { promise: 'refuses what XML cannot hold', value: { a: '\u0000' }, refusal: 'a character that XML cannot hold' },
    { promise: 'refuses half a pair', value: { a: '\ud800' }, refusal: 'a character that XML cannot hold' },
    { promise: 'refuses what is nested without end', value: nested(65), refusal: 'deeper than 64' },
  ],
}

function nested(depth: number): Json {
  return Array.from({ length: depth }).reduce<Json>((inner) => ({ a: inner }), 'x')
}
