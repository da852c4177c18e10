import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { RunningProduct } from '../../support/product.ts'
import { type McpTarget, startMcpTarget } from './mcp/target.ts'

const FOLDER = join(import.meta.dirname, 'mcp')
const PROGRAM_TIMEOUT_MS = 120_000

/** The revisions that the conformance tool judges, and the options that choose their frozen sets. */
const CONFORMANCE = [
  { name: '2026-07-28', options: ['--requirements', '2026-07-28'] },
  { name: '2025-11-25', options: ['--suite', 'active', '--spec-version', '2025-11-25'] },
] as const

/**
 * Lets programs that share no code with the product use a tool server: the conformance tool, the inspector, the official client
 * in both modes, the client of the older SDK, and a scripted agent. They are a package of their own, installed by the first run.
 *
 * @returns whether all of them got what they should
 */
export async function testForeignMcp(product: RunningProduct): Promise<boolean> {
  install()
  await using target = await startMcpTarget(product)
  const outcomes: boolean[] = []
  for (const { name, options } of CONFORMANCE) outcomes.push(await judge(target, name, options))
  outcomes.push(await inspect(target))
  for (const mode of ['legacy', { pin: '2026-07-28' }] as const) outcomes.push(await useOfficialClient(target, mode))
  outcomes.push(await useOlderClient(target))
  return outcomes.every((isGood) => isGood)
}

function install(): void {
  if (existsSync(join(FOLDER, 'node_modules'))) return
  const { status } = spawnSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: FOLDER,
    stdio: 'inherit',
  })
  if (status !== 0) throw new Error('the clients of the Model Context Protocol could not be installed')
}

async function judge({ openUrl }: McpTarget, revision: string, options: readonly string[]): Promise<boolean> {
  const expected = join(FOLDER, `expected-failures-${revision}.yml`)
  const args = ['server', '--url', openUrl, ...options, '--expected-failures', expected]
  const { status, output } = await runProgram('conformance', args)
  const total = /Total: .*/.exec(output)?.[0] ?? 'no total'
  console.log(`mcp conformance ${revision}: ${status === 0 ? 'as expected' : 'NOT as expected'}; ${total}`)
  if (status !== 0) console.error(output.slice(-6_000))
  return status === 0
}

async function inspect({ url, token }: McpTarget): Promise<boolean> {
  const base = ['--cli', url, '--transport', 'http', '--header', `Authorization: Bearer ${token}`]
  const list = await runProgram('mcp-inspector', [...base, '--method', 'tools/list'])
  const call = await runProgram('mcp-inspector', [
    ...base,
    '--method',
    'tools/call',
    '--tool-name',
    'get_contact',
    '--tool-arg',
    'id=1',
  ])
  const isGood = list.output.includes('"list_contacts"') && call.output.includes('Ada')
  console.log(`mcp inspector: ${isGood ? 'lists tools and calls one' : 'FAILED'}`)
  if (!isGood) console.error(list.output, call.output)
  return isGood
}

type ClientMode = 'legacy' | { readonly pin: string }

async function useOfficialClient({ url, token, requests }: McpTarget, mode: ClientMode): Promise<boolean> {
  const client = new Client({ name: 'agent', version: '1' }, { versionNegotiation: { mode } })
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { authorization: `Bearer ${token}` } },
  })
  await client.connect(transport)
  try {
    const { tools } = await client.listTools()
    const listed = await client.callTool({ name: 'list_contacts', arguments: { limit: 5 } })
    const { records } = listed.structuredContent as { readonly records: readonly { readonly id: number }[] }
    const read = await client.callTool({ name: 'get_contact', arguments: { id: String(records[0]?.id) } })
    const before = requests.length
    const written = await client.callTool({ name: 'delete_contact', arguments: { id: '1' } })
    const [answer] = written.content
    const text = answer?.type === 'text' ? answer.text : ''
    const isGood =
      tools.some(({ name }) => name === 'list_contacts') &&
      JSON.stringify(read.structuredContent).includes('Ada') &&
      written.isError === true &&
      text.includes('read-only') &&
      requests.length === before
    const era = mode === 'legacy' ? 'handshake of 2025' : mode.pin
    console.log(
      `mcp agent, official client, ${era}: ${isGood ? 'lists, reads, and learns' : 'FAILED,'} "${text.split('\n')[0]}"`,
    )
    return isGood
  } finally {
    await client.close()
  }
}

async function useOlderClient({ url, token }: McpTarget): Promise<boolean> {
  const { status, output } = await runNode(join(FOLDER, 'older-client.mjs'), [url], { MCP_TOKEN: token })
  console.log(`mcp client of the older SDK: ${output.trim()}`)
  return status === 0
}

interface ProgramOutcome {
  readonly status: number | null
  /** Standard output and error. */
  readonly output: string
}

function runProgram(name: string, args: readonly string[]): Promise<ProgramOutcome> {
  return runNode(join(FOLDER, 'node_modules/.bin', name), args, {})
}

/** Runs a program of the package in a home of its own: the inspector stores what it was given. */
async function runNode(file: string, args: readonly string[], environment: NodeJS.ProcessEnv): Promise<ProgramOutcome> {
  const home = mkdtempSync(join(tmpdir(), 'patchbay-mcp-'))
  const child = spawn(process.execPath, [file, ...args], {
    cwd: home,
    env: { ...process.env, ...environment, HOME: home, NO_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: PROGRAM_TIMEOUT_MS,
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const status = await new Promise<number | null>((resolve) => child.once('close', resolve))
  rmSync(home, { recursive: true, force: true })
  return { status, output }
}
