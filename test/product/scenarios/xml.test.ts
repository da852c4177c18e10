import { expect, test } from 'vitest'
import { startScenario } from './scenario.ts'

const scenario = await startScenario()
const upstream = await scenario.upstream()
const XML = { 'content-type': 'application/xml' }

/** A third party that speaks XML both ways and reports errors inside answers of status 200. */
const account = await scenario.connect(
  {
    base_url: upstream.url,
    credentials: { api_key: { config: {} } },
    authorization: { format: 'query', config: { params: { key: '{{api_key}}' } } },
    pagination: { format: 'page', config: { page_key: 'page', limit_key: 'size', limit: 2 } },
    error_expression:
      '$exists(body.response.error) ? {"status": 400, "message": body.response.error."#text", "metadata": {"code": body.response.error."@code"}}',
    resources: {
      books: {
        list: { path: '/books.xml', response_format: 'xml', response_path: 'response.books.book' },
        create: { method: 'POST', path: '/books.xml', body_format: 'xml', response_format: 'xml' },
      },
    },
  },
  { api_key: 'k1' },
)

test('elements become records: one is a list of one, text is text, attributes have their own names', async () => {
  const book = (id: string, title: string) => `<book id="${id}"><title>${title}</title><tag>a</tag><tag>b</tag></book>`
  const answer = (books: string) => ({ text: `<?xml version="1.0"?><response><books>${books}</books></response>` })
  upstream.script(
    {
      request: 'GET /books.xml?page=1&size=2&key=k1',
      headers: { accept: 'application/xml' },
      answer: { ...answer(book('007', 'A &amp; B') + book('2', '<![CDATA[<C>]]>')), headers: XML },
    },
    { request: 'GET /books.xml?page=2&size=2&key=k1', answer: { ...answer(book('3', 'D')), headers: XML } },
    { request: 'GET /books.xml?page=3&size=2&key=k1', answer: { ...answer(''), headers: XML } },
  )
  const records: unknown[] = []
  for (let path = '/proxy/books'; path !== ''; ) {
    const { json } = await account.call('GET', path)
    records.push(...(json.result as unknown[]))
    path = typeof json.next_cursor === 'string' ? `/proxy/books?next_cursor=${json.next_cursor}` : ''
  }
  const tag = ['a', 'b']
  expect(records).toEqual([
    { '@id': '007', title: 'A & B', tag },
    { '@id': '2', title: '<C>', tag },
    { '@id': '3', title: 'D', tag },
  ])
})

test('a body is written in the same convention, escaped', async () => {
  upstream.script({
    request: 'POST /books.xml?key=k1',
    headers: { 'content-type': 'application/xml' },
    answer: { text: '<response><id>9</id></response>', headers: XML },
  })
  const { json } = await account.call('POST', '/proxy/books', {
    book: { '@lang': 'en', title: 'A & <B>', tag: ['x', 'y'] },
  })
  expect(json).toEqual({ result: { response: { id: '9' } } })
  expect(upstream.requests[0]?.body).toMatch(
    /<book lang="en">\s*<title>A &amp; &lt;B&gt;<\/title>\s*<tag>x<\/tag>\s*<tag>y<\/tag>\s*<\/book>/,
  )
})

test('an error inside an answer of status 200 is an error with what it says', async () => {
  upstream.script({
    request: 'GET /books.xml?page=1&size=2&key=k1',
    answer: { text: '<response><error code="E7">no such shelf</error></response>', headers: XML },
  })
  const { status, reason, json } = await account.call('GET', '/proxy/books')
  expect([status, reason]).toEqual([400, 'UPSTREAM_ERROR'])
  expect(JSON.stringify(json)).toContain('no such shelf')
  expect(JSON.stringify(json)).toContain('E7')
})
