import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { posix } from 'node:path'
import { PAGINATION_FORMATS } from '../../../../src/engine/formats/pagination/registry.ts'
import { type Json, type JsonObject, stringifyJson } from '../../../../src/foundation/json/index.ts'

/** A third party whose lists are paged in every format, and which knows every address that a client has a right to. */
export interface PagedUpstream extends AsyncDisposable {
  readonly url: string
  readonly requests: number
  /** Requests for anything but the address of a list, as a third party reads them that decodes before it routes. */
  readonly outside: readonly string[]
}

/** One resource per pagination format, and two more ways to follow a link. */
const PAGINATIONS: Readonly<Record<string, (path: string) => JsonObject>> = {
  page: () => ({ page_key: 'page' }),
  offset: () => ({ offset_key: 'offset' }),
  cursor: () => ({ cursor_path: 'next', cursor_key: 'after', prev_cursor_path: 'before' }),
  link_header: () => ({}),
  range: () => ({}),
  window: () => ({ from_key: 'from', to_key: 'to', step: 'P1D', start: '2026-01-01', end: '2026-01-20' }),
  dynamic: () => ({ get_pagination_values_expression: '{"query": {"after": body.next}}' }),
}
const LINKS: Readonly<Record<string, JsonObject>> = {
  body_link: { format: 'cursor', config: { cursor_path: 'link', is_link: true, prev_cursor_path: 'link' } },
  dynamic_link: { format: 'dynamic', config: { get_pagination_values_expression: '{"url": body.link}' } },
}

/** Pagination by resource. @throws Error for a format that is not in the table above */
export function pagedResources(): Readonly<Record<string, JsonObject>> {
  const formats = PAGINATION_FORMATS.map(({ format }) => {
    const config = PAGINATIONS[format]
    if (config === undefined) throw new Error(`no list is paged with ${format}`)
    return [format, { format, config: config(`/lists/${format}`) }] as const
  })
  return { ...Object.fromEntries(formats), ...LINKS }
}

/** The definition of that third party. */
export function pagedDefinition(url: string): JsonObject {
  const resources = Object.entries(pagedResources()).map(([name, pagination]): [string, JsonObject] => [
    name,
    {
      list: {
        path: `/lists/${name}`,
        response_path: 'items',
        description: `Lists ${name}.`,
        pagination,
        query_schema: QUERY,
      },
      get: { path: `/records/${name}/{{id}}`, description: 'One record.' },
    },
  ])
  return {
    base_url: url,
    credentials: { api_key: { config: { fields: [{ name: 'api_key', type: 'password', required: true }] } } },
    authorization: { format: 'bearer', config: { token: '{{api_key}}' } },
    retry: { max_attempts: 1 },
    resources: Object.fromEntries(resources),
    actions: { post_connect_user_form: { type: 'form', config: { fields: FIELDS } } },
  }
}

const QUERY = { type: 'object', properties: { q: { type: 'string', description: 'Filter.' } } }
const FIELDS = Object.keys(pagedResources()).map((resource) => ({
  name: resource,
  label: resource,
  type: 'single_select',
  data_source: { resource },
  options: { value: 'id', label: 'name' },
}))

/** Starts it on a free port. */
export async function startPagedUpstream(): Promise<PagedUpstream> {
  const outside: string[] = []
  let requests = 0
  let url = ''
  const names = Object.keys(pagedResources())
  const server = createServer((request, response) => {
    requests += 1
    const line = `${request.method} ${request.url}`
    const path = pathAsRouted(request.url ?? '')
    const name = names.find((each) => path === `/lists/${each}`)
    const isRecord = names.some((each) => path.startsWith(`/records/${each}/`))
    if (request.method !== 'GET' || (name === undefined && !isRecord)) outside.push(line)
    const page = Number(new URL(request.url ?? '', url).searchParams.get('n') ?? 1)
    const link = `${url}/lists/${name}?n=${page + 1}`
    const items = [0, 1].map((index) => ({ id: `${name}-${requests}-${index}`, name: `Record ${requests} ${index}` }))
    const body: Json = { items, next: `token-${requests}`, before: `token-${requests - 1}`, link }
    const from = requests * 100
    response.writeHead(name === 'range' ? 206 : 200, {
      'content-type': 'application/json',
      ...(name === 'link_header' ? { link: `<${link}>; rel="next"` } : {}),
      ...(name === 'range' ? { 'content-range': `items ${from}-${from + 99}/*` } : {}),
    })
    response.end(stringifyJson(isRecord ? (items[0] ?? null) : body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    outside,
    get requests() {
      return requests
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** The path as a third party routes it that decodes it first, twice where it is encoded twice, and resolves dots. */
function pathAsRouted(url: string): string {
  let [path = ''] = url.split('?', 1)
  for (let decoded = 0; decoded < 2; decoded++) {
    try {
      path = decodeURIComponent(path)
    } catch {
      break
    }
  }
  return posix.normalize(path.replaceAll('\\', '/'))
}
