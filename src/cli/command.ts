/** One subcommand. */
export interface Command {
  readonly name: string
  /** How it is called, without `patchbay`. */
  readonly usage: string
  readonly summary: string
  /** Runs to its end; resolves with the exit code. */
  run(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<number>
}
