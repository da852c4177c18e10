import type { SETTINGS } from '../../server/config/index.ts'

/** Wrong usage of a command; the message names the command, the option and what it takes. */
export class UsageError extends Error {}

/** One command: what is parsed, explained by `--help` and listed in `guides/operate.md`. */
export interface Command {
  /** One word, or two of which the first is shared, such as `token create`. */
  readonly name: string
  /** Operands as in a usage line, `<required>`, `[optional]` or `<many...>`, each with its meaning. */
  readonly operands?: Readonly<Record<string, string>>
  /** One line without a full stop. */
  readonly summary: string
  /** What it does and what it leaves unchanged, in sentences. */
  readonly description: string
  readonly options?: readonly CommandOption[]
  /** Environment variables it reads. */
  readonly variables?: readonly Variable[]
  /** Shell lines. */
  readonly examples: readonly string[]
  /** Use of the data directory, unless DATABASE_URL is set: `start` takes it exclusively among starts, `shared` beside others. */
  readonly dataDirectory: 'start' | 'shared' | 'unused'
  /** Imports the command's file; `--help` imports none. */
  load(): Promise<RunCommand>
}

/** `--flags <VALUE>`; without a value it is a flag. */
export interface CommandOption {
  readonly flags: string
  readonly meaning: string
  /** The default, in words. */
  readonly fallback?: string
}

/** An environment variable that a command reads: a setting, or one of the command line only. */
export type Variable = keyof typeof SETTINGS | 'PATCHBAY_TOKEN'

/** The parsed arguments of a command. */
export interface Invocation {
  readonly operands: readonly string[]
  /** By long name, in camel case. */
  readonly options: Readonly<Record<string, string | undefined>>
  /** Names of the given flags. */
  readonly flags: ReadonlySet<string>
  readonly environment: NodeJS.ProcessEnv
}

/** Runs a command to its end; resolves with the exit code. */
export type RunCommand = (invocation: Invocation) => Promise<number>

/** The moment that an option names. @param option with its command, such as `calls --since` @throws UsageError */
export function momentOf(option: string, text: string): Date {
  const moment = new Date(text)
  if (Number.isNaN(moment.getTime())) throw new UsageError(`${option} takes a time: 2026-03-01T10:00:00Z`)
  return moment
}
