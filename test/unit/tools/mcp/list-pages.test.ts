import { expect, it } from 'vitest'
import { createSealer } from '../../../../src/foundation/base/index.ts'
import { isJsonObject, type JsonObject, parseJson } from '../../../../src/foundation/json/index.ts'
import { serveMcp } from '../../../../src/tools/mcp/index.ts'

const tools = Array.from({ length: 10 }, (_, at) => ({
  name: `tool_${at}`,
  title: 'Tool',
  // The fourth is larger than a page by itself.
  description: 'x'.repeat(at === 3 ? 2_000_000 : 300_000),
  inputSchema: { type: 'object' },
  annotations: {
    title: 'Tool',
    readOnlyHint: true,
    destructiveHint: false,
    idempotentHint: true,
    openWorldHint: true,
  },
}))

const sealer = createSealer()

async function listPage(cursor: string | undefined): Promise<JsonObject> {
  const params = cursor === undefined ? {} : { cursor }
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/list', params }
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2025-06-18',
  }
  const request = new Request('http://127.0.0.1/mcp', { method: 'POST', headers, body: JSON.stringify(body) })
  const call = () => Promise.reject(new Error('not called'))
  const source = { name: 'Acme', version: '1', instructions: '', tools, sealer, holder: {}, call }
  const text = await (await serveMcp(request, body, source, () => undefined)).text()
  const answer = parseJson(text.slice(text.indexOf('{')))
  return isJsonObject(answer) && isJsonObject(answer.result) ? answer.result : {}
}

it('lists tools in pages of about a million characters, of one tool at least', async () => {
  const counts: number[] = []
  const names: unknown[] = []
  let cursor: string | undefined
  do {
    const page = await listPage(cursor)
    const listed = page.tools as readonly JsonObject[]
    counts.push(listed.length)
    names.push(...listed.map(({ name }) => name))
    cursor = typeof page.nextCursor === 'string' ? page.nextCursor : undefined
  } while (cursor !== undefined)
  expect(counts).toEqual([3, 1, 3, 3])
  expect(names).toEqual(tools.map(({ name }) => name))
})
