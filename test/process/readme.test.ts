import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { bareEnvironment, freePort, removeDataDir, startProduct, temporaryDataDir } from '../support/product.ts'

const ROOT = join(import.meta.dirname, '../..')

/** The blocks of commands of a chapter of the README, as they are written there. */
function blocksOf(chapter: string): readonly string[] {
  const [, rest = ''] = readFileSync(join(ROOT, 'README.md'), 'utf8').split(`\n## ${chapter}\n`)
  const [section = ''] = rest.split('\n## ')
  return [...section.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, commands = '']) => commands)
}

/** The first commands of a chapter. */
function commandsOf(chapter: string): string {
  return blocksOf(chapter)[0] ?? ''
}

/** All commands of a chapter that continues after an account is connected. */
function commandsAfterConnecting(chapter: string): string {
  const [connecting = ''] = commandsOf('A call, and a run').split('# 3. ')
  return [connecting, 'patchbay() { node src/main.ts "$@"; }', ...blocksOf(chapter)].join('\n')
}

/** Runs commands of the README against a new start of the product. @param background the process that they start */
async function runCommands(commands: string, background: string, more: Readonly<Record<string, string>> = {}) {
  const dataDir = temporaryDataDir()
  const product = await startProduct({ dataDir, environment: { PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8' } })
  onTestFinished(async () => {
    await product.stop()
    removeDataDir(dataDir)
  })
  const replaced = { 'localhost:8080': `127.0.0.1:${product.port}`, './.patchbay': dataDir, ...more }
  const script = Object.entries(replaced).reduce((text, [from, to]) => text.replaceAll(from, to), commands)
  const environment = { PATCHBAY_DATA_DIR: dataDir, PATCHBAY_PORT: String(product.port) }
  const shell = spawn('bash', ['-euo', 'pipefail', '-c', `trap 'kill $${background} || true' EXIT\n${script}`], {
    cwd: ROOT,
    env: { ...bareEnvironment(), ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [shell.stdout, shell.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const exitCode = await new Promise<number | null>((resolve) => shell.once('close', resolve))
  return { exitCode, output, script }
}

it('the steps of the README work in order against the local GitHub', { timeout: 120_000 }, async () => {
  const { exitCode, output, script } = await runCommands(commandsOf('A call, and a run'), 'STAND_IN_PID')
  expect(script).toContain('eval "$(npm run -s github-stand-in)"')
  expect(exitCode, output).toBe(0)
  expect(output).not.toContain('"error"')
  expect(output).toMatch(/completed/)
})

it('a signed request of a third party reaches the receiver by the steps of the README', {
  timeout: 120_000,
}, async () => {
  const ports = { '9000': String(await freePort()) }
  const { exitCode, output } = await runCommands(commandsOf('Webhooks of third parties'), 'RECEIVER_PID', ports)
  expect(exitCode, output).toBe(0)
  expect(output.match(/^HTTP\/1.1 200/gm), output).toHaveLength(2)
  expect(output).toContain('"event":"record:created"')
  expect(output).toMatch(/"state":"processed".*"state":"routed"|"state":"routed".*"state":"processed"/)
  expect(output).toContain('"state":"delivered"')
})

it('unified resources are read, previewed, extended and tried by the steps of the README', {
  timeout: 120_000,
}, async () => {
  const { exitCode, output } = await runCommands(commandsAfterConnecting('Unified resources'), 'STAND_IN_PID')
  expect(exitCode, output).toBe(0)
  expect(output).not.toContain('"error"')
  expect(output).toContain('"name":"octocat/hello-world"')
  expect(output).toMatch(/"stars":\d/)
  expect(output).toContain('"response.fields.stars":"account"')
  expect(output).toContain('crm/contacts list of hubspot: list')
  expect(output).toContain('crm/hubspot: ')
})

it('a tool server is created and shown by the steps of the README', { timeout: 120_000 }, async () => {
  const folder = temporaryDataDir()
  mkdirSync(folder, { recursive: true })
  onTestFinished(() => removeDataDir(folder))
  const commands = commandsAfterConnecting('Tools for agents (MCP)')
  const { exitCode, output } = await runCommands(commands, 'STAND_IN_PID', { '.mcp.json': join(folder, 'mcp.json') })
  expect(exitCode, output).toBe(0)
  expect(output).not.toContain('"error"')
  expect(output).toContain('"mcpServers"')
  expect(output).toContain('"list_repositories"')
})
