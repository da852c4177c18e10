import type { Json, JsonObject } from '../../../../../src/foundation/json/index.ts'

/** One promise of a pagination format: these answers lead to these requests and to this end. */
export interface PaginationRow {
  readonly promise: string
  readonly config?: JsonObject
  /** The caller's page size. */
  readonly limit?: number
  readonly args?: JsonObject
  readonly now?: string
  readonly answers: readonly PageAnswer[]
  /** What each page adds to the request: `query page=1`, several joined by a blank; or the URL that is followed. */
  readonly requests: readonly string[]
  /** Ids or values of the records delivered, where they differ from those answered. */
  readonly delivered?: readonly (readonly Json[])[]
  /** What each page claims there to be in all; absent: not looked at. */
  readonly totals?: readonly (number | undefined)[]
  /** A stop reason, or the reason of the failure. `more`: the listing would go on. */
  readonly end: string
}

/** A page as the upstream answers it. */
export interface PageAnswer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Json
  readonly records: readonly Json[]
  /** What came before a filter; absent: the records. */
  readonly received?: readonly Json[]
}

const page = (...records: Json[]): PageAnswer => ({ records })
const cursorPage = (next: Json, ...records: Json[]): PageAnswer => ({ records, body: { next } })
const EMPTY = page()

/** Where every page of the rows comes from. */
export const PAGE_URL = 'https://api.example.com/items?x=1'

export const PAGINATION_ROWS: Readonly<Record<string, readonly PaginationRow[]>> = {
  page: [
    {
      promise: 'counts up until a page is empty',
      config: { page_key: 'page', limit_key: 'per_page', limit: 2 },
      answers: [page(1, 2), page(3), EMPTY],
      requests: ['query page=1 query per_page=2', 'query page=2 query per_page=2', 'query page=3 query per_page=2'],
      end: 'empty_page',
    },
    {
      promise: 'starts where the API starts, and sends no size unless one is named',
      config: { page_key: 'p', limit_key: 'n', start_page: 0 },
      answers: [page(1), EMPTY],
      requests: ['query p=0', 'query p=1'],
      end: 'empty_page',
    },
    {
      promise: "takes the caller's size, lowered to what the API accepts, in a header as text or in a body as number",
      config: { page_key: 'a.page', limit_key: 'a.size', in: 'body', max_limit: 50 },
      limit: 80,
      answers: [EMPTY],
      requests: ['body a.page=1 body a.size=50'],
      end: 'empty_page',
    },
    {
      promise: 'writes the size as text where the API wants that',
      config: { page_key: 'page', limit_key: 'size', limit: 5, limit_data_type: 'string' },
      answers: [EMPTY],
      requests: ['query page=1 query size="5"'],
      end: 'empty_page',
    },
    {
      promise: 'takes the size from a placeholder',
      config: { page_key: 'page', limit_key: 'size', limit: '{{args.size:int}}' },
      args: { size: '7' },
      answers: [EMPTY],
      requests: ['query page=1 query size=7'],
      end: 'empty_page',
    },
    {
      promise: 'continues after a short page, because some APIs send them in mid-stream',
      config: { page_key: 'page', limit_key: 'n', limit: 3 },
      answers: [page(1), page(2, 3, 4)],
      requests: ['query page=1 query n=3', 'query page=2 query n=3'],
      end: 'more',
    },
    {
      promise: 'ends at a short page with stop_on_short',
      config: { page_key: 'page', limit_key: 'n', limit: 3, stop_on_short: true },
      answers: [page(1, 2, 3), page(4)],
      requests: ['query page=1 query n=3', 'query page=2 query n=3'],
      end: 'short_page',
    },
    {
      promise: 'ends when has_more is false, 0 or a no as text',
      config: { page_key: 'page', has_more_path: 'meta.more' },
      answers: [
        { records: [1], body: { meta: { more: 'true' } } },
        { records: [2], body: { meta: { more: 'False' } } },
      ],
      requests: ['query page=1', 'query page=2'],
      end: 'has_more_false',
    },
    {
      promise: 'a missing has_more has no effect',
      config: { page_key: 'page', has_more_path: 'meta.more' },
      answers: [{ records: [1], body: {} }, EMPTY],
      requests: ['query page=1', 'query page=2'],
      end: 'empty_page',
    },
    {
      promise: 'ends when the has_more expression is false',
      config: { page_key: 'page', has_more_expression: 'total_seen < body.total' },
      answers: [
        { records: [1, 2], body: { total: 3 } },
        { records: [3], body: { total: 3 } },
      ],
      requests: ['query page=1', 'query page=2'],
      end: 'has_more_false',
    },
    {
      promise: 'takes a total as a hint only',
      config: { page_key: 'page', total_path: 'total' },
      answers: [{ records: [1], body: { total: 0 } }, page(2)],
      requests: ['query page=1', 'query page=2'],
      totals: [0, undefined],
      end: 'more',
    },
    {
      promise: 'reports a total that is a count, as number or text, and no other',
      config: { page_key: 'page', total_path: 'meta.total' },
      answers: [5, '5', -1, 1.5, 'many', null].map((total, index) => ({ records: [index], body: { meta: { total } } })),
      requests: [1, 2, 3, 4, 5, 6].map((number) => `query page=${number}`),
      totals: [5, 5, undefined, undefined, undefined, undefined],
      end: 'more',
    },
    {
      promise: 'ends at the total with stop_on_total',
      config: { page_key: 'page', total_path: 'total', stop_on_total: true },
      answers: [
        { records: [1], body: { total: '2' } },
        { records: [2], body: { total: '2' } },
      ],
      requests: ['query page=1', 'query page=2'],
      end: 'total_reached',
    },
    {
      promise: 'ends after the page that the stop expression marks, before every other rule',
      config: { page_key: 'page', stop_expression: 'last_record >= 3', has_more_path: 'more' },
      answers: [page(1, 2), { records: [3], body: { more: false } }],
      requests: ['query page=1', 'query page=2'],
      end: 'expression',
    },
    {
      promise: 'ends after max_pages',
      config: { page_key: 'page', max_pages: 2 },
      answers: [page(1), page(2)],
      requests: ['query page=1', 'query page=2'],
      end: 'max_pages',
    },
    {
      promise: 'delivers max_records and not one more',
      config: { page_key: 'page', max_records: 3 },
      answers: [page(1, 2), page(3, 4)],
      requests: ['query page=1', 'query page=2'],
      delivered: [[1, 2], [3]],
      end: 'max_records',
    },
    {
      promise:
        'a page of which a filter leaves nothing does not end the list, and a total is what the filter leaves of it',
      config: { page_key: 'page', total_path: 'total' },
      answers: [
        { records: [], received: [1, 2], body: { total: 3 } },
        { records: [3], received: [3], body: { total: 3 } },
        { records: [], received: [], body: { total: 3 } },
      ],
      requests: ['query page=1', 'query page=2', 'query page=3'],
      totals: [1, 1, 1],
      end: 'empty_page',
    },
    {
      promise: 'is short by what came, not by what a filter leaves',
      config: { page_key: 'page', limit: 2, stop_on_short: true },
      answers: [
        { records: [1], received: [1, 2] },
        { records: [3], received: [3] },
      ],
      requests: ['query page=1', 'query page=2'],
      end: 'short_page',
    },
    {
      promise: "expressions see the API's page number",
      config: { page_key: 'page', start_page: 0, stop_expression: 'page + 1 >= body.pages' },
      answers: [0, 1, 2].map((number) => ({ records: [number], body: { pages: 3 } })),
      requests: ['query page=0', 'query page=1', 'query page=2'],
      end: 'expression',
    },
    {
      promise: 'an API that ignores the page number is an error, not an endless run',
      config: { page_key: 'page' },
      answers: [page(1, 2), page(1, 2)],
      requests: ['query page=1', 'query page=2'],
      end: 'PAGINATION_LOOP',
    },
    {
      promise: 'identical pages are legal where the loop check is off',
      config: { page_key: 'page', detect_loop: false },
      answers: [page(1), page(1), EMPTY],
      requests: ['query page=1', 'query page=2', 'query page=3'],
      end: 'empty_page',
    },
  ],
  offset: [
    {
      promise: 'adds what was received, which survives a server that lowers the size',
      config: { offset_key: 'offset', limit_key: 'limit', limit: 3 },
      answers: [page(1, 2), page(3, 4), EMPTY],
      requests: ['query offset=0 query limit=3', 'query offset=2 query limit=3', 'query offset=4 query limit=3'],
      end: 'empty_page',
    },
    {
      promise: 'adds the page size with step limit',
      config: { offset_key: 'skip', limit_key: 'top', limit: 3, step: 'limit', start_offset: 1 },
      answers: [page(1), EMPTY],
      requests: ['query skip=1 query top=3', 'query skip=4 query top=3'],
      end: 'empty_page',
    },
    {
      promise: 'adds what came before a filter',
      config: { offset_key: 'offset' },
      answers: [{ records: [1], received: [1, 2, 3] }, EMPTY],
      requests: ['query offset=0', 'query offset=3'],
      end: 'empty_page',
    },
    {
      promise: 'an API that ignores the offset is an error',
      config: { offset_key: 'offset' },
      answers: [page(1, 2), page(1, 2)],
      requests: ['query offset=0', 'query offset=2'],
      end: 'PAGINATION_LOOP',
    },
    {
      promise: 'an empty page that does not end the list makes no progress, which is an error',
      config: { offset_key: 'offset', stop_on_empty: false, max_pages: 9 },
      answers: [page(1), EMPTY],
      requests: ['query offset=0', 'query offset=1'],
      end: 'PAGINATION_LOOP',
    },
  ],
  cursor: [
    {
      promise: 'sends back the token of the page before until there is none',
      config: { cursor_path: 'next', cursor_key: 'cursor', limit_key: 'limit', limit: 2 },
      answers: [cursorPage('a', 1), cursorPage('b', 2), cursorPage(null, 3)],
      requests: ['query limit=2', 'query cursor="a" query limit=2', 'query cursor="b" query limit=2'],
      end: 'no_cursor',
    },
    {
      promise: 'takes 0 and "0" for tokens',
      config: { cursor_path: 'next', cursor_key: 'c' },
      answers: [cursorPage(0, 1), cursorPage('0', 2), cursorPage('', 3)],
      requests: ['', 'query c=0', 'query c="0"'],
      end: 'no_cursor',
    },
    {
      promise: 'continues after an empty page that has a token',
      config: { cursor_path: 'next', cursor_key: 'c' },
      answers: [cursorPage('a'), cursorPage(null, 1)],
      requests: ['', 'query c="a"'],
      end: 'no_cursor',
    },
    {
      promise: 'ends at an empty page where the API always sends a token',
      config: { cursor_path: 'next', cursor_key: 'c', allow_empty_page_cursor: false },
      answers: [cursorPage('a', 1), cursorPage('b')],
      requests: ['', 'query c="a"'],
      end: 'empty_page',
    },
    {
      promise: 'asks again with a token that repeats, and ends when nothing new comes',
      config: { cursor_path: 'next', cursor_key: 'c' },
      answers: [cursorPage('a', 1), cursorPage('a', 2), cursorPage('a', 2)],
      requests: ['', 'query c="a"', 'query c="a"'],
      delivered: [[1], [2], []],
      end: 'cursor_repeated',
    },
    {
      promise: 'reads on with a constant token while it brings new records, also after an empty page',
      config: { cursor_path: 'next', cursor_key: 'c' },
      answers: [
        cursorPage('s', 1),
        cursorPage('s', 2),
        cursorPage('s'),
        cursorPage('s', 3),
        cursorPage('s'),
        cursorPage('s'),
      ],
      requests: ['', ...Array<string>(5).fill('query c="s"')],
      end: 'cursor_repeated',
    },
    {
      promise: 'an API that ignores the token is an error',
      config: { cursor_path: 'next', cursor_key: 'typo' },
      answers: [cursorPage('a', 1), cursorPage('a', 1)],
      requests: ['', 'query typo="a"'],
      end: 'PAGINATION_LOOP',
    },
    {
      promise: 'a constant token with the same ids and other contents is an error',
      config: { cursor_path: 'next', cursor_key: 'c' },
      answers: [cursorPage('s', { id: 1 }), cursorPage('s', { id: 2, at: 1 }), cursorPage('s', { id: 2, at: 2 })],
      requests: ['', 'query c="s"', 'query c="s"'],
      end: 'PAGINATION_LOOP',
    },
    {
      promise: 'a constant token whose pages alternate is an error',
      config: { cursor_path: 'next', cursor_key: 'c' },
      answers: [cursorPage('s', 1), cursorPage('s', 2), cursorPage('s', 3), cursorPage('s', 2)],
      requests: ['', 'query c="s"', 'query c="s"', 'query c="s"'],
      end: 'PAGINATION_LOOP',
    },
    {
      promise: 'a link that repeats itself ends the list when asked again brings nothing new',
      config: { cursor_path: 'next', is_link: true },
      answers: [cursorPage('/items?c=b', 1), cursorPage('/items?c=b', 2), cursorPage('/items?c=b', 2)],
      requests: ['', 'https://api.example.com/items?c=b', 'https://api.example.com/items?c=b'],
      delivered: [[1], [2], []],
      end: 'cursor_repeated',
    },
    {
      promise: 'the key that the last record lacks is an error, not the end',
      config: { cursor_from_last_record: 'id', cursor_key: 'after' },
      answers: [page({ id: 1 }), page({ uid: 2 })],
      requests: ['', 'query after=1'],
      end: 'UPSTREAM_INVALID_RESPONSE',
    },
    {
      promise: 'pages by the last entry received, where a filter has left none',
      config: { cursor_from_last_record: 'id', cursor_key: 'after' },
      answers: [
        { records: [], received: [{ id: 1 }] },
        { records: [{ id: 2 }], received: [{ id: 2 }, { id: 3 }] },
        EMPTY,
      ],
      requests: ['', 'query after=1', 'query after=3'],
      end: 'no_cursor',
    },
    {
      promise: 'finds a token under a name with dots, in brackets or as it is, and behind a leading $',
      config: {
        cursor_path: '$["@odata.nextLink"]',
        prev_cursor_path: '@odata.nextLink',
        cursor_key: 'c',
        has_more_path: '@odata.more',
      },
      answers: [
        { records: [1], body: { '@odata.nextLink': 'a', '@odata.more': true } },
        { records: [2], body: { '@odata.nextLink': 'b', '@odata.more': false } },
      ],
      requests: ['', 'query c="a"'],
      end: 'has_more_false',
    },
    {
      promise: 'continues with a constant token where the loop check is off',
      config: { cursor_path: 'next', cursor_key: 'c', detect_loop: false, has_more_path: 'more' },
      answers: [
        { records: [1], body: { next: 'scroll', more: true } },
        { records: [2], body: { next: 'scroll', more: true } },
        { records: [3], body: { next: 'scroll', more: false } },
      ],
      requests: ['', 'query c="scroll"', 'query c="scroll"'],
      end: 'has_more_false',
    },
    {
      promise: 'a cycle of tokens is an error',
      config: { cursor_path: 'next', cursor_key: 'c' },
      answers: [cursorPage('a', 1), cursorPage('b', 2), cursorPage('a', 3)],
      requests: ['', 'query c="a"', 'query c="b"'],
      end: 'PAGINATION_LOOP',
    },
    {
      promise: 'reads the token from a header and puts it into a header',
      config: { cursor_path: 'X-Next', cursor_path_object: 'header', cursor_key: 'X-Cursor', in: 'header' },
      answers: [{ records: [1], headers: { 'x-next': 'a' } }, page(2)],
      requests: ['', 'header X-Cursor="a"'],
      end: 'no_cursor',
    },
    {
      promise: 'puts the token into a body, the size with the first page only',
      config: {
        cursor_path: 'data.pageInfo.endCursor',
        cursor_key: 'variables.after',
        add_to_body: true,
        limit_key: 'first',
        limit: 10,
        ignore_limit_in_pagination: true,
        has_next_path: 'data.pageInfo.hasNextPage',
      },
      answers: [
        { records: [1], body: { data: { pageInfo: { endCursor: 'e', hasNextPage: true } } } },
        { records: [2], body: { data: { pageInfo: { endCursor: 'f', hasNextPage: false } } } },
      ],
      requests: ['query first=10', 'body variables.after="e"'],
      end: 'has_more_false',
    },
    {
      promise: 'takes the token from an expression',
      config: { cursor_expression: 'count = 2 ? last_record.id : null', cursor_key: 'after' },
      answers: [page({ id: 1 }, { id: 2 }), page({ id: 3 })],
      requests: ['', 'query after=2'],
      end: 'no_cursor',
    },
    {
      promise: 'pages by the key of the last record',
      config: { cursor_from_last_record: 'id', cursor_key: 'starting_after', has_more_path: 'has_more' },
      answers: [
        { records: [{ id: 'a' }, { id: 'b' }], body: { has_more: true } },
        { records: [{ id: 'c' }], body: { has_more: false } },
      ],
      requests: ['', 'query starting_after="b"'],
      end: 'has_more_false',
    },
    {
      promise: 'follows a token that is a link, relative ones against the page, without sending anything besides',
      config: { cursor_path: 'next', is_link: true, limit_key: 'n', limit: 5 },
      answers: [
        cursorPage('https://api.example.com/items?c=a%20b', 1),
        cursorPage('/items?c=c', 2),
        cursorPage(null, 3),
      ],
      requests: ['query n=5', 'https://api.example.com/items?c=a%20b', 'https://api.example.com/items?c=c'],
      end: 'no_cursor',
    },
  ],
  link_header: [
    {
      promise: 'follows rel="next" exactly as given',
      config: { limit_key: 'per_page', limit: 100 },
      answers: [
        {
          records: [1],
          headers: {
            link: '<https://api.example.com/x?page=0>; rel="prev", <https://api.example.com/y?a=b,c&page=2>; rel="next"',
          },
        },
        { records: [2], headers: { link: '<https://api.example.com/items>; rel="first"' } },
      ],
      requests: ['query per_page=100', 'https://api.example.com/y?a=b,c&page=2'],
      end: 'link_absent',
    },
    {
      promise: 'parses unquoted, several and upper-case relations, and relative targets',
      answers: [
        { records: [1], headers: { link: '</items?p=2>; title="a, b; rel=next"; REL="Last Next"' } },
        { records: [2], headers: { link: '<?p=3>;rel=next' } },
        { records: [3], headers: { link: 'garbage' } },
      ],
      requests: ['', 'https://api.example.com/items?p=2', 'https://api.example.com/items?p=3'],
      end: 'link_absent',
    },
    {
      promise: 'an empty page with a link continues',
      answers: [{ records: [], headers: { link: '</items?p=2>; rel=next' } }, page(1)],
      requests: ['', 'https://api.example.com/items?p=2'],
      end: 'link_absent',
    },
    {
      promise: 'a page that links to itself is asked for again, and ends the list when nothing new comes',
      answers: [
        { records: [1], headers: { link: '</items?p=2>; rel=next' } },
        { records: [2], headers: { link: '</items?p=2>; rel=next' } },
        { records: [2], headers: { link: '</items?p=2>; rel=next' } },
      ],
      requests: ['', 'https://api.example.com/items?p=2', 'https://api.example.com/items?p=2'],
      delivered: [[1], [2], []],
      end: 'cursor_repeated',
    },
    {
      promise: 'a link back to a page already read is an error',
      answers: [
        { records: [1], headers: { link: '</items?p=2>; rel=next' } },
        { records: [2], headers: { link: '</items?p=3>; rel=next' } },
        { records: [3], headers: { link: '</items?p=2>; rel=next' } },
      ],
      requests: ['', 'https://api.example.com/items?p=2', 'https://api.example.com/items?p=3'],
      end: 'PAGINATION_LOOP',
    },
  ],
  range: [
    {
      promise: 'asks for ranges until the total is reached',
      config: { unit: 'records', limit: 2 },
      answers: [
        { status: 206, records: [1, 2], headers: { 'content-range': 'records 0-1/3' } },
        { status: 206, records: [3], headers: { 'content-range': 'records 2-2/3' } },
      ],
      requests: ['header range="records=0-1"', 'header range="records=2-3"'],
      totals: [3, 3],
      end: 'range_end',
    },
    {
      promise: 'continues by the entries received while the total is unknown',
      config: { limit: 2 },
      answers: [
        { status: 206, records: [1, 2], headers: { 'content-range': 'items 0-1/*' } },
        { status: 206, records: [] },
      ],
      requests: ['header range="items=0-1"', 'header range="items=2-3"'],
      totals: [undefined, undefined],
      end: 'empty_page',
    },
    {
      promise: 'starts with the header of the definition, with the page size',
      config: { first: 'id ..; max={{pagination.limit}}', limit: 50 },
      answers: [
        { status: 206, records: [1], headers: { 'next-range': 'id ]a..; max=50' } },
        { status: 200, records: [2] },
      ],
      requests: ['header range="id ..; max=50"', 'header range="id ]a..; max=50"'],
      end: 'range_end',
    },
    {
      promise: 'follows the next range that the API names',
      answers: [
        { status: 206, records: [1], headers: { 'next-range': 'id ]a..; max=200' } },
        { status: 200, records: [2] },
      ],
      requests: ['header range="items=0-99"', 'header range="id ]a..; max=200"'],
      end: 'range_end',
    },
    {
      promise: 'an API that ignores ranges and answers everything is done',
      answers: [{ status: 200, records: [1, 2, 3] }],
      requests: ['header range="items=0-99"'],
      end: 'range_end',
    },
    {
      promise: 'identical ranges are an error',
      config: { limit: 1 },
      answers: [
        { status: 206, records: [1], headers: { 'content-range': 'items 0-0/9' } },
        { status: 206, records: [1], headers: { 'content-range': 'items 0-0/9' } },
      ],
      requests: ['header range="items=0-0"', 'header range="items=1-1"'],
      end: 'PAGINATION_LOOP',
    },
  ],
  dynamic: [
    {
      promise: 'sends what the expressions compute until they return null',
      config: {
        get_initial_pagination_values_expression: '{"query": {"page": 1}, "seen": 0}',
        get_pagination_values_expression:
          'count < 2 ? null : {"query": {"page": paginationValues.query.page + 1}, "headers": {"X-Seen": "2"}, "body": {"a.b": true}}',
      },
      answers: [page(1, 2), page(3)],
      requests: ['query page=1', 'query page=2 header X-Seen="2" body a.b=true'],
      end: 'no_cursor',
    },
    {
      promise: 'follows a URL that the expression returns, and sees the one before',
      config: { get_pagination_values_expression: 'body.next ? {"url": $replace(url, "x=1", body.next)} : null' },
      answers: [{ records: [1], body: { next: 'x=2' } }, page(2)],
      requests: ['', 'https://api.example.com/items?x=2'],
      end: 'no_cursor',
    },
    {
      promise: 'ends where the cursor expression finds none',
      config: {
        get_pagination_values_expression: '{"query": {"c": body.next}}',
        get_cursor_from_response_expression: 'body.next',
      },
      answers: [cursorPage('a', 1), cursorPage(null, 2)],
      requests: ['', 'query c="a"'],
      end: 'no_cursor',
    },
    {
      promise: 'sees the number of the page and what was read, as every expression of a pagination',
      config: {
        get_pagination_values_expression:
          'count = 0 ? null : {"query": {"seen": total_seen, "page": page, "n": count, "offset": offset, "cursor": cursor}}',
      },
      answers: [page(1, 2), page(3), EMPTY],
      requests: [
        '',
        'query seen=2 query page=1 query n=2 query offset=null query cursor=null',
        'query seen=3 query page=2 query n=1 query offset=null query cursor=null',
      ],
      end: 'no_cursor',
    },
    {
      promise: 'values that do not move while records do not either are an error',
      config: { get_pagination_values_expression: '{"query": {"c": "same"}}' },
      answers: [page(1), page(2), page(3), page(3)],
      requests: ['', 'query c="same"', 'query c="same"', 'query c="same"'],
      end: 'PAGINATION_LOOP',
    },
    {
      promise: 'the same values twice are an error',
      config: { get_pagination_values_expression: '{"query": {"c": body.next}}' },
      answers: [cursorPage('a', 1), cursorPage('b', 2), cursorPage('a', 3)],
      requests: ['', 'query c="a"', 'query c="b"'],
      end: 'PAGINATION_LOOP',
    },
  ],
  window: [
    {
      promise: 'walks through intervals, the last one bounded by the moment the listing starts',
      config: { from_key: 'since', to_key: 'until', step: 'P1D', start: '{{args.start}}' },
      args: { start: '2026-01-01T00:00:00Z' },
      now: '2026-01-02T06:00:00Z',
      answers: [page(1), EMPTY],
      requests: [
        'query since="2026-01-01T00:00:00.000Z" query until="2026-01-02T00:00:00.000Z"',
        'query since="2026-01-02T00:00:00.000Z" query until="2026-01-02T06:00:00.000Z"',
      ],
      end: 'window_end',
    },
    {
      promise: 'ends now where the end it names has no value',
      config: { from_key: 'since', to_key: 'until', step: 'P7D', start: '2026-01-01', end: '{{args.until}}' },
      now: '2026-01-02T06:00:00Z',
      answers: [EMPTY],
      requests: ['query since="2026-01-01T00:00:00.000Z" query until="2026-01-02T06:00:00.000Z"'],
      end: 'window_end',
    },
    {
      promise: 'counts months by the calendar and writes dates or epochs',
      config: { from_key: 'a', to_key: 'b', step: 'P1M', start: '2026-01-31', end: '2026-04-01', value_format: 'date' },
      answers: [page(1), EMPTY, EMPTY],
      requests: [
        'query a="2026-01-31" query b="2026-02-28"',
        'query a="2026-02-28" query b="2026-03-28"',
        'query a="2026-03-28" query b="2026-04-01"',
      ],
      end: 'window_end',
    },
    {
      promise: 'pages inside each interval',
      config: {
        from_key: 'a',
        to_key: 'b',
        step: 'PT1H',
        start: '1970-01-01T00:00:00Z',
        end: '1970-01-01T02:00:00Z',
        value_format: 'epoch_seconds',
        pagination: { format: 'page', config: { page_key: 'p', limit_key: 'n', limit: 2 } },
      },
      answers: [page(1, 2), EMPTY, page(3), EMPTY],
      requests: [
        'query a=0 query b=3600 query p=1 query n=2',
        'query a=0 query b=3600 query p=2 query n=2',
        'query a=3600 query b=7200 query p=1 query n=2',
        'query a=3600 query b=7200 query p=2 query n=2',
      ],
      end: 'window_end',
    },
    {
      promise: 'a token that repeats inside an interval ends that interval only',
      config: {
        from_key: 'a',
        to_key: 'b',
        step: 'PT1H',
        start: '1970-01-01T00:00:00Z',
        end: '1970-01-01T02:00:00Z',
        value_format: 'epoch_seconds',
        pagination: { format: 'cursor', config: { cursor_path: 'next', cursor_key: 'c' } },
      },
      answers: [cursorPage('s', 1), cursorPage('s', 2), cursorPage('s', 2), cursorPage(null, 3)],
      requests: [
        'query a=0 query b=3600',
        'query a=0 query b=3600 query c="s"',
        'query a=0 query b=3600 query c="s"',
        'query a=3600 query b=7200',
      ],
      delivered: [[1], [2], [], [3]],
      end: 'window_end',
    },
    {
      promise: 'a cycle of tokens inside an interval is an error',
      config: {
        from_key: 'a',
        to_key: 'b',
        step: 'P1D',
        start: '1970-01-01T00:00:00Z',
        end: '1970-01-01T02:00:00Z',
        value_format: 'epoch_seconds',
        pagination: { format: 'cursor', config: { cursor_path: 'next', cursor_key: 'c' } },
      },
      answers: [cursorPage('s', 1), cursorPage('t', 2), cursorPage('s', 3)],
      requests: ['query a=0 query b=7200', 'query a=0 query b=7200 query c="s"', 'query a=0 query b=7200 query c="t"'],
      end: 'PAGINATION_LOOP',
    },
    {
      promise: 'an API that ignores the interval is an error',
      config: { from_key: 'a', to_key: 'b', step: 'P1D', start: '2026-01-01', end: '2026-01-05' },
      answers: [page(1), page(1)],
      requests: [
        'query a="2026-01-01T00:00:00.000Z" query b="2026-01-02T00:00:00.000Z"',
        'query a="2026-01-02T00:00:00.000Z" query b="2026-01-03T00:00:00.000Z"',
      ],
      end: 'PAGINATION_LOOP',
    },
  ],
}
