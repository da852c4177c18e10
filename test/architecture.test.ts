import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { describe, expect, it } from 'vitest'

const ROOT = join(import.meta.dirname, '..')

/** The rungs, highest first. A room imports rooms of lower rungs only. */
const LADDER: readonly (readonly string[])[] = [
  ['cli'],
  ['api', 'worker', 'daemon'],
  ['daemons', 'schedule'],
  ['sync'],
  ['webhooks'],
  ['accounts'],
  ['budgets', 'integrations', 'queue', 'tenancy'],
  ['proxy', 'storage'],
  ['definition'],
  ['formats'],
  ['catalog', 'client', 'expression', 'egress', 'vault', 'telemetry'],
  ['base'],
]
const RUNG = new Map(LADDER.flatMap((rooms, rung) => rooms.map((room) => [room, rung] as const)))

/** The only rooms that may import a package or folder. */
const OWNERS: Readonly<Record<string, readonly string[]>> = {
  // A daemon's store is a database of the customer's, of which storage/ knows nothing.
  knex: ['storage', 'daemon'],
  pg: ['storage'],
  jsonata: ['expression'],
  'cron-parser': ['schedule'],
  undici: ['egress'],
  pino: ['telemetry'],
  'prom-client': ['telemetry'],
  'log-update': ['cli'],
  gen: ['api', 'client', 'daemon', 'codegen'],
  '@connectrpc/connect': ['api', 'client', 'daemon'],
  '@connectrpc/connect-node': ['api', 'client', 'daemon'],
  // The configuration reads address ranges with it.
  'node:net': ['api', 'egress', 'storage', '(root)'],
  'node:tls': ['api', 'egress'],
  'node:http': ['api'],
  'node:http2': ['api'],
  'node:https': [],
  'node:dgram': [],
  'node:worker_threads': ['base', 'definition', 'formats'],
  'node:child_process': ['storage', 'expression', 'codegen'],
}

const LINES_MAX = 400

interface Source {
  readonly path: string
  readonly room: string
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
    room: rest.length === 0 ? '(root)' : second,
    text,
    imports: imports.map(([, from, bare, dynamic]) => from ?? bare ?? dynamic ?? ''),
  }
})

/** The file an import reaches, relative to the root, or the package's name. */
function target(source: Source, specifier: string): string {
  return specifier.startsWith('.') ? relative(ROOT, join(ROOT, dirname(source.path), specifier)) : specifier
}

function roomOf(path: string): string | undefined {
  const [top, room, ...rest] = path.split('/')
  return top === 'src' && rest.length > 0 ? room : undefined
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
  'src/app.ts',
  'src/base/json-text.ts',
  'src/catalog/index.ts',
  'src/cli/server-address.ts',
  'src/daemon/stores/ndjson-journal.ts',
  'src/definition/compile-budget.ts',
  'src/definition/json-schema.ts',
  // Results of JSONata.
  'src/expression/jsonata/evaluator.ts',
  'src/expression/jsonata/sandbox/main.ts',
  'src/formats/reference.ts',
  // Key sets of third parties, read by a library.
  'src/formats/signature/jwt-keys.ts',
  'src/formats/signature/public-key.ts',
  'src/storage/embedded/binaries.ts',
  'src/storage/keyset.ts',
  'src/webhooks/signing-keys.ts',
]

describe('the architecture', () => {
  it('has a rung for every room', () => {
    const rooms = new Set(sources.map(({ room }) => room).filter((room) => room !== '(root)' && room !== 'codegen'))
    expect([...rooms].filter((room) => !RUNG.has(room))).toEqual([])
  })

  it('lets imports go down the ladder only', () => {
    const upward = violations(({ room }, reached) => {
      const other = roomOf(reached)
      const [from, to] = [RUNG.get(room), other === undefined ? undefined : RUNG.get(other)]
      if (from === undefined || to === undefined || other === room) return undefined
      return to > from ? undefined : `${room} imports ${other}`
    })
    expect(upward).toEqual([])
  })

  it('enters another room only through its index', () => {
    const sideDoors = violations(({ room }, reached) => {
      const other = roomOf(reached)
      if (other === undefined || other === room || other === 'catalog') return undefined
      return reached === `src/${other}/index.ts` ? undefined : `reaches into ${reached}`
    })
    expect(sideDoors).toEqual([])
  })

  it('keeps the root files out of every room', () => {
    const inward = violations(({ room }, reached) =>
      room !== '(root)' && room !== 'cli' && /^src\/[^/]+\.ts$/.test(reached) ? `imports ${reached}` : undefined,
    )
    expect(inward).toEqual([])
  })

  it.each(Object.entries(OWNERS))('lets %s be imported by its owners alone', (name, owners) => {
    const strangers = violations(({ room }, reached) => {
      const isHit = name === 'gen' ? reached.startsWith('gen/') : reached === name || reached.startsWith(`${name}/`)
      return isHit && !owners.includes(room) ? `imports ${name}` : undefined
    })
    expect(strangers).toEqual([])
  })

  it('re-exports by name, never by star', () => {
    expect(sources.filter(({ text }) => /^export \*/m.test(text)).map(({ path }) => path)).toEqual([])
  })

  it('opens every room with a docstring in its index', () => {
    const indexes = sources.filter(({ path }) => /^src\/[^/]+\/index\.ts$/.test(path))
    expect(indexes.filter(({ text }) => !text.startsWith('/**')).map(({ path }) => path)).toEqual([])
  })

  it('reads JSON that others wrote by parseJson alone, which keeps numbers and bounds the depth', () => {
    const readers = sources.filter(({ text }) => text.includes('JSON.parse(')).map(({ path }) => path)
    expect(readers.sort()).toEqual(PLAIN_JSON_READERS)
  })

  it('reads text of a third party by its charset, and never in part', () => {
    const decoders = sources.filter(({ text }) => text.includes('new TextDecoder(')).map(({ path }) => path)
    expect(decoders.sort()).toEqual(['src/formats/response/charset.ts', 'src/formats/response/response.ts'])
  })

  it('writes properties one by one, never as a spread literal that fills a line', () => {
    expect(sources.filter(({ text }) => /\.\.\.\{/.test(text)).map(({ path }) => path)).toEqual([])
  })

  it(`keeps every file within ${LINES_MAX} lines`, () => {
    const long = sources.filter(({ text }) => text.split('\n').length > LINES_MAX + 1).map(({ path }) => path)
    expect(long).toEqual([])
  })
})
