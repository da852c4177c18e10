/**
 * The command line: `patchbay <command>`. Each command is one file; nothing here does work of its own.
 */
import { Failure } from '../base/index.ts'
import { ServerAway } from '../client/index.ts'
import { ConfigError } from '../config.ts'
import { catalogCommand } from './catalog.ts'
import { checkCommand } from './check.ts'
import type { Command } from './command.ts'
import { daemonCommand } from './daemon.ts'
import { FileError } from './definition-file.ts'
import { installCommand } from './install.ts'
import { migrateCommand } from './migrate.ts'
import { runSyncCommand } from './run.ts'
import { serveCommand } from './serve.ts'
import { startCommand } from './start.ts'
import { tokenCommand } from './token.ts'
import { UsageError } from './usage-error.ts'
import { workerCommand } from './worker.ts'

const COMMANDS: readonly Command[] = [
  startCommand,
  serveCommand,
  workerCommand,
  daemonCommand,
  migrateCommand,
  tokenCommand,
  catalogCommand,
  checkCommand,
  installCommand,
  runSyncCommand,
]

/**
 * Runs one command to its end.
 *
 * @param args what stands behind `patchbay`
 * @returns the exit code: 0 done, 1 failed, 2 wrong usage
 */
export async function runCommand(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  const [name, ...rest] = args
  const command = COMMANDS.find((each) => each.name === name)
  if (command === undefined) return usage(name)
  try {
    return await command.run(rest, environment)
  } catch (error) {
    process.stderr.write(`patchbay: ${explain(error)}\n`)
    return error instanceof UsageError ? 2 : 1
  }
}

/** The user's mistakes and refusals in one line; everything else with its stack, for a report. */
function explain(error: unknown): string {
  if (error instanceof UsageError) return `usage: patchbay ${error.message}`
  if (error instanceof Failure) return explainFailure(error)
  if (error instanceof ServerAway) return `the server is away: ${error.message}`
  if (error instanceof ConfigError || error instanceof FileError) return error.message
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

function explainFailure({ publicMessage, violations }: Failure): string {
  if (violations.length < 2) return publicMessage
  return [publicMessage, ...violations.map(({ field, description }) => `  ${field} ${description}`)].join('\n')
}

function usage(name: string | undefined): number {
  const wanted = name === undefined || name === 'help' || name === '--help' || name === '-h'
  const lines = COMMANDS.map((command) => `  patchbay ${command.usage.padEnd(54)} ${command.summary}`)
  const text = [
    'Usage:',
    ...lines,
    '',
    'Configuration is read from environment variables; the README lists them.',
    '',
  ].join('\n')
  ;(wanted ? process.stdout : process.stderr).write(wanted ? text : `patchbay: no command ${name}\n\n${text}`)
  return wanted && name !== undefined ? 0 : 2
}
