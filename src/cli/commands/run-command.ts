/**
 * The command line: `patchbay <command>`. `commands.ts` is the table of commands; each one has its own file, loaded when it
 * runs, so that `--help` loads nothing. Never here: what a command does to the product, which belongs to the modules.
 */
import { CommanderError } from 'commander'
import { Failure } from '../../foundation/base/index.ts'
import { ConfigError } from '../../server/config/index.ts'
import { UsageError } from './command.ts'
import { FileError } from './definition-file.ts'
import { printError } from './output.ts'
import { createProgram } from './program.ts'

export { handleOutputErrors, isServing } from './output-errors.ts'

const EXIT_FAILED = 1
const EXIT_USAGE = 2

/**
 * Runs one command to its end.
 *
 * @param args the arguments after `patchbay`
 * @returns the exit code: 0 done, 1 failed, 2 wrong usage
 */
export async function runCommand(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  let exitCode = 0
  const program = createProgram(environment, (code) => {
    exitCode = code
  })
  try {
    await program.parseAsync(asHelpOption(args), { from: 'user' })
    return exitCode
  } catch (error) {
    // Its text is printed already; help and version arrive here too.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_USAGE
    printError(await errorText(error))
    return error instanceof UsageError ? EXIT_USAGE : EXIT_FAILED
  }
}

/** `help token create` as `token create --help`: the parser's own help command takes one word. */
function asHelpOption(args: readonly string[]): readonly string[] {
  const [first, ...words] = args
  return first === 'help' && words.length > 1 ? [...words, '--help'] : args
}

/** Expected errors in one line, those of several fields in more; anything else is a defect and printed with its stack. */
async function errorText(error: unknown): Promise<readonly string[]> {
  if (error instanceof Failure) return failureText(error)
  // Loaded for errors alone: most commands call no server.
  const { ServerUnavailable, UnexpectedAnswer } = await import('../client/errors.ts')
  if (error instanceof ServerUnavailable) return [`the server is unavailable: ${error.message}`]
  if (!(error instanceof Error)) return [String(error)]
  const isExpected = [UsageError, ConfigError, FileError, UnexpectedAnswer].some((each) => error instanceof each)
  if (isExpected) return [error.message]
  const { mapDatabaseError } = await import('../../foundation/database/index.ts')
  const known = mapDatabaseError(error)
  return known === undefined ? (error.stack ?? error.message).split('\n') : [known.publicMessage]
}

function failureText({ publicMessage, violations }: Failure): readonly string[] {
  if (violations.length < 2) return [publicMessage]
  return [publicMessage, ...violations.map(({ field, description }) => `  ${field} ${description}`)]
}
