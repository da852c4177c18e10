import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { onTestFinished } from 'vitest'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import type { CreatedServer } from '../servers/fixture.ts'

/** The handshakes that a client may use. */
export const ERAS = ['legacy', 'modern'] as const
export type Era = (typeof ERAS)[number]

/** The current revision of the protocol. */
const REVISION = '2026-07-28'

/** Where a client connects. */
interface ClientTarget extends Pick<CreatedServer, 'url' | 'token'> {
  readonly headers?: Readonly<Record<string, string>>
}

/** A connected client of the official SDK, closed with the test. */
export async function connectClient({ url, token, headers = {} }: ClientTarget, era: Era): Promise<Client> {
  const mode = era === 'modern' ? { pin: REVISION } : 'legacy'
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { authorization: `Bearer ${token}`, ...headers } },
  })
  await client.connect(transport)
  onTestFinished(() => client.close())
  return client
}

/** The result of a call, read as a model's host reads it. */
export interface CallAnswer {
  readonly structured: JsonObject
  readonly text: string
  readonly isError: boolean
}

/** Calls a tool. */
export async function callTool(client: Client, name: string, args: JsonObject): Promise<CallAnswer> {
  const { structuredContent, content, isError = false } = await client.callTool({ name, arguments: { ...args } })
  const [first] = content
  if (first?.type !== 'text') throw new Error('a tool answered something else than text')
  return { structured: structuredContent as JsonObject, text: first.text, isError }
}
