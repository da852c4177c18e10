import type { SETTINGS } from '../config.ts'

/** A command was called with something it does not take; its message names the command, the option and what it takes. */
export class UsageError extends Error {}

/** One command, as it is parsed, explained by `--help` and listed in the README. */
export interface Command {
  /** One word, or two of which the first is shared, such as `token create`. */
  readonly name: string
  /** Its operands as a usage line shows them, `<required>`, `[optional]` or `<many...>`; each with its meaning. */
  readonly operands?: Readonly<Record<string, string>>
  /** One line without a full stop. */
  readonly summary: string
  /** What it does and what it leaves alone, in sentences. */
  readonly description: string
  readonly options?: readonly CommandOption[]
  /** Environment variables it reads. */
  readonly variables?: readonly Variable[]
  /** Lines of a shell. */
  readonly examples: readonly string[]
  /** What it needs of the data directory, unless DATABASE_URL is set: to be its one `start`, to use it beside others, or nothing. */
  readonly dataDirectory: 'start' | 'shared' | 'unused'
  /** Loads what it runs, and with that whatever it needs; `--help` loads nothing. */
  load(): Promise<RunCommand>
}

/** `--flags <VALUE>`; without a value it is a flag. */
export interface CommandOption {
  readonly flags: string
  readonly meaning: string
  /** What is used when it is not given, in words. */
  readonly fallback?: string
}

/** An environment variable that a command reads: a setting, or one of the command line alone. */
export type Variable = keyof typeof SETTINGS | 'PATCHBAY_TOKEN'

/** What was written behind the command's name. */
export interface Invocation {
  readonly operands: readonly string[]
  /** By long name, in camel case. */
  readonly options: Readonly<Record<string, string | undefined>>
  /** Names of the flags that were given. */
  readonly flags: ReadonlySet<string>
  readonly environment: NodeJS.ProcessEnv
}

/** Runs a command to its end; resolves with the exit code. */
export type RunCommand = (invocation: Invocation) => Promise<number>
