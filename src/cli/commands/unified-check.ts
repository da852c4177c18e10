import { createEvaluator } from '../../engine/expressions/index.ts'
import {
  checkFixtures,
  compileMapping,
  type MappingFinding,
  type TriedMapping,
  tryFixture,
} from '../../engine/unified/index.ts'
import { systemClock } from '../../foundation/base/index.ts'
import { checkMappingDocument, locate } from '../../platform/unified-config/index.ts'
import type { RunCommand } from './command.ts'
import { type MappingFile, type NamedFixture, readFixtureFile, readMappingFile } from './mapping-file.ts'
import { printJson, printLines } from './output.ts'
import { pluralize } from './run-format.ts'

/** Checks mappings without a server or a database. Exits with 1 when a finding is an error. */
export const runUnifiedCheck: RunCommand = async ({ operands: files, options, flags }) => {
  let hasErrors = false
  const all: Record<string, readonly MappingFinding[]> = {}
  for (const file of files) {
    const findings = await findAll(readMappingFile(file, options), options.fixture)
    hasErrors ||= findings.some(({ severity }) => severity === 'error')
    all[file] = findings
    if (!flags.has('json')) printLines(formatFindings(file, findings))
  }
  if (flags.has('json')) printJson(all)
  return hasErrors ? 1 : 0
}

/** Findings of the file, and when it has no errors, of its fixtures. */
async function findAll(file: MappingFile, fixtureFile: string | undefined): Promise<readonly MappingFinding[]> {
  const findings = checkMappingDocument(file.mapping, file.definition)
  if (fixtureFile === undefined || findings.some(({ severity }) => severity === 'error')) return findings
  return [...findings, ...(await findInFixtures(file, readFixtureFile(fixtureFile, undefined)))]
}

async function findInFixtures(
  { mapping, definition }: MappingFile,
  cases: readonly NamedFixture[],
): Promise<readonly MappingFinding[]> {
  if (definition === undefined) return []
  const findings: MappingFinding[] = []
  await using evaluator = createEvaluator()
  for (const [resource, methods] of mapping.resources)
    for (const [method, merged] of methods) {
      const node = mapping.model.resources.get(resource)
      const own = cases.filter((each) => each.resource === resource && each.fixture.method === method)
      if (node === undefined || own.length === 0) continue
      const plan = compileMapping(merged, node, method, mapping.references)
      const tried: TriedMapping[] = []
      for (const { fixture } of own)
        tried.push(await tryFixture({ evaluator, clock: systemClock }, plan, definition, fixture))
      const found = checkFixtures({ merged, tried })
      findings.push(...found.map((finding) => locate(mapping.document, resource, method, finding)))
    }
  return findings
}

/** Findings as lines, with their counts at the end. */
export function formatFindings(file: string, findings: readonly MappingFinding[]): readonly string[] {
  const lines = findings.map(
    ({ path, rule, severity, message }) => `${file}: ${severity}: ${path} ${message} [${rule}]`,
  )
  const counts = (['error', 'warning', 'hint'] as const)
    .map((severity) => [severity, findings.filter((each) => each.severity === severity).length] as const)
    .filter(([, count]) => count > 0)
    .map(([severity, count]) => pluralize(count, severity))
  return [...lines, `${file}: ${counts.length === 0 ? 'no findings' : counts.join(', ')}`]
}
