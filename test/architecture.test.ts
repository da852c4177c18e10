import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { describe, expect, it } from 'vitest'

const ROOT = join(import.meta.dirname, '..')

/** The layers, highest first. A module imports modules of lower layers only. */
const LAYERS: readonly (readonly string[])[] = [
  ['cli'],
  ['connect-page'],
  ['api', 'worker', 'daemon-runner'],
  ['client', 'daemon-service', 'schedules', 'inbound-webhooks', 'mcp-protocol'],
  ['tool-servers'],
  ['syncs'],
  ['deliveries'],
  ['webhooks'],
  ['runs', 'link-sessions', 'webhook-subscriptions'],
  ['accounts', 'call-log', 'rate-limits', 'unified-models'],
  ['unified-calls'],
  ['integrations', 'proxy'],
  ['audit', 'tenancy', 'tasks'],
  ['object-store'],
  ['due-work', 'secrets', 'events'],
  ['database'],
  ['definitions'],
  ['formats'],
  ['catalog', 'egress', 'expressions', 'redaction', 'telemetry'],
  ['base'],
]
const LAYER = new Map(LAYERS.flatMap((modules, layer) => modules.map((module) => [module, layer] as const)))

/** The only modules, or kinds of files, that may import a package or folder. */
const OWNERS: Readonly<Record<string, readonly string[]>> = {
  // The store of a daemon is a database of the customer, of which database/ knows nothing.
  knex: ['database', 'sql', 'daemon-runner'],
  pg: ['database'],
  jsonata: ['expressions'],
  'cron-parser': ['schedules'],
  '@modelcontextprotocol/server': ['mcp-protocol'],
  undici: ['egress'],
  pino: ['telemetry'],
  'prom-client': ['telemetry'],
  'log-update': ['cli'],
  gen: ['api', 'client', 'daemon-runner', 'codegen'],
  // Constants of the contract's fields alone, without protobuf: what makes the payloads of events.
  'gen/payload-fields.ts': ['events'],
  '@connectrpc/connect': ['api', 'client', 'daemon-runner'],
  '@connectrpc/connect-node': ['api', 'client', 'daemon-runner'],
  // The configuration reads address ranges with it.
  'node:net': ['api', 'egress', 'database', '(root)'],
  'node:tls': ['api', 'egress'],
  'node:http': ['api', 'telemetry'],
  'node:http2': ['api'],
  'node:https': [],
  'node:dgram': [],
  'node:worker_threads': ['base', 'definitions', 'formats'],
  'node:child_process': ['database', 'expressions', 'codegen'],
}

/** Every file that is handed the HTTP client, and where its requests are logged: `call log`, or a reason for another place. */
const SENDERS: Readonly<Record<string, string>> = {
  'src/proxy/dependencies.ts': 'call log: by send.ts and stream.ts',
  'src/proxy/send.ts': 'call log',
  'src/proxy/stream.ts': 'call log',
  'src/proxy/send-raw.ts': 'call log: of its caller, accounts/token-context.ts',
  'src/accounts/token-context.ts': 'call log',
  'src/accounts/token-http.ts': 'call log: of its caller, accounts/token-context.ts',
  'src/webhooks/attempt.ts': 'delivery attempts',
  'src/webhooks/deliver.ts': 'delivery attempts',
  'src/deliveries/delivery-worker.ts': 'delivery attempts',
  'src/deliveries/send.ts': 'delivery attempts',
  'src/inbound-webhooks/confirm-address.ts': 'the trace of the inbound event',
  'src/inbound-webhooks/create-receiver.ts': 'none: public keys, of no account',
  'src/inbound-webhooks/receive.ts': 'the trace of the inbound event',
  'src/connect-page/logos.ts': 'none: public images, of no account',
  'src/object-store/s3-store.ts': 'none: the own object store',
  'src/open-object-store.ts': 'none: the own object store',
  'src/process-resources.ts': 'none: makes the client',
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
const SERVES_ONE = /^src\/(?:daemon-runner|cli|codegen)\//

const isOfShared = (section: string) => section.startsWith('Shared by all tenants\n')

interface Source {
  readonly path: string
  readonly module: string
  readonly text: string
  readonly imports: readonly string[]
}

const sources: readonly Source[] = globSync('src/**/*.ts', { cwd: ROOT }).map((path) => {
  const text = readFileSync(join(ROOT, path), 'utf8')
  const [, second = '', ...rest] = path.split('/')
  const imports = [
    // A type of Node's own opens no socket: of Node's modules only imports of values count.
    ...text
      .replace(/^import type [^'"]*['"]node:[^'"]+['"]/gm, '')
      .matchAll(
        /^(?:import|export)\b[^'"]*?from\s+['"]([^'"]+)['"]|^import\s+['"]([^'"]+)['"]|\bimport\(['"]([^'"]+)['"]\)/gms,
      ),
  ]
  return {
    path,
    module: rest.length === 0 ? '(root)' : second,
    text,
    imports: imports.map(([, from, bare, dynamic]) => from ?? bare ?? dynamic ?? ''),
  }
})

/** The file an import reaches, relative to the root, or the package's name. */
function target(source: Source, specifier: string): string {
  return specifier.startsWith('.') ? relative(ROOT, join(ROOT, dirname(source.path), specifier)) : specifier
}

function moduleOf(path: string): string | undefined {
  const [top, module, ...rest] = path.split('/')
  return top === 'src' && rest.length > 0 ? module : undefined
}

/** Whether a file holds the statements of its module. */
function isSql(path: string): boolean {
  return /^src\/[^/]+\/sql(?:\.ts|\/)/.test(path)
}

function violations(find: (source: Source, reached: string) => string | undefined): string[] {
  return sources.flatMap((source) =>
    source.imports.flatMap((specifier) => {
      const problem = find(source, target(source, specifier))
      return problem === undefined ? [] : [`${source.path}: ${problem}`]
    }),
  )
}

/** Files that parse JSON which this program wrote itself, which holds keys alone, or whose numbers are doubles by nature. */
const PLAIN_JSON_READERS: readonly string[] = [
  'src/api-process.ts',
  'src/base/json-parse.ts',
  'src/catalog/index.ts',
  'src/cli/server-address.ts',
  'src/daemon-runner/ndjson-store.ts',
  'src/definitions/compile.ts',
  'src/definitions/config-schema.ts',
  // Results of JSONata.
  'src/expressions/sandbox-evaluation.ts',
  'src/expressions/sandbox/main.ts',
  // `$jsonParse`, in doubles as all expressions compute.
  'src/expressions/sandbox/texts.ts',
  // Key sets of third parties, read by a library.
  'src/formats/signature/jwt-keys.ts',
  'src/formats/signature/public-key.ts',
  'src/database/embedded-placement.ts',
  'src/database/keyset-pages.ts',
  'src/webhooks/signing.ts',
]

it('logs what is sent to third parties: a file that is handed the HTTP client says where', () => {
  const senders = sources
    .filter(
      ({ module, text }) =>
        module !== 'egress' && /\b(?:HttpClient|createHttpClient)\b|\bhttp\.(?:send|stream)\(/.test(text),
    )
    .map(({ path }) => path)
  expect(senders.toSorted()).toEqual(Object.keys(SENDERS).toSorted())
  const logged = sources.filter(({ path }) => SENDERS[path] === 'call log')
  expect(logged.filter(({ text }) => !/\b(?:openLogEntry|sendLogged)\(/.test(text)).map(({ path }) => path)).toEqual([])
  const raw = sources.filter(({ text }) => /\b(?:sendRaw|createTokenHttp)\(/.test(text)).map(({ path }) => path)
  expect(raw.toSorted()).toEqual([
    'src/accounts/token-context.ts',
    'src/accounts/token-http.ts',
    'src/container.ts',
    'src/proxy/send-raw.ts',
  ])
})

describe('the architecture', () => {
  it('has a layer for every module', () => {
    const modules = new Set(
      sources.map(({ module }) => module).filter((module) => module !== '(root)' && module !== 'codegen'),
    )
    expect([...modules].filter((module) => !LAYER.has(module))).toEqual([])
  })

  it('lets imports go down the layers only', () => {
    const upward = violations(({ module }, reached) => {
      const other = moduleOf(reached)
      const [from, to] = [LAYER.get(module), other === undefined ? undefined : LAYER.get(other)]
      if (from === undefined || to === undefined || other === module) return undefined
      return to > from ? undefined : `${module} imports ${other}`
    })
    expect(upward).toEqual([])
  })

  it('enters another module only through its index', () => {
    const sideDoors = violations(({ module }, reached) => {
      const other = moduleOf(reached)
      if (other === undefined || other === module || other === 'catalog') return undefined
      return reached === `src/${other}/index.ts` ? undefined : `reaches into ${reached}`
    })
    expect(sideDoors).toEqual([])
  })

  it('keeps the root files out of every module', () => {
    const inward = violations(({ module }, reached) =>
      module !== '(root)' && module !== 'cli' && /^src\/[^/]+\.ts$/.test(reached) ? `imports ${reached}` : undefined,
    )
    expect(inward).toEqual([])
  })

  it.each(Object.entries(OWNERS))('lets %s be imported by its owners alone', (name, owners) => {
    const violating = violations(({ module, path }, reached) => {
      const isHit = reached === name || (reached.startsWith(`${name}/`) && OWNERS[reached] === undefined)
      return isHit && !owners.includes(module) && !(owners.includes('sql') && isSql(path))
        ? `imports ${name}`
        : undefined
    })
    expect(violating).toEqual([])
  })

  it('runs statements in sql files and database/ alone', () => {
    const runs = sources.filter(({ path, module, text }) => {
      return module !== 'database' && module !== 'daemon-runner' && !isSql(path) && STATEMENT.test(text)
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
    const section = readFileSync(join(ROOT, 'src/README.md'), 'utf8').split('\n## ').find(isOfShared) ?? ''
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

  it('opens every module with a docstring in its index', () => {
    const indexes = sources.filter(({ path }) => /^src\/[^/]+\/index\.ts$/.test(path))
    expect(indexes.filter(({ text }) => !text.startsWith('/**')).map(({ path }) => path)).toEqual([])
  })

  it('reads JSON that others wrote by parseJson alone, which keeps numbers and bounds the depth', () => {
    const readers = sources.filter(({ text }) => text.includes('JSON.parse(')).map(({ path }) => path)
    expect(readers.sort()).toEqual([...PLAIN_JSON_READERS].sort())
  })

  it('reads text of a third party by its charset, and never in part', () => {
    const decoders = sources.filter(({ text }) => text.includes('new TextDecoder(')).map(({ path }) => path)
    expect(decoders.sort()).toEqual(['src/formats/response/charset.ts', 'src/formats/response/response.ts'])
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
      const modules = sources.filter(({ text }) => declaration.test(text)).map(({ module }) => `\`${module}/\``)
      expect(listed.split(', ')).toEqual([...new Set(modules)].sort())
    },
  )

  it('uses no word that says less than the term of the field', () => {
    const pages = globSync(
      [
        '*.md',
        'proto/*.md',
        'proto/patchbay/**/*.proto',
        'src/**/*.md',
        'test/*.md',
        'test/*/README.md',
        'test/{bench,faults}/**/*.ts',
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
      exclude: ['**/node_modules/**', 'test/browser/**'],
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
