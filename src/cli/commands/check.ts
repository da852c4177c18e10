import {
  checkConfig,
  checkOverride,
  compilePlan,
  findOverrideWarnings,
  findWarnings,
  listTools,
  secretPaths,
} from '../../engine/definitions/index.ts'
import { formatQuantity, systemClock, type Violation } from '../../foundation/base/index.ts'
import { formatDotPath, type JsonObject } from '../../foundation/json/index.ts'
import type { RunCommand } from './command.ts'
import { FileError, findInvalidName, readDefinition, readJsonFile } from './definition-file.ts'
import { printLine } from './output.ts'

/**
 * Checks definitions without a server or a database, for editors and builds: every one that is named, also when another cannot be
 * read. Exits with 1 when there is a finding, or a file that is no definition.
 */
export const runCheck: RunCommand = async ({ operands: files, options: { override: overrideFile } }) => {
  const override = overrideFile === undefined ? undefined : readJsonFile(overrideFile)
  const counts = files.map((file) => {
    try {
      return checkDefinition(file, overrideFile ?? file, override)
    } catch (error) {
      if (!(error instanceof FileError)) throw error
      printLine(error.message)
      return 1
    }
  })
  return counts.some((count) => count > 0) ? 1 : 0
}

/** Prints the findings of one definition, or of an override over it. @returns how many there are, without warnings */
function checkDefinition(file: string, blamed: string, override: JsonObject | undefined): number {
  const { name, hasName, config } = readDefinition(file)
  const findings = override === undefined ? findProblems(config) : checkOverride(config, override, '')
  if (hasName) findings.unshift(...findInvalidName(name))
  for (const finding of findings) printLine(`${blamed}: ${textOf(finding)}`)
  const now = systemClock.now()
  const warnings =
    override === undefined ? findWarnings(config, '', now) : findOverrideWarnings(config, override, '', now)
  for (const warning of warnings) printLine(`${blamed}: warning: ${textOf(warning)}`)
  if (findings.length === 0) printLine(`${blamed}: ${summarize(config, warnings.length)}`)
  return findings.length
}

function textOf({ field, description, rule }: Violation): string {
  return `${field} ${description} [${rule}]`
}

/** Literal secrets are findings here only: a stored definition encrypts them, a file does not. */
function findProblems(config: JsonObject): Violation[] {
  const secrets = secretPaths(config).map((path) => ({
    field: formatDotPath(path),
    description: 'is a secret in a file: write {{environment_variables.<KEY>}} and set it in the override',
    rule: 'secret.literal',
  }))
  return [...checkConfig(config, 'integration', ''), ...secrets]
}

function summarize(config: JsonObject, warnings: number): string {
  const { resources } = compilePlan(config)
  const methods = [...resources.values()].reduce((sum, each) => sum + each.size, 0)
  const tools = listTools(config, { methods: [], tags: [] }).length
  const offered = tools === methods ? '' : `; tools are those with a description: ${tools}`
  const found = warnings === 0 ? 'no findings' : `valid, with ${formatQuantity(warnings, 'warning')}`
  return `${found}, ${formatQuantity(resources.size, 'resource')} with ${formatQuantity(methods, 'method')}${offered}`
}
