import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { getOption } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { Access, access, cost, scope } from '../gen/patchbay/v1/access_pb.ts'
import { COMMANDS } from '../src/cli/commands/commands.ts'
import { findShippedDefinition, labelOf, SHIPPED_NAMES } from '../src/engine/catalog/index.ts'
import { listPlaceholderPaths } from '../src/engine/expressions/index.ts'
import { listCredentials } from '../src/engine/formats/index.ts'
import { METRICS } from '../src/foundation/telemetry/metric-table.ts'
import { TOKEN_PRESETS } from '../src/platform/tenancy/index.ts'
import { grantedScopes, SCOPES, storedScopes } from '../src/platform/tenancy/scopes.ts'
import { SETTINGS } from '../src/server/config/index.ts'
import { MODEL_FIELDS } from './lab/schemas/model-fields.ts'
import { documentedFiles } from './support/documented-names.ts'
import { GUIDES, stepsOf } from './support/documented-steps.ts'
import { expectGenerated } from './support/generated-page.ts'
import { readJourneys } from './support/journeys.ts'
import { markdownTable } from './support/markdown.ts'
import { SERVICES } from './support/operations.ts'
import { coverageDocument } from './unit/engine/unified/coverage.ts'
import { EVENT_CAUSES } from './unit/platform/outbox/causes.ts'

const ROOT = join(import.meta.dirname, '..')
const README = join(ROOT, 'README.md')
const README_LINES_MAX = 250
const OPERATIONS = 'guides/operate.md'

/** The settings as the guide for operations shows them. */
function settingsTable(): string {
  const rows = Object.values(SETTINGS).map(({ variable, defaultText = '', description }) => {
    const shown = defaultText === '' ? '–' : `\`${defaultText}\``
    return `| \`${variable}\` | ${shown} | ${description} |`
  })
  return ['| variable | default | meaning |', '| --- | --- | --- |', ...rows].join('\n')
}

/** The commands as the guide for operations shows them. */
function commandsTable(): string {
  const rows = COMMANDS.map(({ name, operands = {}, summary }) => {
    const words = [name, ...Object.keys(operands)].join(' ').replaceAll('|', '\\|')
    return `| \`patchbay ${words}\` | ${summary} |`
  })
  return ['| command | what it does |', '| --- | --- |', ...rows, ''].join('\n')
}

const METRICS_README = 'src/foundation/README.md'

/** The metrics as their README shows them. */
function metricsTable(): string {
  const rows = Object.values(METRICS).map(({ name, type, labels, help }) => {
    const shown = labels.length === 0 ? '–' : labels.map((label) => `\`${label}\``).join(', ')
    return `| \`${name}\` | ${type} | ${shown} | ${help} |`
  })
  return ['| name | type | labels | meaning |', '| --- | --- | --- | --- |', ...rows].join('\n')
}

const CONTRACT_README = 'proto/README.md'
const ACCESS_COLUMNS = [Access.TEAM, Access.ENVIRONMENT, Access.ENVIRONMENT_OR_LINK, Access.TOKEN, Access.PUBLIC]

/** Which RPCs each kind of caller may call, as the contract's README shows it. */
function accessTable(): string {
  const rows = SERVICES.map(({ name, methods }) => {
    const cells = ACCESS_COLUMNS.map((rule) => {
      const allowed = methods.filter((method) => getOption(method, access) === rule)
      if (allowed.length === methods.length) return 'all'
      return allowed.length === 0 ? '–' : allowed.map((method) => method.name).join(', ')
    })
    return `| \`${name}\` | ${cells.join(' | ')} |`
  })
  const head = [
    '| service | team token | environment token or header | or link token | either kind of token | no token |',
  ]
  return [...head, '| --- | --- | --- | --- | --- | --- |', ...rows].join('\n')
}

/** What each scope allows and which presets have it. */
function scopesTable(): string {
  const methods = SERVICES.flatMap((service) => service.methods)
  const rows = SCOPES.map((name) => {
    const allowed = methods.filter((method) => getOption(method, scope) === name).map((method) => method.name)
    const also = name === 'proxy:write' ? ['calls that change something at the third party'] : []
    const presets = TOKEN_PRESETS.filter((preset) => {
      const granted = grantedScopes(storedScopes({ preset }).scopes)
      return granted === undefined || granted.has(name)
    })
    return `| \`${name}\` | ${presets.join(', ')} | ${[...allowed, ...also].join(', ')} |`
  })
  return ['| scope | in the presets | allows |', '| --- | --- | --- |', ...rows, ''].join('\n')
}

/** What RPCs cost that take more than one unit, the most expensive first. */
function costTable(): string {
  const expensive = SERVICES.flatMap(({ methods }) => methods).filter((method) => getOption(method, cost) > 1)
  const byCost = Map.groupBy(expensive, (method) => getOption(method, cost))
  const rows = [...byCost]
    .sort(([one], [other]) => other - one)
    .map(([units, methods]) => `| ${units} | ${methods.map(({ name }) => name).join(', ')} |`)
  return [
    '| units | RPCs |',
    '| --- | --- |',
    ...rows,
    '| 1 | all others, and `/proxy`, `/custom`, `/unified`, `/mcp` |',
    '',
  ].join('\n')
}

const CATALOG_README = 'src/engine/README.md'

/** The shipped definitions with the formats of their accounts, the variables that they read and the ends of what they call. */
function definitionsTable(): string {
  const rows = SHIPPED_NAMES.map((name) => {
    const definition = findShippedDefinition(name)
    if (definition === undefined) throw new Error(`no shipped definition ${name}`)
    const { config, category } = definition
    const formats = listCredentials(config.credentials).map(({ format }) => format)
    const variables = listPlaceholderPaths(config).flatMap(({ root, steps: [variable] }) =>
      root === 'env' || root === 'environment_variables' ? [`\`${variable}\``] : [],
    )
    const ends = (config.api_versions ?? []) as unknown as readonly { version: string; ends_at?: string }[]
    const cells = [
      `\`${name}\``,
      labelOf(definition),
      category,
      formats.join(', '),
      [...new Set(variables)].join(', '),
      ends.flatMap(({ version, ends_at }) => (ends_at === undefined ? [] : [`${version}: ${ends_at}`])).join(', '),
    ]
    return `| ${cells.join(' | ')} |`
  })
  return [
    '| name | API | category | accounts connect by | variables | version ends |',
    '| --- | --- | --- | --- | --- | --- |',
    ...rows,
    '',
  ].join('\n')
}

const EVENTS_README = 'src/platform/README.md'

/** Every event with what causes it, and where. */
function causesTable(): string {
  const rows = Object.entries(EVENT_CAUSES).flatMap(([type, causes]) => {
    if (causes.length === 0) return [[`\`${type}\``, 'nothing yet', '–']]
    return causes.map(({ cause, file, function: name }, index) => [
      index === 0 ? `\`${type}\`` : '',
      cause,
      `\`${file}\` \`${name}\``,
    ])
  })
  return markdownTable(['event', 'is recorded when', 'in `src/`'], rows)
}

describe('the README of the events', () => {
  it('lists every cause of every event (npm run docs writes the table anew)', () => {
    expectGenerated(EVENTS_README, causesTable(), 'causes')
  })

  it.each(Object.entries(EVENT_CAUSES))('names the places that record %s', (_, causes) => {
    for (const { file, function: name } of causes) {
      const source = readFileSync(join(ROOT, 'src', file), 'utf8')
      expect(source, `${file} has no ${name}`).toMatch(new RegExp(`\\b${name}\\(`))
    }
  })
})

describe('the README of the catalog', () => {
  it('lists every shipped definition (npm run docs writes the table anew)', () => {
    expectGenerated(CATALOG_README, definitionsTable(), 'definitions')
  })
})

const COVERAGE = 'src/engine/reference/unified-coverage.md'

describe('the tables of the unified models', () => {
  it('show what the shipped mappings cover (npm run docs writes them anew)', () => {
    const [, fields = ''] = /(<!-- fields -->[\s\S]*)/.exec(readFileSync(join(ROOT, COVERAGE), 'utf8')) ?? []
    expectGenerated(COVERAGE, `${coverageDocument().trimEnd()}\n\n${fields}`)
  })

  it('compare every field of the models with other schemas (npm run test:schemas writes them anew)', () => {
    const text = readFileSync(join(ROOT, COVERAGE), 'utf8')
    const rows = [...text.matchAll(/^\| (\S+) \| (\S+) \| .* \|.*\|$/gm)].map(([, owner, field]) => `${owner}.${field}`)
    expect(MODEL_FIELDS.map(({ owner, field }) => `${owner}.${field}`).filter((name) => !rows.includes(name))).toEqual(
      [],
    )
  })
})

describe('the README of the contract', () => {
  it('lists who may call each RPC and what it costs, as its options say (npm run docs writes the tables anew)', () => {
    expectGenerated(CONTRACT_README, accessTable(), 'access')
    expectGenerated(CONTRACT_README, scopesTable(), 'scopes')
    expectGenerated(CONTRACT_README, costTable(), 'cost')
  })
})

describe('the README of the metrics', () => {
  it('lists every metric as the code exposes it (npm run docs writes the table anew)', () => {
    expectGenerated(METRICS_README, metricsTable(), 'metrics')
  })
})

describe('the guide for operations', () => {
  it('lists every setting as the code reads it (npm run docs writes the table anew)', () => {
    expectGenerated(OPERATIONS, settingsTable(), 'settings')
  })

  it('lists every command as it is parsed (npm run docs writes the table anew)', () => {
    expectGenerated(OPERATIONS, commandsTable(), 'commands')
  })
})

describe('the README', () => {
  it(`is read in one sitting: at most ${README_LINES_MAX} lines`, () => {
    expect(readFileSync(README, 'utf8').trimEnd().split('\n').length).toBeLessThanOrEqual(README_LINES_MAX)
  })

  it('names every guide', () => {
    const text = readFileSync(README, 'utf8')
    expect(GUIDES.filter((page) => page !== 'README.md' && !text.includes(`](${page})`))).toEqual([])
  })
})

describe('steps and links of the documents', () => {
  const pages = globSync('{*.md,{clients,guides,proto,src,test}/**/*.md}', { cwd: ROOT }).filter(
    (page) => !page.includes('node_modules'),
  )

  it('stand only where a test runs them', () => {
    expect(pages.filter((page) => !GUIDES.includes(page) && stepsOf(page).length > 0)).toEqual([])
  })

  it.each(pages)('%s links to files and headings that exist', (page) => {
    const text = readFileSync(join(ROOT, page), 'utf8').replaceAll(/^```[\s\S]*?^```/gm, '')
    const links = [...text.matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)]
    const broken = links.filter(([, path = '', heading]) => {
      const target = path === '' ? join(ROOT, page) : join(ROOT, dirname(page), path)
      return !existsSync(target) || (heading !== undefined && !anchorsOf(target).includes(heading))
    })
    expect(broken.map(([link]) => link)).toEqual([])
  })
})

/** The anchors of the headings of a page, as GitHub derives them. */
function anchorsOf(file: string): readonly string[] {
  return [...readFileSync(file, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )
}

describe('the README of the sources', () => {
  const journeys = readJourneys(ROOT)

  it('lists the journeys of a request, a tick and an account', () => {
    expect(journeys.length).toBeGreaterThanOrEqual(3)
    for (const { title, steps } of journeys) expect(steps.length, title).toBeGreaterThan(5)
  })

  it.each(journeys)('names functions of "$title" that exist where it says', ({ steps }) => {
    const missing = steps.flatMap(({ file, functions }) => {
      const text = readFileSync(join(ROOT, 'src', file), 'utf8')
      return functions.filter((name) => !declares(text, name)).map((name) => `${file}: ${name}`)
    })
    expect(missing).toEqual([])
  })

  it('names only files and folders that exist', () => {
    const text = readFileSync(join(ROOT, 'src/README.md'), 'utf8')
    const paths = [...text.matchAll(/`([a-z][\w-]*\/[\w./-]*)`/g)].map(([, path = '']) => path)
    expect(paths.filter((path) => !['src', '.'].some((top) => existsSync(join(ROOT, top, path))))).toEqual([])
  })
})

describe('the pages of the sources', () => {
  it.each(globSync('src/{,*/,*/*/}*.md', { cwd: ROOT }))(
    '%s names files that exist, with what they declare',
    (page) => {
      const missing = documentedFiles(ROOT, page).flatMap(({ path, file, names }) => {
        if (file === undefined) return [path]
        const text = readFileSync(join(ROOT, file), 'utf8')
        return names.filter((name) => !declares(text, name)).map((name) => `${path}: ${name}`)
      })
      expect(missing).toEqual([])
    },
  )
})

/** Whether a file declares a function, class, type, constant or member of that name. */
function declares(text: string, name: string): boolean {
  const word = name.replace('#', '')
  return new RegExp(
    `(?:function\\*?|const|class|interface|type|get) #?${word}\\b|^ +(?:readonly |static |async |protected |override |\\*)*#?${word}(?:[(<]|\\??: )`,
    'm',
  ).test(text)
}
