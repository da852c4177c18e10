/**
 * `npm run test:schemas`: every field of the shipped unified models exists in at least two public schemas of other unified
 * APIs, or its exception is argued. The schemas are types of their published clients, a package of its own that the first
 * run installs. The result is a chapter of `src/engine/reference/unified-coverage.md`; `WRITE_DOCS=1` writes it.
 */

import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MODEL_FIELDS } from './model-fields.ts'
import { readTypes } from './read-types.ts'

interface Correspondence {
  /** Packages and their files with types, by the name of the schema. */
  readonly schemas: Readonly<Record<string, { readonly package: string; readonly files: string }>>
  /** Addresses of schemas that no package has. */
  readonly read_by_hand: Readonly<Record<string, string>>
  /** Types that describe the same, and properties whose name is not that of the field. */
  readonly resources: Readonly<
    Record<
      string,
      {
        readonly types: Readonly<Record<string, readonly string[]>>
        readonly fields: Readonly<Record<string, Readonly<Record<string, string>>>>
      }
    >
  >
  /** Fields that fewer than two have, with the reason why they are there. */
  readonly exceptions: Readonly<Record<string, string>>
}

type Types = ReadonlyMap<string, ReadonlySet<string>>

const SCHEMAS_MIN = 2
const TABLE = join(import.meta.dirname, '../../../src/engine/reference/unified-coverage.md')
const PART = /(<!-- fields -->\n)[\s\S]*?(<!-- \/fields -->)/
const correspondence = JSON.parse(
  readFileSync(join(import.meta.dirname, 'correspondence.json'), 'utf8'),
) as Correspondence
const problems: string[] = []

installPackages()
const types = new Map(
  Object.entries(correspondence.schemas).map(([name, { package: from, files }]) => [name, readTypes(from, files)]),
)
const names = [...types.keys(), ...Object.keys(correspondence.read_by_hand)]
const table = writeTable()
const page = readFileSync(TABLE, 'utf8')
const freshPage = page.replace(PART, (_, open, close) => `${open}${table}${close}`)
if (process.env.WRITE_DOCS === '1') writeFileSync(TABLE, freshPage)
else if (page !== freshPage) problems.push(`${TABLE} is stale: WRITE_DOCS=1 npm run test:schemas`)
for (const problem of problems) console.error(problem)
console.log(
  JSON.stringify({ name: 'unified-fields', value: MODEL_FIELDS.length, unit: 'fields', ok: problems.length === 0 }),
)
if (problems.length > 0) process.exitCode = 1

function installPackages(): void {
  if (existsSync(join(import.meta.dirname, 'node_modules'))) return
  const { status } = spawnSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: import.meta.dirname,
    stdio: 'inherit',
  })
  if (status !== 0) throw new Error('npm ci failed')
}

function writeTable(): string {
  const rows = MODEL_FIELDS.map(({ owner, field }) => {
    const found = names.map((name) => findProperty(name, owner, field))
    const count = found.filter((property) => property !== undefined).length
    const reason = correspondence.exceptions[`${owner}.${field}`]
    if (count < SCHEMAS_MIN && reason === undefined) problems.push(`${owner}.${field} is in ${count} schemas`)
    if (count >= SCHEMAS_MIN && reason !== undefined) problems.push(`${owner}.${field} needs no exception`)
    return `| ${owner} | ${field} | ${found.map((property) => property ?? '').join(' | ')} |`
  })
  const exceptions = Object.entries(correspondence.exceptions)
  return [
    '## Fields beside other public schemas',
    '',
    `Written by \`npm run test:schemas\`. Of ${MODEL_FIELDS.length} fields, ${MODEL_FIELDS.length - exceptions.length} exist in at least two of these`,
    'schemas, which are the types of published clients; the others are argued below. A cell names type and property.',
    '',
    `| resource or shared type | field | ${names.join(' | ')} |`,
    `| --- | --- | ${names.map(() => '---').join(' | ')} |`,
    ...rows,
    '',
    '### Exceptions',
    '',
    '| field | why it is there |',
    '| --- | --- |',
    ...exceptions.map(([field, reason]) => `| ${field} | ${reason} |`),
    '',
    '### Schemas',
    '',
    '| name | read from |',
    '| --- | --- |',
    ...Object.entries(correspondence.schemas).map(
      ([name, { package: from }]) => `| ${name} | \`${from}\` ${versionOf(from)} |`,
    ),
    ...Object.entries(correspondence.read_by_hand).map(([name, address]) => `| ${name} | ${address}, by hand |`),
    '',
  ].join('\n')
}

/** The property of a schema that says what a field says: the named one, which must exist, else one of the same name. */
function findProperty(schema: string, owner: string, field: string): string | undefined {
  const { types: typeNames = {}, fields = {} } = correspondence.resources[owner] ?? {}
  const named = fields[field]?.[schema]
  const declared = types.get(schema)
  if (declared === undefined) return named
  const candidates = typeNames[schema] ?? []
  for (const name of named === undefined ? [field, camelCase(field)] : [named]) {
    const [type, property = ''] = name.includes('.') ? name.split('.') : [undefined, name]
    const found = (type === undefined ? candidates : [type]).find((candidate) =>
      propertiesOf(declared, candidate).has(property),
    )
    if (found !== undefined) return `${found.split('/').at(-1)}.${property}`
  }
  if (named !== undefined) problems.push(`${schema} has no ${named} for ${owner}.${field}`)
  return undefined
}

const NONE: ReadonlySet<string> = new Set()

/** @param type `<Type>`, or `<category>/<Type>` */
function propertiesOf(declared: Types, type: string): ReadonlySet<string> {
  return declared.get(type) ?? NONE
}

function camelCase(name: string): string {
  return name.replace(/_(.)/g, (_match, letter: string) => letter.toUpperCase())
}

function versionOf(name: string): string {
  const file = join(import.meta.dirname, 'package.json')
  const { dependencies } = JSON.parse(readFileSync(file, 'utf8')) as {
    readonly dependencies: Readonly<Record<string, string>>
  }
  return dependencies[name] ?? ''
}
