import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { outcomeOf } from './measure.ts'
import { COVERED_OTHERWISE, READERS } from './registry.ts'

const ROOT = join(import.meta.dirname, '../../..')
const CORPUS = join(ROOT, 'test/lab/fuzz/corpus')
const ATTACK_LENGTH = 4_096

/** Names that readers have: a new function of such a name needs a row that says how it is attacked. */
const READER_NAME =
  /^export (?:async )?function\*? ((?:tryParse|parse|decode|lex|scan|unwrap|read|check|guess|bound)[A-Z]\w*|find\w*(?:Problems?|Violations?|Breaches|Fields|Link))\(/gm

/** Modules that read untrusted input. The database module reads its own rows and page tokens. */
const FILES = [
  ...globSync(
    'src/{cli/daemon,engine,foundation/{base,egress,json,redaction,secrets},platform/{accounts,outbox},server/api,sync/{jobs,schedules},tools,webhooks}/**/*.ts',
    {
      cwd: ROOT,
      // They read pages of our own rows.
      exclude: ['src/webhooks/outbound/sql/recover.ts'],
    },
  ),
  'src/foundation/database/keyset-pages.ts',
]

const exported = FILES.flatMap((path) =>
  [...readFileSync(join(ROOT, path), 'utf8').matchAll(READER_NAME)].map(([, name]) => `${path.slice(4)}#${name}`),
)
const covered = new Set([...READERS.flatMap(({ covers }) => covers), ...Object.keys(COVERED_OTHERWISE)])

describe('the registry of readers', () => {
  it('has a row, or a reason for none, for every exported reader', () => {
    expect(exported.filter((reader) => !covered.has(reader))).toEqual([])
  })

  it('names only what exists', () => {
    const exists = (reader: string) => {
      const [path = '', name = ''] = reader.split('#')
      return FILES.includes(`src/${path}`) && readFileSync(join(ROOT, 'src', path), 'utf8').includes(`${name}`)
    }
    expect([...covered].filter((reader) => !exists(reader))).toEqual([])
  })
})

describe.each(READERS)('$name', (reader) => {
  it('reads or rejects its seeds and its attacks', async () => {
    const attacks = Object.values(reader.attacks).map((make) => make(Math.min(reader.lengthMax, ATTACK_LENGTH)))
    for (const input of [...reader.seeds, ...attacks])
      expect(await outcomeOf(reader, input), input.slice(0, 200)).not.toMatchObject({ kind: 'defect' })
  })
})

it('reads or rejects every input that the fuzzer has found', async () => {
  for (const file of globSync('*.json', { cwd: CORPUS })) {
    const { reader: name, input } = JSON.parse(readFileSync(join(CORPUS, file), 'utf8')) as Record<string, string>
    const reader = READERS.find((each) => each.name === name)
    if (reader === undefined || input === undefined) throw new Error(`${file}: there is no reader ${name}`)
    const outcome = await outcomeOf(reader, input)
    expect(outcome, file).not.toMatchObject({ kind: 'defect' })
    if (outcome.kind === 'read') expect(reader.isFaithful?.(input, outcome.result), file).not.toBe(false)
  }
})
