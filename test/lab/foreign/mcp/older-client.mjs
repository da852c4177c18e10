/** The client of the SDK before the current one: lists the tools of a server and reads a contact. */

import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

const client = new Client({ name: 'older', version: '1' })
const transport = new StreamableHTTPClientTransport(new URL(process.argv[2]), {
  requestInit: { headers: { authorization: `Bearer ${process.env.MCP_TOKEN}` } },
})
await client.connect(transport)
const { tools } = await client.listTools()
const { structuredContent } = await client.callTool({ name: 'get_contact', arguments: { id: '2' } })
await client.close()
if (structuredContent?.name !== 'Grace') throw new Error(`read ${JSON.stringify(structuredContent)}`)
console.log(`lists ${tools.length} tools and reads a contact`)
