import { type Json, type JsonObject, parseJson } from '../../../../../src/foundation/json/index.ts'

const NUMBERS = parseJson('{"a":12345678901234567890,"b":[1.10]}') as JsonObject

/** One promise of a body format: this value is written like this, or rejected. */
export interface BodyRow {
  readonly promise: string
  readonly value: Json
  readonly content?: string
  readonly contentType?: string
  readonly failure?: string
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
    { promise: 'rejects what has no fields', value: [1], failure: 'INVALID_FIELD' },
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
    { promise: 'rejects what has no fields', value: 'x', failure: 'INVALID_FIELD' },
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
    { promise: 'rejects what is no object', value: 'a', failure: 'INVALID_FIELD' },
    { promise: 'rejects an object without a root', value: {}, failure: 'one key, the root element' },
    { promise: 'rejects two roots', value: { a: 1, b: 2 }, failure: 'one key, the root element' },
    { promise: 'rejects a list of roots', value: { a: [1] }, failure: 'one key, the root element' },
    { promise: 'rejects a key that is no name', value: { 'a b': 1 }, failure: 'no element can have: "a b"' },
    { promise: 'rejects a key that would close the tag', value: { 'a><b': 1 }, failure: 'no element can have' },
    { promise: 'rejects an attribute that is no name', value: { a: { '@b c': 1 } }, failure: '"@b c"' },
    { promise: 'rejects a list within a list', value: { a: { b: [[1]] } }, failure: 'a list within a list at b' },
    {
      promise: 'rejects an object as an attribute',
      value: { a: { '@b': {} } },
      failure: 'at @b, where a text belongs',
    },
    { promise: 'rejects a list as a text', value: { a: { '#text': [1] } }, failure: 'at #text, where a text belongs' },
    { promise: 'rejects what XML cannot hold', value: { a: '\u0000' }, failure: 'a character that XML cannot hold' },
    { promise: 'rejects half a pair', value: { a: '\ud800' }, failure: 'a character that XML cannot hold' },
    { promise: 'rejects what is nested without end', value: nested(65), failure: 'deeper than 64' },
  ],
}

function nested(depth: number): Json {
  return Array.from({ length: depth }).reduce<Json>((inner) => ({ a: inner }), 'x')
}
