import { formatDotPath, formatQuantity, type JsonObject, type Violation } from '../base/index.ts'
import { checkConfig, checkOverride, compilePlan, findWarnings, listTools, secretPaths } from '../definitions/index.ts'
import type { RunCommand } from './command.ts'
import { findInvalidName, readDefinition, readJsonFile } from './definition-file.ts'

/** Checks definitions without a server or a database, for editors and builds. Exits with 1 when there is a finding. */
export const runCheck: RunCommand = async ({ operands: files, options: { override: overrideFile } }) => {
  const override = overrideFile === undefined ? undefined : readJsonFile(overrideFile)
  const counts = files.map((file) => checkDefinition(file, overrideFile ?? file, override))
  return counts.some((count) => count > 0) ? 1 : 0
}

/** Prints the findings of one definition, or of an override over it. @returns how many there are */
function checkDefinition(file: string, blamed: string, override: JsonObject | undefined): number {
  const { name, hasName, config } = readDefinition(file)
  const findings = override === undefined ? findProblems(config) : checkOverride(config, override, '')
  if (hasName) findings.unshift(...findInvalidName(name))
  for (const { field, description, rule } of findings)
    process.stdout.write(`${blamed}: ${field} ${description} [${rule}]\n`)
  const warnings = override === undefined ? findWarnings(config, '') : []
  for (const { field, description, rule } of warnings)
    process.stdout.write(`${blamed}: warning: ${field} ${description} [${rule}]\n`)
  if (findings.length === 0) process.stdout.write(`${blamed}: ${summarize(config)}\n`)
  return findings.length
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

function summarize(config: JsonObject): string {
  const { resources } = compilePlan(config)
  const methods = [...resources.values()].reduce((sum, each) => sum + each.size, 0)
  const tools = listTools(config, { methods: [], tags: [] }).length
  const offered = tools === methods ? '' : `; tools are those with a description: ${tools}`
  return `no findings, ${formatQuantity(resources.size, 'resource')} with ${formatQuantity(methods, 'method')}${offered}`
}
