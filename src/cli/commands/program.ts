import { Command as Parser } from 'commander'
import product from '../../../package.json' with { type: 'json' }
import { assertKnownVariables, SETTINGS } from '../../server/config/index.ts'
import type { Command, RunCommand, Variable } from './command.ts'
import { COMMANDS } from './commands.ts'

/** Wider lines are hard to read. */
const HELP_COLUMNS_MAX = 100
const HELP_COLUMNS_DEFAULT = 80
const COMMAND_GROUPS: Readonly<Record<string, string>> = {
  keys: 'rotate the keys that encrypt secrets',
  token: 'administer API tokens without one',
  unified: 'check, try and store mappings of unified resources',
}
const TOKEN_MEANING = 'API token of commands that call a server'

/**
 * Builds the parser of the command line from the table of commands.
 *
 * @param onEnd called with the exit code of the command that ran
 * @throws (when parsing) CommanderError for help, the version and wrong usage, after they were printed
 */
export function createProgram(environment: NodeJS.ProcessEnv, onEnd: (exitCode: number) => void): Parser {
  const program = configureParser(new Parser('patchbay'))
    .description('Integration platform: third-party APIs as data, accounts that stay authorised, cron syncs.')
    .version(product.version, '-V, --version', 'print the version')
    .helpCommand('help [COMMAND]', 'explain a command, its options and variables')
  for (const command of COMMANDS) {
    const [first = '', second] = command.name.split(' ')
    const parent = second === undefined ? program : parentCommand(program, first)
    addCommand(parent, second ?? first, command, async (invocation) => {
      if (command.variables !== undefined) assertKnownVariables(environment)
      onEnd(await (await command.load())({ ...invocation, environment }))
    })
  }
  return program
}

type InvokeCommand = (invocation: Omit<Parameters<RunCommand>[0], 'environment'>) => Promise<void>

function addCommand(parent: Parser, name: string, command: Command, invoke: InvokeCommand): void {
  const parser = configureParser(new Parser(name)).summary(command.summary).description(command.description)
  for (const [operand, meaning] of Object.entries(command.operands ?? {})) parser.argument(operand, meaning)
  for (const { flags, meaning, fallback } of command.options ?? [])
    parser.option(flags, fallback === undefined ? meaning : `${meaning} (default: ${fallback})`)
  parser.action(async () => {
    const values = Object.entries(parser.opts<Readonly<Record<string, string | boolean>>>())
    const texts = values.flatMap(([key, value]) => (typeof value === 'string' ? [[key, value] as const] : []))
    const flags = values.flatMap(([key, value]) => (value === true ? [key] : []))
    const operands = parser.processedArgs.flat().filter((operand) => typeof operand === 'string')
    await invoke({ operands, options: Object.fromEntries(texts), flags: new Set(flags) })
  })
  parser.addHelpText('after', () => helpFooter(parser, command))
  parent.addCommand(parser)
}

/** The parent of commands of two words, such as `patchbay token`. */
function parentCommand(program: Parser, name: string): Parser {
  const known = program.commands.find((each) => each.name() === name)
  if (known !== undefined) return known
  const members = COMMANDS.filter((each) => each.name.startsWith(`${name} `)).map((each) => each.name.split(' ')[1])
  const group = configureParser(new Parser(name))
    .description(`${COMMAND_GROUPS[name] ?? name}: ${members.join(', ')}`)
    .helpCommand(false)
  program.addCommand(group)
  return group
}

/** Settings of every parser: errors are printed as one line and then thrown, help has a limited width. */
function configureParser(parser: Parser): Parser {
  return parser
    .exitOverride()
    .showHelpAfterError(false)
    .helpOption('-h, --help', 'explain this command')
    .configureHelp({ commandUsage: (command) => `${commandPath(command)} ${command.usage()}` })
    .configureOutput({
      getOutHelpWidth: () => helpWidth(process.stdout),
      getErrHelpWidth: () => helpWidth(process.stderr),
      outputError: (text, write) => {
        const line = text
          .trim()
          .replace(/^error: /, '')
          .replace(/\s*\((Did you mean .*)\)$/s, (_, hint) => `. ${hint}`)
        write(`patchbay: ${line}${/[.?]$/.test(line) ? '' : '.'} See ${commandPath(parser)} --help\n`)
      },
    })
}

function commandPath(command: Parser): string {
  return command.parent === null ? command.name() : `${commandPath(command.parent)} ${command.name()}`
}

function helpWidth({ columns = HELP_COLUMNS_DEFAULT }: NodeJS.WriteStream): number {
  return Math.min(columns, HELP_COLUMNS_MAX)
}

function helpFooter(parser: Parser, { variables = [], examples }: Command): string {
  const help = parser.createHelp()
  help.prepareContext({ helpWidth: helpWidth(process.stdout) })
  const rows = variables.map(describeVariable)
  const width = Math.max(0, ...rows.map(([name]) => name.length))
  const listed = rows.map(([name, meaning]) => help.formatItem(name, width, meaning, help))
  const shown = examples.map((example) => `  $ ${example}`)
  return [...(rows.length === 0 ? [] : ['', 'Environment variables:', ...listed]), '', 'Examples:', ...shown].join('\n')
}

function describeVariable(variable: Variable): readonly [string, string] {
  if (variable === 'PATCHBAY_TOKEN') return [variable, TOKEN_MEANING]
  const { variable: name, description, defaultText = '' } = SETTINGS[variable]
  const plain = description.replaceAll('`', '')
  return [name, defaultText === '' ? plain : `${plain} Default: ${defaultText}.`]
}
