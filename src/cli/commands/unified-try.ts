import { styleText } from 'node:util'
import { SHIPPED_NAMES } from '../../engine/catalog/index.ts'
import { createEvaluator, type Evaluator } from '../../engine/expressions/index.ts'
import { compileMapping, type TriedMapping, tryFixture } from '../../engine/unified/index.ts'
import { Failure, suggest, suggestOneOf, systemClock } from '../../foundation/base/index.ts'
import { isJsonObject } from '../../foundation/json/index.ts'
import { checkMappingDocument } from '../../platform/unified-config/index.ts'
import { type RunCommand, UsageError } from './command.ts'
import { FileError } from './definition-file.ts'
import { type MappingFile, type NamedFixture, readFixtureFile, readMappingFile } from './mapping-file.ts'
import { printJson, printLines, printStyledLines } from './output.ts'
import { type ApplyTone, TONE_STYLES } from './run-format.ts'
import { formatFindings } from './unified-check.ts'
import { isAsRecorded, renderTriedCase, triedCaseToJson } from './unified-try-format.ts'

/** Lines are as wide as the terminal, up to this many characters; in a pipe they are not cut. */
const COLUMNS_MAX = 160
const COLUMNS_PIPED = 1_000

/** Runs the cases of a fixture file through a mapping, without a server. Exits with 1 when one does not run as it is recorded. */
export const runUnifiedTry: RunCommand = async ({ operands: [argument = ''], options, flags }) => {
  const { fixture, case: only } = options
  if (fixture === undefined) throw new UsageError('unified try needs --fixture <FILE>')
  const file = readMappingFile(argument, options)
  const findings = checkMappingDocument(file.mapping, file.definition)
  if (findings.some(({ severity }) => severity === 'error')) {
    if (flags.has('json')) printJson({ [argument]: findings })
    else printLines(formatFindings(argument, findings))
    return 1
  }
  const cases = casesOf(file, fixture, only)
  await using evaluator = createEvaluator()
  const shown: ReturnType<typeof triedCaseToJson>[] = []
  let isGood = true
  for (const each of cases) {
    const tried = await tryCase(evaluator, file, each)
    isGood &&= isAsRecorded(tried)
    if (flags.has('json')) shown.push(triedCaseToJson(each, tried))
    else printStyledLines([...renderTriedCase(titleOf(file, each), tried, columns(), applyTone), ''])
  }
  if (flags.has('json')) printJson(shown)
  return isGood ? 0 : 1
}

/** The cases of a fixture file, without those of resources that the mapping does not have unless they are asked for. */
function casesOf({ mapping }: MappingFile, fixture: string, only: string | undefined): readonly NamedFixture[] {
  const cases = readFixtureFile(fixture, only)
  if (only !== undefined) return cases
  const { resources } = mapping.document
  const mapped = cases.filter(({ resource }) => isJsonObject(resources) && Object.hasOwn(resources, resource))
  if (mapped.length === 0) throw new FileError(`${fixture} has no case of a resource of the mapping`)
  return mapped
}

async function tryCase(
  evaluator: Evaluator,
  { mapping, integration, definition }: MappingFile,
  { resource, fixture }: NamedFixture,
): Promise<TriedMapping> {
  if (definition === undefined)
    throw new FileError(
      `there is no shipped definition ${integration}, whose file --definition would give${suggest(integration, SHIPPED_NAMES)}`,
    )
  const node = mapping.model.resources.get(resource)
  const merged = mapping.resources.get(resource)?.get(fixture.method)
  if (node === undefined || merged === undefined) {
    const known = mapping.resources.get(resource)?.keys() ?? []
    const message = `the mapping has no method ${fixture.method} of ${mapping.model.name}/${resource}${suggestOneOf(fixture.method, known)}`
    const failure = new Failure('UNIFIED_NOT_MAPPED', message)
    return { exchanges: [], outcome: undefined, failure, traces: undefined, unused: fixture.exchanges.length }
  }
  const plan = compileMapping(merged, node, fixture.method, mapping.references)
  return await tryFixture({ evaluator, clock: systemClock }, plan, definition, fixture)
}

function titleOf({ mapping, integration }: MappingFile, { resource, name, fixture }: NamedFixture): string {
  return `${mapping.model.name}/${resource} ${fixture.method} of ${integration}: ${name}`
}

function columns(): number {
  return process.stdout.isTTY ? Math.min(process.stdout.columns || 80, COLUMNS_MAX) : COLUMNS_PIPED
}

const applyTone: ApplyTone = (tone, text) =>
  process.stdout.isTTY && tone !== 'plain' ? styleText(TONE_STYLES[tone], text, { stream: process.stdout }) : text
