import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { COMMANDS } from '../../../../src/cli/commands/commands.ts'
import { newId } from '../../../../src/foundation/base/index.ts'
import { generateKeyRingText } from '../../../../src/foundation/secrets/index.ts'
import { bootstrap } from '../../../../src/platform/tenancy/index.ts'
import { startTestApp } from '../../../support/app.ts'
import { runInProcess } from '../../../support/command.ts'
import { testDatabase } from '../../../support/database.ts'

/** How each command of the table fails, by every kind of failure that it can meet: what it prints, and its exit code. */
const app = await startTestApp()
const { url: databaseUrl, database } = await testDatabase()
await bootstrap(database)
const dir = mkdtempSync(join(tmpdir(), 'patchbay-failures-'))
afterAll(() => rmSync(dir, { recursive: true }))

type Command = (typeof COMMANDS)[number]
type Environment = Readonly<Record<string, string>>

/** A server of another kind: it answers everything with the status. */
async function answering(status: number, type: string, body: string): Promise<string> {
  const server: Server = createServer((_request, response) => {
    response.writeHead(status, { 'content-type': type }).end(body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  afterAll(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function file(name: string, text: string): string {
  const path = join(dir, name)
  writeFileSync(path, text)
  return path
}

const ID = newId()
const DEFINITION = file('definition.json', JSON.stringify({ name: 'acme', config: { base_url: 'https://a.example' } }))
const MAPPING = file('mapping.json', JSON.stringify({ model: 'crm', integration: 'acme', resources: {} }))
const FIXTURE = file('fixture.json', '{}')
/** Operands with which each command gets beyond reading its command line. */
const OPERANDS: Readonly<Record<string, readonly string[]>> = {
  'token revoke': [ID],
  'keys add': ['k9'],
  'keys retire': ['k1'],
  'team verify': [ID],
  'team unverify': [ID],
  check: [DEFINITION],
  'unified check': [MAPPING],
  'unified try': [MAPPING],
  'unified push': [MAPPING],
  install: [DEFINITION],
  run: [ID],
}
/** Options that each of them needs. */
const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  daemon: ['--group', 'g', '--store', `ndjson:${join(dir, 'records')}`],
  'token create': ['--name', 'n', '--preset', 'read'],
  'unified try': ['--fixture', FIXTURE],
}
const STORAGE: Environment = { DATABASE_URL: databaseUrl, PATCHBAY_ENCRYPTION_KEYS: generateKeyRingText('test') }
const argsOf = ({ name }: Command) => [...name.split(' '), ...(OPERANDS[name] ?? []), ...(REQUIRED[name] ?? [])]
const optionsOf = ({ options = [] }: Command) => options.map(({ flags }) => flags)
const callsServer = (command: Command) => optionsOf(command).some((flags) => flags.startsWith('--url '))
const usesStorage = ({ dataDirectory }: Command) => dataDirectory !== 'unused'
const takesFiles = ({ operands = {} }: Command) => Object.keys(operands).some((each) => each.includes('FILE'))
const fileOptions = (command: Command) => optionsOf(command).filter((flags) => flags.includes('FILE'))

/** A way to fail: the arguments and environment, and what the message must say. */
interface Failing {
  readonly what: string
  readonly args: readonly string[]
  readonly environment?: Environment
  readonly says: RegExp
  readonly exit: number
}

const servers = {
  nothing: 'http://127.0.0.1:1',
  broken: await answering(500, 'application/json', '{"error": "oops"}'),
  busy: await answering(503, 'text/html', '<html>busy</html>'),
  other: await answering(404, 'text/html', '<html>not found</html>'),
}

function usageFailures(command: Command): Failing[] {
  const { name, operands = {} } = command
  const required = Object.keys(operands).filter((each) => each.startsWith('<'))
  const isVariadic = Object.keys(operands).some((each) => each.includes('...'))
  // Those that may be left out, and are.
  const optional = OPERANDS[name] === undefined ? Object.keys(operands).filter((each) => each.startsWith('[')) : []
  const values = optionsOf(command).filter((flags) => flags.includes('<'))
  return [
    { what: 'an unknown option', args: [...argsOf(command), '--nonsense'], says: /--nonsense.*--help/s, exit: 2 },
    ...(required.length > 0
      ? [{ what: 'a missing operand', args: name.split(' '), says: /missing required argument.*--help/s, exit: 2 }]
      : []),
    ...(isVariadic
      ? []
      : [
          {
            what: 'one operand more',
            args: [...argsOf(command), ...optional.map(() => ID), ID],
            says: /too many arguments.*--help/s,
            exit: 2,
          },
        ]),
    ...values.map((flags) => {
      const [flag = ''] = flags.split(' ')
      return {
        what: `${flag} without a value`,
        args: [...argsOf(command), flag],
        says: new RegExp(`${flag}.*--help`, 's'),
        exit: 2,
      }
    }),
    ...(REQUIRED[name] ?? [])
      .filter((each) => each.startsWith('--'))
      .map((flag) => {
        const args = argsOf(command)
        const at = args.indexOf(flag)
        return { what: `no ${flag}`, args: args.toSpliced(at, 2), says: new RegExp(flag), exit: 2 }
      }),
  ]
}

function idFailures(command: Command): Failing[] {
  const { name, operands = {} } = command
  const ofOperand = Object.keys(operands).some((each) => each.includes('ID'))
    ? [{ what: 'an id that is none', args: [...name.split(' '), 'x'], says: /id/, exit: 2 }]
    : []
  const unknown: Readonly<Record<string, RegExp>> = {
    'token revoke': /no .*token/,
    'team verify': /no .*team/,
    'team unverify': /no .*team/,
    run: /no trigger/,
  }
  const says = unknown[name]
  const ofId =
    says === undefined
      ? []
      : [{ what: 'an unknown id', args: argsOf(command), environment: { ...STORAGE, ...served }, says, exit: 1 }]
  const ofOptions = optionsOf(command).filter((flags) => flags.includes('<ID>'))
  return [
    ...ofOperand,
    ...ofId,
    ...ofOptions.flatMap((flags) => {
      const [flag = ''] = flags.split(' ')
      const environment = { ...STORAGE, ...served }
      const bad = {
        what: `${flag} that is no id`,
        args: [...argsOf(command), flag, 'x'],
        environment,
        says: /id/,
        exit: 2,
      }
      const none = {
        what: `an unknown ${flag}`,
        args: [...argsOf(command), flag, ID],
        // The token of an environment is bound to it.
        environment: flag === '--environment' ? { ...environment, PATCHBAY_TOKEN: app.first.teamToken } : environment,
        says: new RegExp(flag.slice(2, 8)),
        exit: 1,
      }
      return name === 'daemon' ? [bad] : [bad, none]
    }),
  ]
}

const served: Environment = { PATCHBAY_TOKEN: app.first.environmentToken, PATCHBAY_PUBLIC_URL: app.url }

function serverFailures(command: Command): Failing[] {
  if (!callsServer(command)) return []
  const args = argsOf(command)
  const environment = { PATCHBAY_TOKEN: app.first.environmentToken }
  const at = (what: string, url: string, says: RegExp, exit = 1): Failing => ({
    what,
    args: [...args, '--url', url],
    environment,
    says,
    exit,
  })
  // A daemon waits for a server that is not there, as one that was restarted.
  const unavailable =
    command.name === 'daemon'
      ? []
      : [
          at('no server', servers.nothing, /unavailable.*ECONNREFUSED 127\.0\.0\.1:1/),
          at(
            'a server that answers 500',
            servers.broken,
            /server is unavailable: it answered with an error without a message/,
          ),
          at('a server that answers 503', servers.busy, /unavailable.*503/),
        ]
  return [
    ...unavailable,
    at('a server of another kind', servers.other, /404/),
    at('no address', 'nonsense', /--url takes an http or https URL/, 2),
    {
      what: 'a wrong token',
      args: [...args, '--url', app.url],
      environment: { PATCHBAY_TOKEN: 'pb_wrong' },
      says: /token/,
      exit: 1,
    },
    { what: 'no token', args: [...args, '--url', app.url], environment: {}, says: /PATCHBAY_TOKEN/, exit: 2 },
  ]
}

function fileFailures(command: Command): Failing[] {
  const environment = { ...STORAGE, ...served }
  const broken: readonly (readonly [string, string, RegExp])[] = [
    ['that is not there', join(dir, 'absent.json'), /absent\.json/],
    ['that is a directory', dir, new RegExp(dir)],
    ['that is no JSON', file('broken.json', '{"a": '), /broken\.json/],
    ['that is no object', file('list.json', '[]'), /list\.json/],
  ]
  const operand = takesFiles(command)
    ? broken.map(([what, path, says]) => ({
        what: `a file ${what}`,
        args: [...command.name.split(' '), path, ...(REQUIRED[command.name] ?? [])],
        environment,
        says,
        exit: 1,
      }))
    : []
  const options = fileOptions(command).flatMap((flags) => {
    const [flag = ''] = flags.split(' ')
    return broken.map(([what, path, says]) => ({
      what: `${flag} ${what}`,
      args: [...argsOf(command), flag, path],
      environment,
      says,
      exit: 1,
    }))
  })
  return [...operand, ...options]
}

function storageFailures(command: Command): Failing[] {
  if (!usesStorage(command)) return []
  const args = argsOf(command)
  const { PATCHBAY_ENCRYPTION_KEYS = '' } = STORAGE
  const nowhere = 'postgres://user@127.0.0.1:1/nowhere'
  const unknown = `${databaseUrl.replace(/\/[^/?]*(\?|$)/, '/no_such_database$1')}`
  return [
    {
      what: 'no database',
      args,
      environment: { ...STORAGE, DATABASE_URL: nowhere },
      says: /database.*127\.0\.0\.1:1|127\.0\.0\.1:1.*database/,
      exit: 1,
    },
    {
      what: 'an unknown database',
      args,
      environment: { ...STORAGE, DATABASE_URL: unknown },
      says: /no_such_database/,
      exit: 1,
    },
    {
      what: 'no address of a database',
      args,
      environment: { ...STORAGE, DATABASE_URL: 'nonsense' },
      says: /DATABASE_URL/,
      exit: 1,
    },
    { what: 'no keys', args, environment: { DATABASE_URL: databaseUrl }, says: /PATCHBAY_ENCRYPTION_KEYS/, exit: 1 },
    {
      what: 'keys that are none',
      args,
      environment: { DATABASE_URL: databaseUrl, PATCHBAY_ENCRYPTION_KEYS: 'x' },
      says: /PATCHBAY_ENCRYPTION_KEYS/,
      exit: 1,
    },
    {
      what: 'a setting that is none',
      args,
      environment: { DATABASE_URL: databaseUrl, PATCHBAY_ENCRYPTION_KEYS, PATCHBAY_LOG_LEVEL: 'loud' },
      says: /PATCHBAY_LOG_LEVEL/,
      exit: 1,
    },
  ]
}

/** Lines of a message: the error, and a finding or hint per line. */
const LINES_MAX = 4

const SIGNALS = ['SIGINT', 'SIGTERM'] as const
let listeners: readonly (readonly NodeJS.SignalsListener[])[] = []

beforeEach(() => {
  listeners = SIGNALS.map((signal) => process.listeners(signal) as NodeJS.SignalsListener[])
})
/** A command that fails ends its process, and its handlers of signals with it. */
afterEach(() => {
  for (const [at, signal] of SIGNALS.entries())
    for (const each of process.listeners(signal) as NodeJS.SignalsListener[])
      if (!listeners[at]?.includes(each)) process.off(signal, each)
})

describe.each(COMMANDS.map((command) => [command.name, command] as const))('patchbay %s', (_name, command) => {
  const failings = [usageFailures, idFailures, serverFailures, fileFailures, storageFailures].flatMap((list) =>
    list(command),
  )

  it.each(failings.map((each) => [each.what, each] as const))(
    'fails with %s, in plain words',
    async (_what, { args, environment = {}, says, exit }) => {
      const { exitCode, stdout, stderr } = await runInProcess(args, {
        PATCHBAY_DATA_DIR: join(dir, 'data'),
        ...environment,
      })
      const lines = (stderr + (command.name.includes('check') ? stdout : '')).trimEnd().split('\n')
      expect({ exitCode, lines }).toEqual({ exitCode: exit, lines: expect.any(Array) })
      expect(lines.join('\n')).toMatch(says)
      expect(lines.length).toBeLessThanOrEqual(LINES_MAX)
      // A stack, the name of a class, a value that was not there.
      expect(lines.join('\n')).not.toMatch(/\n\s+at |node_modules|\b[A-Z]\w*Error\b|undefined|\[object|\bnull\b/)
    },
  )
})
