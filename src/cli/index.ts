/**
 * The command line: `patchbay <command>`. Each command is one file; nothing here does work of its own.
 */
import { Failure } from '../base/index.ts'
import { ServerAway } from '../client/index.ts'
import { ConfigError } from '../config.ts'
import type { Command } from './command.ts'
import { FileError } from './definition-file.ts'
import { UsageError } from './usage-error.ts'

/** By name; only the one that is called is loaded, with what it needs. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  start: async () => (await import('./start.ts')).startCommand,
  serve: async () => (await import('./serve.ts')).serveCommand,
  worker: async () => (await import('./worker.ts')).workerCommand,
  daemon: async () => (await import('./daemon.ts')).daemonCommand,
  migrate: async () => (await import('./migrate.ts')).migrateCommand,
  token: async () => (await import('./token.ts')).tokenCommand,
  catalog: async () => (await import('./catalog.ts')).catalogCommand,
  check: async () => (await import('./check.ts')).checkCommand,
  install: async () => (await import('./install.ts')).installCommand,
  run: async () => (await import('./run.ts')).runSyncCommand,
}

/**
 * Runs one command to its end.
 *
 * @param args what stands behind `patchbay`
 * @returns the exit code: 0 done, 1 failed, 2 wrong usage
 */
export async function runCommand(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  const [name = '', ...rest] = args
  const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (load === undefined) return await usage(args[0])
  try {
    const command = await load()
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

async function usage(name: string | undefined): Promise<number> {
  const wanted = name === undefined || name === 'help' || name === '--help' || name === '-h'
  const commands = await Promise.all(Object.values(COMMANDS).map((load) => load()))
  const lines = commands.map((command) => `  patchbay ${command.usage.padEnd(54)} ${command.summary}`)
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
