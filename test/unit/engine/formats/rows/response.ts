import type { Json, JsonObject } from '../../../../../src/foundation/json/index.ts'

/** One promise of a response format: these bytes are read like this; without a value they are rejected. */
export interface ResponseRow {
  readonly promise: string
  readonly body: string | Uint8Array
  /** `config` of the format. */
  readonly config?: JsonObject
  readonly value?: Json
  /** Message of the error, in whole. */
  readonly failure?: string
}

export const RESPONSE_ROWS: Readonly<Record<string, readonly ResponseRow[]>> = {
  json: [
    { promise: 'reads JSON', body: '{"a":"ä"}', value: { a: 'ä' } },
    { promise: 'tolerates a byte order mark', body: '\ufeff[1]', value: [1] },
    { promise: 'rejects half of it', body: '{"a":' },
  ],
  ndjson: [
    { promise: 'reads one value per line, blank lines aside', body: '{"a":1}\r\n\n2\n', value: [{ a: 1 }, 2] },
    { promise: 'rejects a broken line', body: '{"a":1}\n{' },
  ],
  text: [{ promise: 'reads text', body: 'hä', value: 'hä' }],
  binary: [{ promise: 'reads bytes as base64', body: new Uint8Array([0, 255, 16]), value: 'AP8Q' }],
  xml: [
    {
      promise: 'reads elements, attributes, texts and lists',
      body: '<?xml version="1.0"?><r a="1"><i>x</i><i b="2">y</i><e/><s>\n</s></r>',
      value: { r: { '@a': '1', i: ['x', { '@b': '2', '#text': 'y' }], e: '', s: '' } },
    },
    { promise: 'guesses at no value', body: '<a n=" 007 ">1.0</a>', value: { a: { '@n': ' 007 ', '#text': '1.0' } } },
    {
      promise: 'keeps texts as they are, blank ones between elements aside',
      body: '<a> x <b> y </b>\r\n<c/> z</a>',
      value: { a: { '#text': ' x  z', b: ' y ', c: '' } },
    },
    {
      promise: 'keeps prefixes of namespaces',
      body: '<s:a xmlns:s="urn:s"><s:b/></s:a>',
      value: { 's:a': { '@xmlns:s': 'urn:s', 's:b': '' } },
    },
    {
      promise: 'reads CDATA, and no comments or instructions',
      body: '<a><!-- <b/> --><?php x?><![CDATA[<b>&amp;</b>]]></a>',
      value: { a: '<b>&amp;</b>' },
    },
    {
      promise: 'reads the entities that every document may use',
      body: '<a b="&quot;&#9;">&lt;&amp;&#65;&#x1F600;&apos;</a>',
      value: { a: { '@b': '"\t', '#text': "<&A\u{1F600}'" } },
    },
    {
      promise: 'leaves what is no entity, or no character',
      body: '<a>&nbsp;&#0;&#xD800;&#x110000;</a>',
      value: { a: '&nbsp;&#0;&#xD800;&#x110000;' },
    },
    {
      promise: 'reads a text once only',
      body: '<a>&amp;lt;&amp;amp;</a>',
      value: { a: '&lt;&amp;' },
    },
    {
      promise: 'reads other encodings by their declaration',
      body: Buffer.from('<?xml version="1.0" encoding="ISO-8859-1"?><a>h\u00e4</a>', 'latin1'),
      value: { a: 'h\u00e4' },
    },
    {
      promise: 'reads UTF-16 by its byte order mark',
      body: Buffer.from('\ufeff<a>h\u00e4</a>', 'utf16le'),
      value: { a: 'h\u00e4' },
    },
    { promise: 'tolerates a byte order mark', body: '\ufeff<a/>', value: { a: '' } },
    { promise: 'takes names of other objects for names', body: '<a><toString/></a>', value: { a: { toString: '' } } },
    {
      promise: 'never reads a document type',
      body: '<!DOCTYPE a SYSTEM "http://169.254.169.254/x.dtd"><a>&x;</a>',
      value: { a: '&x;' },
    },
    { promise: 'rejects the half of a document', body: '<a><b>x</b>' },
    { promise: 'rejects tags that cross', body: '<a><b></a></b>' },
    { promise: 'rejects a repeated attribute', body: '<a b="1" b="2"/>' },
    { promise: 'rejects several roots', body: '<a/><a/>' },
    { promise: 'rejects several roots of other names', body: '<a/><b/>' },
    { promise: 'rejects text alone', body: 'service unavailable' },
    {
      promise: 'reads UTF-8 that names an unknown encoding',
      body: '<?xml version="1.0" encoding="x-none"?><a>ä</a>',
      value: { a: 'ä' },
    },
    {
      promise: 'rejects an unknown encoding of other bytes',
      body: Buffer.from('<?xml version="1.0" encoding="x-none"?><a>\xe4</a>', 'latin1'),
    },
    { promise: 'rejects a name that reaches prototypes', body: '<a><__proto__>1</__proto__></a>' },
    { promise: 'rejects entities of its own', body: '<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>' },
    { promise: 'rejects external entities', body: '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>' },
    { promise: 'rejects parameter entities', body: '<!DOCTYPE a [<!ENTITY % x SYSTEM "http://x/">%x;]><a/>' },
  ],
  tsv: [
    { promise: 'reads values between tabs', body: 'a\tb\n1,5\t"x\ty"\n', value: [{ a: '1,5', b: 'x\ty' }] },
    { promise: 'reads one column, whatever its name holds', body: 'a,b\n1,2\n', value: [{ 'a,b': '1,2' }] },
    {
      promise: 'reads quotes as characters where the definition says so',
      config: { quote: 'none' },
      body: 'size\tnote\n5"\t"open\n',
      value: [{ size: '5"', note: '"open' }],
    },
  ],
  csv: [
    {
      promise: 'separates by the delimiter of the definition',
      config: { delimiter: '|' },
      body: 'a|b,c\n1|"2|3"\n',
      value: [{ a: '1', 'b,c': '2|3' }],
    },
    {
      promise: 'separates by several characters',
      config: { delimiter: '||' },
      body: 'a||b\n1||2',
      value: [{ a: '1', b: '2' }],
    },
    {
      promise: 'reads another quote, doubled within',
      config: { quote: "'" },
      body: "a,b\n'x,''y',5\"\n",
      value: [{ a: "x,'y", b: '5"' }],
    },
    {
      promise: 'skips lines before the header line, whatever is in them, and guesses the delimiter below',
      config: { skip_lines: 3 },
      body: '\ufeffReport, of "May, June\r\n\rcreated: today\na;b\n1,5;2\n',
      value: [{ a: '1,5', b: '2' }],
    },
    { promise: 'skips more lines than there are', config: { skip_lines: 9 }, body: 'a\n1', value: [] },
    {
      promise: 'reads a byte order mark before quoted names',
      body: '\ufeff"col1","col2"\r\n1,2\r\n',
      value: [{ col1: '1', col2: '2' }],
    },
    {
      promise: 'skips the line with which spreadsheets name the delimiter',
      config: { skip_lines: 1 },
      body: 'sep=;\r\na;b\r\n1,5;2\r\n',
      value: [{ a: '1,5', b: '2' }],
    },
    {
      promise: 'names columns where no line does',
      config: { columns: ['id', 'name'], skip_lines: 1 },
      body: 'x\n1,a\n2,b\n',
      value: [
        { id: '1', name: 'a' },
        { id: '2', name: 'b' },
      ],
    },
    {
      promise: 'names the row with more values than columns, and nothing of it',
      config: { columns: ['id'] },
      body: '1\n2,secret\n',
      failure: 'has 2 values in row 2, but names for 1 columns',
    },
    {
      promise: 'names the row and line of a quote within a value',
      config: { skip_lines: 1 },
      body: 'x\na,b\n"1\n",2\n3,5" secret\n',
      failure: 'has a quote within a value in row 2 (line 5); see quote and delimiter of response_format',
    },
    {
      promise: 'names the line of text behind a quote',
      config: { columns: ['a'] },
      body: '"1"\n"2"secret',
      failure: 'has text behind a closing quote in row 2 (line 2); see quote and delimiter of response_format',
    },
    {
      promise: 'names the row of a quote that is not closed',
      body: 'a\n1\n"2\n3\n4\n',
      failure: 'opens a quote in row 2 that is not closed; see quote and delimiter of response_format',
    },
    {
      promise: 'reads a header line and texts',
      body: 'id,name\r\n007,"Ada ""L"" <a>,\nB"\n8,\n',
      value: [
        { id: '007', name: 'Ada "L" <a>,\nB' },
        { id: '8', name: '' },
      ],
    },
    {
      promise: 'tolerates a byte order mark, blank lines and no last line end',
      body: '\ufeffa\n\n1',
      value: [{ a: '1' }],
    },
    { promise: 'reads old line ends', body: 'a,b\r1,2\r', value: [{ a: '1', b: '2' }] },
    { promise: 'finds semicolons', body: 'a;"b,c,d";e\n1,5;2;3\n', value: [{ a: '1,5', 'b,c,d': '2', e: '3' }] },
    { promise: 'finds tabs', body: 'a\tb\n1\t2\n', value: [{ a: '1', b: '2' }] },
    { promise: 'leaves out columns after the end of a row', body: 'a,b,c\n1,2\n', value: [{ a: '1', b: '2' }] },
    { promise: 'tolerates a delimiter too many', body: 'a,b\n1,2,\n', value: [{ a: '1', b: '2' }] },
    {
      promise: 'makes a list of a column that repeats',
      body: 'a,l,l,l\n1,x,y,\n',
      value: [{ a: '1', l: ['x', 'y', ''] }],
    },
    { promise: 'is empty when there are no rows', body: 'a,b\n', value: [] },
    { promise: 'rejects a row that is longer than the header', body: 'a,b\n1,2,3\n' },
    { promise: 'rejects a quote without end', body: 'a,b\n1,"2\n' },
    { promise: 'rejects a quote within a value', body: 'a,b\n1,2"3\n' },
  ],
}
