import { globSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { findCircles, importsByFile, readSourceTree, type SourceFile, WINGS } from './support/source-tree.ts'

const ROOT = join(import.meta.dirname, '..')

const WING_NAMES = Object.keys(WINGS)

/** The only folders, or kinds of files, that may import a package or folder. */
const OWNERS: Readonly<Record<string, readonly string[]>> = {
  // The store of a daemon is a database of the customer, of which foundation/database knows nothing.
  knex: ['foundation/database', 'sql', 'cli/daemon'],
  pg: ['foundation/database'],
  jsonata: ['engine/expressions'],
  'cron-parser': ['sync/schedules'],
  '@modelcontextprotocol/server': ['tools/mcp'],
  undici: ['foundation/egress'],
  pino: ['foundation/telemetry'],
  'prom-client': ['foundation/telemetry'],
  gen: ['server/api', 'cli/client', 'cli/daemon', 'cli/codegen'],
  // Constants of the contract's fields alone, without protobuf: what makes the payloads of events.
  'gen/payload-fields.ts': ['platform/outbox'],
  '@connectrpc/connect': ['server/api', 'cli/client', 'cli/daemon'],
  '@connectrpc/connect-node': ['server/api', 'cli/client', 'cli/daemon'],
  // The configuration reads address ranges with it.
  'node:net': ['main', 'server/api', 'foundation/egress', 'foundation/database', 'server/config'],
  'node:tls': ['server/api', 'foundation/egress'],
  'node:http': ['server/api', 'foundation/telemetry'],
  'node:http2': ['server/api'],
  'node:https': [],
  'node:dgram': [],
  'node:worker_threads': ['foundation/fair', 'engine/definitions', 'engine/formats'],
  'node:child_process': ['foundation/database', 'engine/expressions', 'cli/codegen'],
}

/** Every file that is handed the HTTP client, and where its requests are logged: `call log`, or a reason for another place. */
const SENDERS: Readonly<Record<string, string>> = {
  'src/engine/proxy/dependencies.ts': 'call log: by send.ts and stream.ts',
  'src/engine/proxy/send.ts': 'call log',
  'src/engine/proxy/stream.ts': 'call log',
  'src/engine/proxy/send-raw.ts': 'call log: of its caller, platform/accounts/token-context.ts',
  'src/platform/accounts/token-context.ts': 'call log',
  'src/platform/accounts/token-http.ts': 'call log: of its caller, platform/accounts/token-context.ts',
  'src/webhooks/outbound/attempt.ts': 'delivery attempts',
  'src/webhooks/outbound/deliver.ts': 'delivery attempts',
  'src/webhooks/outbound/delivery-worker.ts': 'delivery attempts',
  'src/webhooks/outbound/send.ts': 'delivery attempts',
  'src/webhooks/inbound/confirm-address.ts': 'the trace of the inbound event',
  'src/webhooks/inbound/create-receiver.ts': 'none: public keys, of no account',
  'src/webhooks/inbound/receive.ts': 'the trace of the inbound event',
  'src/server/page/logos.ts': 'none: public images, of no account',
  'src/platform/objects/s3-store.ts': 'none: the own object store',
  'src/server/open.ts': 'none: the own object store',
  'src/server/container.ts': 'none: makes the client',
}

const LINES_MAX = 400

/**
 * Time that a test measures itself: what passed on the clock since a moment, or until a deadline that the test sets, and what a
 * processor took. `support/cpu-time.ts` relates it to the time of known work; what is awaited has `expect.poll`. Moments that are
 * made of the present, as `Date.now() - 3 * DAY_MS`, are data.
 */
const MEASURES_TIME =
  /\bprocess\.(?:threadC|c)puUsage\(|\bhrtime\b|(?:performance|Date)\.now\(\) - (?:begun|before|start\w*|from|since|then)\b|(?:Date|performance)\.now\(\) <=? \w*(?:deadline|until)|expect\(\s*(?:performance|Date)\.now\(\) - /i
const TYPE_DECLARATION = /^(?:export )?(?:declare )?(?:interface|type|(?:abstract )?class) (\w+)/gm

/** A query builder of a table, a raw statement, or an import of the functions that send one. */
const STATEMENT =
  /\b(?:tx|pool)\(['`]|\.raw\(|import \{[^}]*\b(?:query|queryOne|execute)\b[^}]*\} from '[^']*\/database\//

/** Words that name a person where a process is meant, or a riddle where the field has a term (`src/README.md`, "Glossary"). */
const VAGUE_WORDS =
  /keeper|\b(?:whoever|nobody|somebody|believe[sd]?|hiccups?|patience|naps?|thinks? through|steps? aside|hand(?:s|ed)? back|given up|is told|are told|to be had|stranger|guest|refusals?|rungs?|ladder)\b/i

/** What holds work or resources of several tenants: a construction by the name of its class, a process, a line of waiting work. */
const SHARED =
  /\bnew (\w*(?:Queue|Pool|Semaphore|Slots|Batcher|Limiter|Threads|Hub|Budget|Buckets|Agent|Worker|Executor|Ticker|PollLoop|Database))\b|\b(spawn|fork|knex)\(|(#(?:waiting|queue|waiters))\b[^\n]*= (?:\[\]|new (?:Map|Set)\b)/g
/** Processes of one customer, or of a command. */
const SERVES_ONE = /^src\/cli\//

const isOfShared = (section: string) => section.startsWith('Shared by all tenants\n')

/** A type of Node's own opens no socket: of Node's modules only imports of values count. */
const sources = readSourceTree(ROOT).map((source) => ({
  ...source,
  imports: source.imports.filter(({ target, isType }) => !(isType && target.startsWith('node:'))),
}))
const fileAt = new Map(sources.map((source) => [source.path, source]))

/** Whether a file holds the statements of its folder. */
function isSql(path: string): boolean {
  return /\/sql(?:\.ts$|\/)/.test(path)
}

function violations(find: (source: SourceFile, target: string) => string | undefined): string[] {
  return sources.flatMap((source) =>
    source.imports.flatMap(({ target }) => {
      const problem = find(source, target)
      return problem === undefined ? [] : [`${source.path}: ${problem}`]
    }),
  )
}

/** Files that parse JSON which this program wrote itself, which holds keys alone, or whose numbers are doubles by nature. */
const PLAIN_JSON_READERS: readonly string[] = [
  'src/server/api-server.ts',
  'src/foundation/json/json-parse.ts',
  'src/engine/catalog/definitions.ts',
  'src/cli/commands/server-address.ts',
  'src/cli/daemon/ndjson-store.ts',
  'src/engine/definitions/compile.ts',
  'src/engine/definitions/config-schema.ts',
  // Results of JSONata.
  'src/engine/expressions/sandbox-evaluation.ts',
  'src/engine/expressions/sandbox/main.ts',
  // `$jsonParse`, in doubles as all expressions compute.
  'src/engine/expressions/sandbox/texts.ts',
  // Key sets of third parties, read by a library.
  'src/engine/formats/signature/jwt-keys.ts',
  'src/engine/formats/signature/public-key.ts',
  'src/foundation/database/embedded-placement.ts',
  'src/foundation/database/keyset-pages.ts',
  'src/webhooks/outbound/signing.ts',
]

it('logs what is sent to third parties: a file that is handed the HTTP client says where', () => {
  const senders = sources
    .filter(
      ({ folder, text }) =>
        folder !== 'foundation/egress' && /\b(?:HttpClient|createHttpClient)\b|\bhttp\.(?:send|stream)\(/.test(text),
    )
    .map(({ path }) => path)
  expect(senders.toSorted()).toEqual(Object.keys(SENDERS).toSorted())
  const logged = sources.filter(({ path }) => SENDERS[path] === 'call log')
  expect(logged.filter(({ text }) => !/\b(?:openLogEntry|sendLogged)\(/.test(text)).map(({ path }) => path)).toEqual([])
  const raw = sources.filter(({ text }) => /\b(?:sendRaw|createTokenHttp)\(/.test(text)).map(({ path }) => path)
  expect(raw.toSorted()).toEqual([
    'src/engine/proxy/send-raw.ts',
    'src/platform/accounts/token-context.ts',
    'src/platform/accounts/token-http.ts',
    'src/server/container.ts',
  ])
})

describe('the architecture', () => {
  it('has eight wings, and every file in one of them', () => {
    expect(sources.filter(({ wing }) => WINGS[wing] === undefined).map(({ path }) => path)).toEqual(['src/main.ts'])
    expect(readdirSync(join(ROOT, 'src')).sort()).toEqual([...WING_NAMES, 'README.md', 'main.ts'].sort())
  })

  it('lets imports go from a wing to those below it only', () => {
    const upward = violations(({ wing }, target) => {
      const other = fileAt.get(target)?.wing
      if (other === undefined || other === wing || wing === 'main') return undefined
      return WINGS[wing]?.imports.includes(other) ? undefined : `${wing} imports ${other}`
    })
    expect(upward).toEqual([])
  })

  it('shows the same chain in the README of the sources', () => {
    const readme = readFileSync(join(ROOT, 'src/README.md'), 'utf8')
    expect(readme).toContain('`cli → server → sync → webhooks, tools → platform → engine → foundation`')
  })

  it('enters a folder of another wing only through its index, which stands only where another wing enters', () => {
    const entered = new Set<string>()
    const sideDoors = violations(({ wing, path }, target) => {
      const other = fileAt.get(target)
      if (other === undefined || other.wing === wing) return undefined
      // A file that stands directly in a wing is a door itself.
      const door = other.folder === other.wing ? target : `src/${other.folder}/index.ts`
      entered.add(door)
      return target === door || path === 'src/main.ts' ? undefined : `reaches into ${target}`
    })
    expect(sideDoors).toEqual([])
    const indexes = sources.filter(({ path }) => path.endsWith('/index.ts')).map(({ path }) => path)
    expect(indexes.filter((path) => !entered.has(path))).toEqual([])
    const within = violations(({ wing }, target) =>
      fileAt.get(target)?.wing === wing && target.endsWith('/index.ts') ? `imports ${target}` : undefined,
    )
    expect(within).toEqual([])
  })

  it('exports from an index only what another wing imports', () => {
    const taken = new Set(
      sources.flatMap(({ imports }) =>
        imports.flatMap(({ target, names }) => names.map((name) => `${target} ${name}`)),
      ),
    )
    const idle = sources
      .filter(({ path }) => path.endsWith('/index.ts'))
      .flatMap(({ path, imports }) => imports.flatMap(({ names }) => names.map((name) => `${path} ${name}`)))
    expect(idle.filter((name) => !taken.has(name))).toEqual([])
  })

  it('has no circle of files', () => {
    expect(findCircles(importsByFile(sources))).toEqual([])
  })

  it.each(Object.entries(WINGS))('keeps %s at the size that it had, or below', (wing, { linesMax }) => {
    const lines = sources.filter((source) => source.wing === wing).reduce((sum, source) => sum + source.lines, 0)
    expect(lines).toBeLessThanOrEqual(linesMax)
  })

  it.each(Object.entries(OWNERS))('lets %s be imported by its owners alone', (name, owners) => {
    const violating = violations(({ folder, path }, target) => {
      const isHit = target === name || (target.startsWith(`${name}/`) && OWNERS[target] === undefined)
      return isHit && !owners.includes(folder) && !(owners.includes('sql') && isSql(path))
        ? `imports ${name}`
        : undefined
    })
    expect(violating).toEqual([])
  })

  it('runs statements in sql files and foundation/database alone', () => {
    const runs = sources.filter(({ path, folder, text }) => {
      return folder !== 'foundation/database' && folder !== 'cli/daemon' && !isSql(path) && STATEMENT.test(text)
    })
    expect(runs.map(({ path }) => path)).toEqual([])
  })

  it('writes the names of columns in snake case: results have them in camel case', () => {
    const aliases = sources.flatMap(({ path, text }) =>
      [...text.matchAll(/\bas "[a-z]+[A-Z]\w*"|'\w+ as [a-z]+[A-Z]\w*'/g)].map(([alias]) => `${path}: ${alias}`),
    )
    expect(aliases).toEqual([])
  })

  it('names the owner of everything that tenants share', () => {
    const constructed = sources
      .filter(({ path }) => !SERVES_ONE.test(path))
      .flatMap(({ path, text }) =>
        [...text.matchAll(SHARED)].map(([, ...names]) => `${path.slice('src/'.length)} ${names.find(Boolean)}`),
      )
    const section = readFileSync(join(ROOT, 'src/server/README.md'), 'utf8').split('\n## ').find(isOfShared) ?? ''
    const listed = section
      .split('\n')
      .filter((line) => line.startsWith('| `'))
      .flatMap((row) =>
        [...(row.split('|')[1] ?? '').matchAll(/`([^`]+)` (#?\w+)/g)].map(([, path, name]) => `${path} ${name}`),
      )
    expect(listed.sort()).toEqual([...new Set(constructed)].sort())
    const unowned = section.split('\n').filter((line) => line.startsWith('| `') && /\|\s*\|/.test(line))
    expect(unowned).toEqual([])
  })

  it('re-exports by name, never by star', () => {
    expect(sources.filter(({ text }) => /^export \*/m.test(text)).map(({ path }) => path)).toEqual([])
  })

  it('opens every folder that another wing enters with a docstring in its index', () => {
    const indexes = sources.filter(({ path }) => path.endsWith('/index.ts'))
    expect(indexes.filter(({ text }) => !text.startsWith('/**')).map(({ path }) => path)).toEqual([])
  })

  it('reads JSON that others wrote by parseJson alone, which keeps numbers and bounds the depth', () => {
    const readers = sources.filter(({ text }) => text.includes('JSON.parse(')).map(({ path }) => path)
    expect(readers.sort()).toEqual([...PLAIN_JSON_READERS].sort())
  })

  it('reads text of a third party by its charset, and never in part', () => {
    const decoders = sources.filter(({ text }) => text.includes('new TextDecoder(')).map(({ path }) => path)
    expect(decoders.sort()).toEqual([
      'src/engine/formats/response/charset.ts',
      'src/engine/formats/response/response.ts',
    ])
  })

  it('writes properties one by one, never as a spread literal that fills a line', () => {
    expect(sources.filter(({ text }) => /\.\.\.\{/.test(text)).map(({ path }) => path)).toEqual([])
  })

  it('declares every type name once', () => {
    const names = sources.flatMap(({ text }) => [...text.matchAll(TYPE_DECLARATION)].map(([, name = '']) => name))
    const declared = Map.groupBy(names, (name) => name)
    expect([...declared].filter(([, each]) => each.length > 1).map(([name]) => name)).toEqual([])
  })

  it.each(['Finding', 'Lease', 'Outcome', 'Plan', 'Step'])(
    'names types …%s only where the glossary knows that word',
    (word) => {
      const glossary = readFileSync(join(ROOT, 'src/README.md'), 'utf8')
      const [, listed = ''] =
        new RegExp(`^\\| (?:[^|]*, )?${word.toLowerCase()} \\|.*\\(types: ([^)]+)\\)`, 'm').exec(glossary) ?? []
      const declaration = new RegExp(`^export (?:interface|type|(?:abstract )?class) \\w*${word}\\b`, 'm')
      const folders = sources.filter(({ text }) => declaration.test(text)).map(({ folder }) => `\`${folder}/\``)
      expect(listed.split(', ')).toEqual([...new Set(folders)].sort())
    },
  )

  it('uses no word that says less than the term of the field', () => {
    const pages = globSync(
      [
        '*.md',
        'guides/*.md',
        'proto/*.md',
        'proto/patchbay/**/*.proto',
        'src/**/*.md',
        'test/*.md',
        'test/lab/{bench,faults}/**/*.ts',
      ],
      { cwd: ROOT },
    )
    const texts = [...sources, ...pages.map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }))]
    const found = texts.flatMap(({ path, text }) =>
      text
        .split('\n')
        .flatMap((line, at) => (VAGUE_WORDS.test(line) ? [`${path}:${at + 1} ${VAGUE_WORDS.exec(line)?.[0]}`] : [])),
    )
    expect(found).toEqual([])
  })

  it('is tested without time on the clock or of a processor as a bound, which a busy or slow machine exceeds', () => {
    const timed = globSync('test/**/*.test.ts', { cwd: ROOT, exclude: ['**/node_modules/**'] }).flatMap((path) =>
      readFileSync(join(ROOT, path), 'utf8')
        .split('\n')
        .flatMap((line, at) => (MEASURES_TIME.test(line) ? [`${path}:${at + 1} ${line.trim()}`] : [])),
    )
    expect(timed).toEqual([])
  })

  it('is tested within one limit of time, that of vitest.config.ts, which a slow machine needs for every test', () => {
    const limited = globSync('test/**/*.test.ts', {
      cwd: ROOT,
      exclude: ['**/node_modules/**', 'test/lab/browser/**'],
    }).filter((path) =>
      /^ *\}, [\d_]+\)$|\{ timeout: [\d_]+ \}, (?:async |\()/m.test(readFileSync(join(ROOT, path), 'utf8')),
    )
    expect(limited).toEqual([])
  })

  it(`keeps every file within ${LINES_MAX} lines`, () => {
    const long = sources.filter(({ text }) => text.split('\n').length > LINES_MAX + 1).map(({ path }) => path)
    expect(long).toEqual([])
  })
})
