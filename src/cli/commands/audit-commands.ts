import type { Command, CommandOption, Variable } from './command.ts'

/** The variables and options that the command shares with others. */
interface SharedParts {
  readonly server: readonly Variable[]
  readonly serverOptions: readonly CommandOption[]
}

/** The commands of the audit log. */
export const auditCommands = ({ server, serverOptions }: SharedParts): readonly Command[] => [
  {
    name: 'audit list',
    summary: 'print the audit log as JSON, a line for each entry',
    description:
      'Prints who changed what, newest first, each entry as one line of JSON: of an environment, or with a team token and no environment of the team. All entries, unless options restrict them. Exit code 1 when no entry has what --method, --actor or --target name.',
    options: [
      {
        flags: '--method <RPC>',
        meaning: 'only calls of this, such as `WebhookService/UpdateWebhook`',
        fallback: 'all',
      },
      { flags: '--actor <ID>', meaning: 'only calls with this token', fallback: 'all' },
      { flags: '--target <ID_OR_NAME>', meaning: 'only calls about this', fallback: 'all' },
      { flags: '--since <TIME>', meaning: 'only calls at or after this time', fallback: 'from the beginning' },
      { flags: '--until <TIME>', meaning: 'only calls before this time', fallback: 'up to now' },
      { flags: '--limit <N>', meaning: 'how many at most', fallback: 'all' },
      ...serverOptions,
    ],
    variables: server,
    examples: ['patchbay audit list --limit 20', 'patchbay audit list --since 2026-03-01T00:00:00Z > audit.ndjson'],
    dataDirectory: 'unused',
    load: async () => (await import('./audit.ts')).runAuditList,
  },
]
