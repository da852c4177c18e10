import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Command } from '../../../src/cli/commands/command.ts'
import { COMMANDS } from '../../../src/cli/commands/commands.ts'
import { hasManyCases, someCases } from '../../support/case-count.ts'
import { CommandProcess, type CommandResult, runInProcess } from '../../support/command.ts'
import { dataPath } from '../../support/data-files.ts'
import { EVENTUALLY } from '../../support/eventually.ts'
import { preparedDataDir } from '../../support/prepared-data-dir.ts'
import { freePort, removeDataDir } from '../../support/product.ts'

/** Commands that call a server find none: a free port of now may be another test's server a moment later. */
const NO_SERVER_PORT = 1
const FIXTURE = dataPath('unified-calls/fixtures/crm/hubspot.json')
const MAPPING = join(import.meta.dirname, '../../../src/engine/catalog/unified/mappings/crm/hubspot.json')
const ID = '01a1febe-108f-77e8-836b-f40b4a24d381'

/** Operands and options with which each command runs, what a command that stays says when it is ready, and how others end, if not with 0. */
const CALLS: Readonly<
  Record<string, { readonly args: readonly string[]; readonly ready?: string; readonly exitCode?: number }>
> = {
  start: { args: [], ready: 'listens on' },
  serve: { args: [], ready: 'listens on' },
  worker: { args: [], ready: 'worker runs for' },
  daemon: { args: ['--group', 'g', '--store', 'ndjson:./never-written'], ready: 'the daemon waits' },
  migrate: { args: [] },
  'token create': { args: ['--name', 'another', '--preset', 'read'] },
  'token list': { args: [] },
  'token revoke': { args: [ID] },
  'keys list': { args: [] },
  // A key that was added would change what the other commands answer, from when `start` has read it.
  'keys add': { args: ['local'], exitCode: 2 },
  'keys rotate': { args: [] },
  'keys retire': { args: ['k-unknown'], exitCode: 2 },
  'keys check': { args: [] },
  'audit list': { args: [], exitCode: 1 },
  calls: { args: [], exitCode: 1 },
  'team list': { args: [] },
  'team verify': { args: [ID] },
  'team unverify': { args: [ID] },
  catalog: { args: [] },
  check: { args: ['github'] },
  'unified check': { args: ['crm/hubspot'] },
  'unified try': { args: ['crm/hubspot', '--fixture', FIXTURE] },
  'unified push': { args: [MAPPING, '--account', ID] },
  install: { args: ['github'] },
  run: { args: [ID] },
}

const stays = ({ name }: Command) => CALLS[name]?.ready !== undefined
const kindOf = (command: Command) => `${command.dataDirectory}, ${stays(command) ? 'stays' : 'ends'}`
const holding = COMMANDS.filter((command) => command.dataDirectory !== 'unused' && stays(command))
/** One command of each kind. */
const REPRESENTATIVES = COMMANDS.filter(
  (command, index) => COMMANDS.findIndex((other) => kindOf(other) === kindOf(command)) === index,
)
const HOLDERS = holding.filter((command) => REPRESENTATIVES.includes(command))
/** What holds a data directory, and what comes to it: one command of each kind; in CI's run every command to a start. */
const PAIRS = someCases(HOLDERS, 1).map((first) => ({
  first,
  seconds: first.dataDirectory === 'start' && hasManyCases() ? COMMANDS : REPRESENTATIVES,
}))

function callOf({ name }: Command, dataDir: string, port?: number) {
  const { args = [] } = CALLS[name] ?? {}
  const unused = name === 'start' || name === 'serve' ? 0 : NO_SERVER_PORT
  const environment = {
    PATCHBAY_DATA_DIR: dataDir,
    PATCHBAY_PORT: String(port ?? unused),
    PATCHBAY_LOG_LEVEL: 'warn',
  }
  return [[...name.split(' '), ...args], environment] as const
}

function begin(command: Command, dataDir: string, port?: number): CommandProcess {
  return new CommandProcess(...callOf(command, dataDir, port))
}

function newDataDir(): string {
  const dataDir = preparedDataDir()
  onTestFinished(() => removeDataDir(dataDir))
  return dataDir
}

function postmaster(dataDir: string): number {
  return Number.parseInt(readFileSync(join(dataDir, 'postgres/data/postmaster.pid'), 'utf8'), 10)
}

/** One line without a stack, on standard error. */
function expectOneLine({ exitCode, stderr, stdout }: CommandResult, ...words: readonly (string | RegExp)[]): void {
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' })
  expect(stderr.trimEnd().split('\n')).toHaveLength(1)
  for (const word of words) expect(stderr).toMatch(word)
}

function expectNotRejected({ exitCode, stderr }: CommandResult, expected: number): void {
  expect(stderr).not.toMatch(/in use|^\s+at /m)
  expect(exitCode, stderr).toBe(expected)
}

it('every command of the table is called here', () => {
  expect(Object.keys(CALLS).sort()).toEqual(COMMANDS.map(({ name }) => name).sort())
})

describe.each(PAIRS)('while `$first.name` uses a data directory', ({ first, seconds }) => {
  const dataDir = preparedDataDir()
  const started = Promise.withResolvers<CommandProcess>()

  beforeAll(async () => {
    const holder = begin(first, dataDir)
    await holder.wrote(CALLS[first.name]?.ready ?? '')
    started.resolve(holder)
  })

  afterAll(async () => {
    const { exitCode } = await (await started.promise).stop()
    removeDataDir(dataDir)
    expect(exitCode).toBe(0)
  })

  async function expectUndisturbed(act: (holder: CommandProcess) => Promise<void>): Promise<void> {
    const holder = await started.promise
    const pid = postmaster(dataDir)
    await act(holder)
    expect([holder.child.exitCode, postmaster(dataDir)]).toEqual([null, pid])
  }

  it.each(someCases(seconds.filter(stays), 1))(
    '`$name` shares it or is rejected, and never stops its database',
    (second) =>
      expectUndisturbed(async (holder) => {
        await using other = begin(second, dataDir)
        if (first.dataDirectory === 'start' && second.dataDirectory === 'start')
          return expectOneLine(await other.ended, dataDir, `process ${holder.child.pid}`, 'PATCHBAY_DATA_DIR')
        await other.wrote(CALLS[second.name]?.ready ?? '')
        expectNotRejected(await other.stop(), 0)
      }),
  )

  it.each(seconds.filter((command) => !stays(command)))('`$name` shares it, and never stops its database', (second) =>
    expectUndisturbed(async () => {
      const { args = [], exitCode = args.includes(ID) ? 1 : 0 } = CALLS[second.name] ?? {}
      expectNotRejected(await runInProcess(...callOf(second, dataDir)), exitCode)
    }),
  )
})

describe('the database of a data directory', () => {
  const lives: Readonly<Record<string, () => Promise<void>>> = {
    async 'survives the process that started it while another one uses it'() {
      const dataDir = newDataDir()
      const named = (name: string) => COMMANDS.find((each) => each.name === name) as Command
      const server = begin(named('serve'), dataDir)
      await server.wrote('listens on')
      await using worker = begin(named('worker'), dataDir)
      await worker.wrote('worker runs for')
      const pid = postmaster(dataDir)
      await server.stop()
      expect(postmaster(dataDir)).toBe(pid)
      expect((await runInProcess(['token', 'list'], { PATCHBAY_DATA_DIR: dataDir })).exitCode).toBe(0)
      await worker.stop()
      expect(existsSync(join(dataDir, 'postgres/data/postmaster.pid'))).toBe(false)
    },

    async 'of a killed start is adopted by the next one, and stopped at its end'() {
      const dataDir = newDataDir()
      const [start] = COMMANDS
      if (start === undefined) throw new Error('no commands')
      const killed = begin(start, dataDir)
      await killed.wrote('listens on')
      const pid = postmaster(dataDir)
      killed.child.kill('SIGKILL')
      await killed.ended
      const next = begin(start, dataDir)
      await next.wrote('listens on')
      expect(postmaster(dataDir)).toBe(pid)
      await next.stop()
      expect(existsSync(join(dataDir, 'postgres/data/postmaster.pid'))).toBe(false)
    },

    async 'is reported by the health check when it is gone, and is started again'() {
      const dataDir = newDataDir()
      const port = await freePort()
      const [start] = COMMANDS
      if (start === undefined) throw new Error('no commands')
      await using product = begin(start, dataDir, port)
      await product.wrote('listens on')
      const url = `http://127.0.0.1:${port}`
      const probe = async (path: string) => await (await fetch(`${url}${path}`)).json()
      const check = async () =>
        await (
          await fetch(`${url}/grpc.health.v1.Health/Check`, {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: '{}',
          })
        ).json()
      expect(await probe('/healthz')).toEqual({ status: 'SERVING' })
      const pid = postmaster(dataDir)
      // Frozen, not killed: nothing closes its connections, and it cannot be started anew.
      process.kill(pid, 'SIGSTOP')
      const backends = backendsOf(pid)
      for (const backend of backends) process.kill(backend, 'SIGSTOP')
      const gone = {
        status: 'NOT_SERVING',
        reason: 'DATABASE_UNAVAILABLE',
        message: 'the database is not reachable at the moment, try again',
      }
      await vi.waitFor(async () => expect(await probe('/healthz')).toEqual(gone), EVENTUALLY)
      expect(await probe('/healthz/scheduler')).toEqual(gone)
      expect(await check()).toEqual({ status: 'NOT_SERVING' })
      for (const process_ of [...backends, pid]) process.kill(process_, 'SIGKILL')
      await vi.waitFor(async () => expect(await probe('/healthz')).toEqual({ status: 'SERVING' }), EVENTUALLY)
      expect(await check()).toEqual({ status: 'SERVING' })
      expect(postmaster(dataDir)).not.toBe(pid)
      const token = JSON.parse(readFileSync(join(dataDir, 'bootstrap.json'), 'utf8')).environment_token
      const answer = await fetch(`${url}/integration`, { headers: { authorization: `Bearer ${token}` } })
      expect(answer.status).toBe(200)
    },
  }
  it.each(someCases(Object.entries(lives), 1))('%s', async (_, expectSo) => {
    await expectSo()
  })
})

function backendsOf(postmasterPid: number): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => parentOf(pid) === postmasterPid)
}

function parentOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    return undefined
  }
}
